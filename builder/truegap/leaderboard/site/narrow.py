"""A layer of a web server that takes no more than a form needs: no uploads, and small requests."""

from __future__ import annotations

from truegap.leaderboard.site.asgi import App, Message, Receive, Send

LARGEST = 64 * 1024
"""Bytes of the body of a request."""
_CLOSED = ("/upload", "/component_server", "/upload_progress")
"""Routes of Gradio that write files or call components: no component here needs them."""


class Narrow:
    """Refuses uploads, and bodies above `LARGEST`, whether they say their size or not."""

    def __init__(self, app: App) -> None:
        """Wraps an ASGI app."""
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope.get("path", "").rstrip("/").endswith(_CLOSED):
            await _refuse(send, 403, b"nothing can be uploaded here")
            return
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self.app(scope, receive, send)
            return
        # The whole body before the app sees any of it: it is small, or it is refused.
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return
            body, more = body + message.get("body", b""), message.get("more_body", False)
            if len(body) > LARGEST:
                await _refuse(send, 413, f"a request has at most {LARGEST} bytes".encode())
                return
        given = False

        async def again() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, again, send)


async def _refuse(send: Send, status: int, reason: bytes) -> None:
    headers = [(b"content-type", b"text/plain"), (b"content-length", str(len(reason)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": reason})

"""A layer of a web server that takes no more than a form needs: no uploads, small requests, none of other sites."""

from __future__ import annotations

import asyncio

from truegap.leaderboard.site.asgi import App, Message, Receive, Send
from truegap.leaderboard.site.visitors import is_foreign

LARGEST = 64 * 1024
"""Bytes of the body of a request."""
SECONDS = 20.0
"""For the body of a request to arrive."""
_CLOSED = ("/upload", "/component_server", "/upload_progress")
"""Routes of Gradio that write files or call components: no component here needs them."""


class Narrow:
    """Refuses uploads, bodies above `LARGEST`, whether they say their size or not, and what takes its time to come.

    What a page of another site sends is refused too: Gradio takes it, and the browser sends along who is logged in.
    """

    def __init__(self, app: App, *, own: tuple[str, ...] = (), seconds: float = SECONDS) -> None:
        """Wraps an ASGI app.

        Args:
            app: The app.
            own: Names of this server beside the one that it is asked by.
            seconds: For the body of a request to arrive.
        """
        self.app = app
        self.own = own
        self.seconds = seconds

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        reading = scope["method"] in ("GET", "HEAD", "OPTIONS")
        if scope.get("path", "").rstrip("/").endswith(_CLOSED):
            await _refuse(send, 403, b"nothing can be uploaded here")
        elif reading:
            await self.app(scope, receive, send)
        elif is_foreign(scope, self.own):
            await _refuse(send, 403, b"sent by a page of another site: open this one")
        else:
            await self._take(scope, receive, send)

    async def _take(self, scope: Message, receive: Receive, send: Send) -> None:
        # The whole body before the app sees any of it: it is small and soon here, or it is refused.
        try:
            async with asyncio.timeout(self.seconds):
                body = await _read(receive)
        except TimeoutError:
            await _refuse(send, 408, f"a request arrives within {self.seconds:g} seconds".encode())
            return
        if body is None:
            return
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


async def _read(receive: Receive) -> bytes | None:
    """The body, or its beginning where that is too much already; None of who has gone."""
    body, more = bytearray(), True
    while more and len(body) <= LARGEST:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return bytes(body)


async def _refuse(send: Send, status: int, reason: bytes) -> None:
    headers = [
        (b"content-type", b"text/plain"),
        (b"content-length", str(len(reason)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": reason})

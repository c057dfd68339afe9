"""The pages as a layer of a web server: what they do not answer is passed on to the app below."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from functools import cache
from importlib.resources import files
from typing import Any

from truegap.errors import UserError
from truegap.leaderboard.site.pages import Pages
from truegap.leaderboard.site.view import View, parse

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'self' https://huggingface.co https://*.hf.space"
)
_STATIC = {"site.js": "text/javascript", "site.css": "text/css"}
_HTML = "text/html"
_SUBMIT = "submit"


class Site:
    """Answers `/` and `/board/…`, and puts the header before the page for submissions, which the app below makes."""

    def __init__(self, app: App, pages: Pages) -> None:
        """Wraps an ASGI app."""
        self.app = app
        self.pages = pages

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request."""
        path = scope.get("path", "")
        ours = path == "/" or path.startswith("/board/")
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD") or not ours:
            await self.app(scope, receive, send)
            return
        query = scope["query_string"].decode("ascii", "replace")
        view = parse(query)
        if path == "/" and view.tab == _SUBMIT:
            header = await asyncio.to_thread(self.pages.header, view)
            await self.app(scope, receive, _Headed(send, header))
            return
        status, kind, body, more = await asyncio.to_thread(self._answer, path, view)
        headers = {
            "content-type": kind if kind.startswith("image/") else f"{kind}; charset=utf-8",
            "content-length": str(len(body)),
            "content-security-policy": _POLICY,
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cache-control": "no-cache",
        } | more
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def _answer(self, path: str, view: View) -> tuple[int, str, bytes, dict[str, str]]:
        """Status, media type, body and further headers."""
        what = path.removeprefix("/board/")
        try:
            if path == "/" or what == "view":
                page = self.pages.document(view) if path == "/" else self.pages.fragment(view)
                return 200, _HTML, page.encode(), {}
            if what == "table.csv":
                name, text = self.pages.csv(view)
                return 200, "text/csv", text.encode("utf-8-sig"), _attached(name)
            if what == "cite.bib":
                return 200, "application/x-bibtex", self.pages.bibtex(view).encode(), _attached("truegap.bib")
            if what == "picture" and (picture := self.pages.picture(view.model, view.q)):
                return 200, "image/jpeg", picture, {"cache-control": "max-age=86400, immutable"}
        except UserError as error:
            return 503 if path == "/" or what == "view" else 404, "text/plain", str(error).encode(), {}
        kind = _STATIC.get(what)
        return (200, kind, _static(what), {}) if kind else (404, "text/plain", b"there is no such page", {})


def _attached(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}


@cache
def _static(name: str) -> bytes:
    return (files(__package__ or "") / name).read_bytes()


class _Headed:
    """Sends an HTML page on with our header at the beginning of its body."""

    def __init__(self, send: Send, header: str) -> None:
        self.send = send
        self.style = b'<link rel="stylesheet" href="board/site.css"></head>'
        self.header = f'<div id="board">{header}</div>'.encode()
        self.start: Message | None = None
        self.body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.start = message
            return
        self.body += message.get("body", b"")
        if message.get("more_body") or self.start is None:
            return
        headers = [(name, value) for name, value in self.start["headers"] if name.lower() != b"content-length"]
        body = self.body.replace(b"</head>", self.style, 1)
        opened = body.find(b">", body.find(b"<body")) + 1
        if opened:
            body = body[:opened] + self.header + body[opened:]
        headers.append((b"content-length", str(len(body)).encode()))
        await self.send({**self.start, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})

"""A layer of a web server that bounds how much one visitor may ask for in a minute."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from truegap.leaderboard.buckets import Buckets
from truegap.leaderboard.site.asgi import App, Message, Receive, Send
from truegap.leaderboard.site.visitors import address_of, sits_here

_FREE = ("/assets/", "/static/", "/board/site.", "/board/picture", "/theme.css")
_TABLES = ("/board/table.csv", "/board/cite.bib")
_READING = ("GET", "HEAD", "OPTIONS")
_ALL = 10
"""How many times as much all visitors may ask for together whose address is not known."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What one address may ask for in a minute; styles, scripts and pictures count for nothing.

    Attributes:
        posts: What Gradio's page sends, submissions, and tokens that nobody knows yet.
        tables: Files with all rows, each some tenths of a second of work.
        pages: Pages, each some hundredths of a second, reading by the API, and whatever else Gradio answers.
    """

    posts: int = 30
    tables: int = 30
    pages: int = 300


class Throttle:
    """Answers 429 with `Retry-After` to who asks too much; where no proxy is, not to the machine's own user."""

    def __init__(self, app: App, *, behind_proxy: bool, rates: Rates | None = None) -> None:
        """Wraps an ASGI app.

        Args:
            app: The app.
            behind_proxy: Whether a proxy of the house says who asks, as `address_of` takes it.
            rates: How much.
        """
        bounds: dict[str, int] = asdict(rates or Rates())
        self.app = app
        self.behind_proxy = behind_proxy
        self._each = {kind: Buckets(bound) for kind, bound in bounds.items()}
        self._all = {kind: Buckets(bound * _ALL) for kind, bound in bounds.items()}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request."""
        kind = _kind(scope)
        wait = self._wait(kind, scope) if kind else 0.0
        if not wait:
            await self.app(scope, receive, send)
            return
        text = f"too many requests: try again in {math.ceil(wait)} seconds".encode()
        headers = {
            "content-type": "text/plain",
            "content-length": len(text),
            "retry-after": math.ceil(wait),
            # A body may come, which nobody reads.
            "connection": "close",
        }
        pairs = [(name.encode(), str(value).encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 429, "headers": pairs})
        await send({"type": "http.response.body", "body": text})

    def _wait(self, kind: str, scope: Message) -> float:
        if not self.behind_proxy and sits_here(scope):
            return 0.0
        address = address_of(scope, behind_proxy=self.behind_proxy)
        return self._each[kind].take(address) if address else self._all[kind].take("")


def _kind(scope: Message) -> str:
    """What is counted, as `Rates` names it; empty for what is not."""
    if scope["type"] != "http":
        return ""
    if scope["method"] not in _READING:
        return "posts"
    path = scope.get("path", "")
    if path in _TABLES:
        return "tables"
    return "" if path.startswith(_FREE) else "pages"

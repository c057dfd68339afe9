"""The API for programs, as a layer of a web server: JSON in, JSON out, and who asks is said by a token of the Hub.

It answers no page of a browser: what carries an `Origin` is refused, and a cookie means nothing here.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, get_args

from truegap.errors import UserError
from truegap.hub.tokens import Owner
from truegap.leaderboard.checks import PROTOCOLS, TakenError, TooManyError
from truegap.leaderboard.desk import Desk, LaterError
from truegap.leaderboard.request import ProfileName
from truegap.leaderboard.site.asgi import App, Message, Receive, Send
from truegap.leaderboard.site.pages import Pages
from truegap.leaderboard.site.queue_page import public
from truegap.leaderboard.site.visitors import headers
from truegap.results.show import plain

LARGEST = 16 * 1024
"""Bytes of the body of a request."""
_TEXT = 300
"""Characters of a field."""
_SHOWN = 1000
"""Requests that one answer lists."""
_THREADS, _WAITING = 4, 32
_HOUR = 3600.0
_KEY = re.compile(r"[0-9a-f]{12,64}")
_NEEDED = {"model", "benchmark", "protocol"}
_TEXTS = (*sorted(_NEEDED), "revision", "profile", "note")
_SWITCHES = ("pull_request",)
_BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE)


class NotAllowedError(UserError):
    """Who asks may not, or is not known.

    Attributes:
        status: Of HTTP: 401, 403, or 503 where that cannot be found out.
    """

    def __init__(self, message: str, status: int = 401) -> None:
        """What to say, and with which status."""
        super().__init__(message)
        self.status = status


Caller = Callable[[Message, str | None], Owner]
"""Who asks, by the ASGI scope and the token; raises `NotAllowedError`, or `UserError` where the Hub cannot be asked."""


class Api:
    """Answers `/api` and what is below it."""

    def __init__(self, app: App, *, pages: Pages, desk: Desk, caller: Caller) -> None:
        """Wraps an ASGI app.

        Args:
            app: What answers all other addresses.
            pages: Whose queue is shown.
            desk: Where submissions go.
            caller: Says who asks; called in a thread, with a token that is kept nowhere else.
        """
        self.app = app
        self.pages = pages
        self.desk = desk
        self.caller = caller
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="api")
        self._waiting = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request."""
        path = scope.get("path", "")
        if scope["type"] != "http" or not (path + "/").startswith("/api/"):
            await self.app(scope, receive, send)
            return
        try:
            status, content, more = await self._answer(scope, receive, path.strip("/").split("/")[1:])
        except UserError as error:
            status, content, more = _refusal(error)
        body = json.dumps(content, indent=1).encode()
        named = {
            "content-type": "application/json",
            "content-length": str(len(body)),
            "content-security-policy": "default-src 'none'",
            "x-content-type-options": "nosniff",
            "cache-control": "no-store",
        } | more
        pairs = [(name.encode(), value.encode()) for name, value in named.items()]
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    async def _answer(self, scope: Message, receive: Receive, parts: list[str]) -> _Answer:
        if any(headers(scope, b"origin")):
            raise NotAllowedError("this address is for programs: no page of a browser may use it", 403)
        method = scope["method"]
        if method == "POST" and parts == ["requests"]:
            return await self._submit(scope, receive)
        if method not in ("GET", "HEAD"):
            return 405, {"error": "use GET, or POST to api/requests"}, {"allow": "GET, HEAD, POST"}
        if not parts:
            return 200, self._about(), {}
        if parts[0] == "requests" and len(parts) <= 2:  # noqa: PLR2004  # a key at most
            found = await asyncio.to_thread(self._requests, *parts[1:])
            if found is not None:
                return 200, found, {}
        return 404, {"error": "there is nothing at this address; see api"}, {}

    def _about(self) -> Mapping[str, Any]:
        limits = self.desk.limits
        return {
            "requests": "api/requests",
            "rows": "board/table.csv?csv=rows",
            "benchmarks": list(limits.offered),
            "protocols": list(PROTOCOLS),
            "profiles": list(get_args(ProfileName)),
            "requests_per_day": limits.requests_per_day,
            "unfinished": limits.waiting,
        }

    def _requests(self, key: str = "") -> Mapping[str, Any] | None:
        requests = self.pages.shelf.requests()
        if not key:
            newest = sorted(requests, key=lambda each: (each.submitted, each.key), reverse=True)
            return {"total": len(newest), "requests": [public(each) for each in newest[:_SHOWN]]}
        found = [each for each in requests if each.key.startswith(key)] if _KEY.fullmatch(key) else []
        return public(found[0]) | {"log": self.pages.shelf.log(found[0].key)} if len(found) == 1 else None

    async def _submit(self, scope: Message, receive: Receive) -> _Answer:
        kind = next(headers(scope, b"content-type"), "").partition(";")[0].strip().lower()
        if kind != "application/json" or any(headers(scope, b"content-encoding")):
            return 415, {"error": "send the request as JSON: `Content-Type: application/json`"}, {}
        body = await _body(receive)
        if len(body) > LARGEST:
            return 413, {"error": f"a request has at most {LARGEST} bytes"}, {"connection": "close"}
        if self._waiting >= _WAITING:
            raise LaterError("too many requests are looked at just now: try again in a minute", 60.0)
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            made = await loop.run_in_executor(self._threads, self._ask, scope, body)
        finally:
            self._waiting -= 1
        # A path: what is not one counts from the address that was asked, with or without a slash at its end.
        return 201, made, {"location": f"{scope.get('root_path', '')}/api/requests/{made['key']}"}

    def _ask(self, scope: Message, body: bytes) -> Mapping[str, Any]:
        asked = _fields(body)
        given = [match[1] for each in headers(scope, b"authorization") if (match := _BEARER.fullmatch(each.strip()))]
        try:
            owner = self.caller(scope, given[0] if len(given) == 1 else None)
        except NotAllowedError:
            raise
        except UserError as error:
            raise NotAllowedError(str(error), 503) from None
        return public(self.desk.submit(user=owner.name, organizations=owner.organizations, **asked))


_Answer = tuple[int, Mapping[str, Any], dict[str, str]]


def _refusal(error: UserError) -> _Answer:
    """What went wrong, and the remedy."""
    said = {"error": plain(error, 500)}
    match error:
        case NotAllowedError():
            return error.status, said, {"www-authenticate": "Bearer"} if error.status == 401 else {}  # noqa: PLR2004
        case LaterError():
            return 429, said, {"retry-after": str(math.ceil(error.wait))}
        case TooManyError():
            return 429, said, {"retry-after": str(math.ceil(_HOUR))}
        case TakenError():
            return 409, said, {}
    return 422, said, {}


def _fields(body: bytes) -> dict[str, Any]:
    """What is asked for.

    Raises:
        UserError: It is not an object of these fields; what was sent is not repeated.
    """
    try:
        sent = json.loads(body)
    except (ValueError, RecursionError):
        raise UserError("the request is not valid JSON") from None
    known = {*_TEXTS, *_SWITCHES}
    if not isinstance(sent, dict) or not sent.keys() <= known or not sent.keys() >= _NEEDED:
        needed, free = ", ".join(sorted(_NEEDED)), ", ".join(sorted(known - _NEEDED))
        raise UserError(f"a request is a JSON object of {needed}; {free} may be there too, and nothing else")
    for name, value in sent.items():
        if name in _SWITCHES:
            if not isinstance(value, bool):
                raise UserError(f"{name}: give true or false")
        elif value is not None and not isinstance(value, str):
            raise UserError(f"{name}: give a text")
        elif value is not None and len(value) > _TEXT:
            raise UserError(f"{name}: {len(value)} characters, and {_TEXT} are taken at most")
    said = {name: value.strip() if isinstance(value, str) else value for name, value in sent.items()}
    return {name: value for name, value in said.items() if value not in (None, "")} | {
        name: said[name] or "" for name in _NEEDED
    }


async def _body(receive: Receive) -> bytes:
    """The body, or its beginning where that is too much already."""
    body, more = bytearray(), True
    while more and len(body) <= LARGEST:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return bytes(body)

"""Requests to a server that may be busy, slow, broken or gone: paced, tried again, and told of in one line."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from truegap.errors import UserError
from truegap.files.headers import retry_after
from truegap.models._endpoint_settings import EndpointSettings
from truegap.results.show import plain

T = TypeVar("T")

MOST_BYTES = 8_000_000
"""A longer answer to a question with a handful of options is none."""
_ENCODINGS = ("", "identity", "gzip", "deflate")
"""How an answer may be packed, though none is asked for: others make memory full of one small part."""
_AGAIN = {408, 409, 425, 429}
"""Statuses below 500 after which another attempt may help."""
_TOO_MANY = 429
_SECRETS = re.compile(r"(?i:(?<=bearer )[^\s'\"]+)|\b(?:sk|hf)[-_][\w*.-]+|(?<=://)[^/@\s]+(?=@)")


class RefusedError(Exception):
    """The server understood the connection but not the request, and would not understand it a second time.

    Attributes:
        status: The HTTP status.
        said: What it says, on one short line.
        code: Its own name for the error, where it has one.
    """

    def __init__(self, status: int, said: str, code: str) -> None:
        super().__init__(said)
        self.status = status
        self.said = said
        self.code = code


class NonsenseError(Exception):
    """An answer came, and it is not what was asked for."""


class _LaterError(Exception):
    """Another attempt may help, after so many seconds if the server says so."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class Pace:
    """When the next request may leave; shared by all threads."""

    def __init__(self, requests_per_minute: float | None) -> None:
        """Requests are spread evenly over the minute, so that no window of a minute holds more."""
        self._gap = 60 / requests_per_minute if requests_per_minute else 0.0
        self._lock = threading.Lock()
        self._next = self._resume = 0.0

    def take(self, now: float) -> float:
        """The time at which a request that is asked for now may leave."""
        with self._lock:
            start = max(now, self._next, self._resume)
            self._next = start + self._gap
            return start

    def pause(self, until: float) -> None:
        """Lets nothing leave before that time."""
        with self._lock:
            self._resume = max(self._resume, until)

    def is_paused(self, now: float) -> bool:
        """Whether a pause was asked for meanwhile."""
        return self._resume > now


class Client:
    """Sends requests from several threads.

    Redirects are not followed: an address that was given is an address that is trusted, another one is not.
    """

    def __init__(self, settings: EndpointSettings) -> None:
        """Opens no connection yet.

        Raises:
            UserError: The key is not to be had.
        """
        import httpx2

        self._settings = settings
        self._headers = settings.headers()
        self._pace = Pace(settings.requests_per_minute)
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()
        """Requests sent, and how many of them were further attempts."""
        self._http = httpx2.Client(
            timeout=httpx2.Timeout(settings.timeout, pool=None),
            follow_redirects=False,
            trust_env=not settings.is_local,  # proxies lead away from this machine
            headers={"Content-Type": "application/json", "Accept-Encoding": "identity", **self._headers},
            limits=httpx2.Limits(max_connections=settings.concurrency, max_keepalive_connections=settings.concurrency),
        )

    def ask(
        self,
        path: str,
        body: Mapping[str, Any],
        read: Callable[[Any], T],
        stop: threading.Event,
        attempts: int | None = None,
    ) -> T:
        """What `read` makes of the server's JSON.

        Args:
            path: After the address, such as `/chat/completions`.
            body: Of the request.
            read: Raises `NonsenseError` where the JSON is not what was asked for.
            stop: Once it is set nothing more is sent.
            attempts: At most so many; by default as the settings say.

        Raises:
            RefusedError: The request itself is not accepted.
            UserError: The last attempt failed, or another one cannot help.
        """
        data = json.dumps(body).encode()
        attempts = attempts or self._settings.attempts
        for attempt in range(1, attempts + 1):
            try:
                return read(self._send(path, data, stop, again=attempt > 1))
            except (_LaterError, NonsenseError) as error:
                wait = getattr(error, "wait", None)
                if attempt == attempts or stop.is_set():
                    tried = f" ({attempt} attempts)" if attempt > 1 else ""
                    raise self.failure(f"{error}{tried}; the same command goes on from here") from None
                self._rest(attempt, wait, stop, str(error))
        raise AssertionError("the last attempt returns or raises")

    def failure(self, reason: str) -> UserError:
        """One line about this server, without secrets."""
        return UserError(f"endpoint {plain(self._settings.model, 80)} at {self._settings.url}: {reason}")

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def _rest(self, attempt: int, wait: float | None, stop: threading.Event, reason: str) -> None:
        """Waits, twice as long with each attempt; a pause that the server asks for is kept by the pace."""
        longest = self._settings.longest_wait
        if wait is not None and wait > longest:
            raise self.failure(
                f"{reason}; it asks for a pause of {wait:.0f} s, longer than longest_wait: "
                "the same command goes on from here later"
            )
        # Jitter, so that what failed together does not come back together.
        own = min(self._settings.backoff * 2 ** (attempt - 1), longest) * random.uniform(0.5, 1.0)  # noqa: S311
        stop.wait(own if wait is None else min(own, 1.0))

    def _send(self, path: str, data: bytes, stop: threading.Event, *, again: bool) -> Any:
        import httpx2

        self._wait_for_turn(stop)
        with self._lock:
            self.counts["requests"] += 1
            self.counts["retries"] += again
        try:
            with self._http.stream("POST", self._settings.url + path, content=data) as response:
                body = self._body(response)
                return self._content(response.status_code, response.headers, body)
        except httpx2.TimeoutException:
            raise self._late() from None
        except httpx2.ConnectError:
            raise _LaterError("no connection: is the server running, and the address right?") from None
        except (httpx2.InvalidURL, UnicodeError):
            raise self.failure("the address is malformed") from None
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            raise _LaterError(f"the connection broke ({type(error).__name__})") from None

    def _wait_for_turn(self, stop: threading.Event) -> None:
        while True:
            start = self._pace.take(time.monotonic())
            if stop.wait(max(0.0, start - time.monotonic())):
                raise self.failure("interrupted")
            if not self._pace.is_paused(time.monotonic()):
                return

    def _late(self) -> _LaterError:
        return _LaterError(f"no answer within {self._settings.timeout:g} s; raise timeout, or lower concurrency")

    def _body(self, response: Any) -> bytes:
        packed = response.headers.get("content-encoding", "identity").strip().lower()
        if packed not in _ENCODINGS:
            raise NonsenseError(f"its answer is packed as {plain(packed, 40)!r}, which was not asked for")
        ends = time.monotonic() + self._settings.timeout
        body = bytearray()
        for part in response.iter_bytes():
            body += part
            if len(body) > MOST_BYTES:
                raise NonsenseError(f"its answer is longer than {MOST_BYTES // 1_000_000} MB")
            if time.monotonic() > ends:
                raise self._late()
        return bytes(body)

    def _content(self, status: int, headers: Mapping[str, str], body: bytes) -> Any:
        """The JSON of an answer, or what went wrong."""
        found = _parsed(body)
        if 200 <= status < 300:  # noqa: PLR2004
            if not isinstance(found, dict):
                kind = "is empty" if not body.strip() else f"is no JSON object: {self._excerpt(found, body)!r}"
                raise NonsenseError(f"its answer {kind}; does the address end in /v1?")
            return found
        said, code = self._excerpt(found, body), _code(found)
        if 300 <= status < 400:  # noqa: PLR2004
            to = plain(_SECRETS.sub("…", headers.get("location", "another address").partition("?")[0]), 120)
            raise self.failure(f"it redirects to {to}, which is not followed; give that address if you trust it")
        line = f"status {status}: {said}" if said else f"status {status}"
        if status in _AGAIN or status >= 500:  # noqa: PLR2004
            if code == "insufficient_quota":
                raise self.failure(f"{line}; the account has no credit left")
            wait = retry_after(headers.get("retry-after-ms"), unit=0.001)
            wait = retry_after(headers.get("retry-after")) if wait is None else wait
            if wait is not None and wait <= self._settings.longest_wait:
                self._pace.pause(time.monotonic() + wait)
            hint = "; lower concurrency or requests_per_minute" if status == _TOO_MANY else ""
            raise _LaterError(line + hint, wait)
        raise RefusedError(status, said, code)

    def refusal(self, refused: RefusedError) -> UserError:
        """One line about a request that the server does not accept, with what to do."""
        variable = self._settings.api_key_env
        remedies = {
            401: f"it does not accept the key in {variable}"
            if variable
            else "it wants a key: name its environment variable with api_key_env in endpoint:FILE.yaml",
            404: "check the address, which usually ends in /v1, and the model's name",
            413: "the image is too large for it; image: jpeg in endpoint:FILE.yaml is smaller",
        }
        remedies[403] = remedies[401]
        remedy = remedies.get(refused.status, "it does not accept the request")
        said = f" ({refused.said})" if refused.said else ""
        return self.failure(f"status {refused.status}{said}; {remedy}")

    def _excerpt(self, found: Any, body: bytes) -> str:
        """A short printable part of what the server says, without secrets, even where it repeats the key."""
        text = _message(found) or body[:2000].decode("utf-8", "replace")
        for key in self._headers.values():
            text = text.replace(key.removeprefix("Bearer "), "…")
        return plain(_SECRETS.sub("…", re.sub(r"<[^>]*>", " ", text)), 200)


def _parsed(body: bytes) -> Any:
    """JSON, or None where it is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _message(found: Any, depth: int = 3) -> str:
    """The message of an error, where servers put it; empty where it is deeper than any puts it."""
    for name in ("error", "message", "detail"):
        if isinstance(found, dict) and name in found:
            inner = found[name]
            if isinstance(inner, str):
                return inner
            if depth and (said := _message(inner, depth - 1)):
                return said
            try:
                return json.dumps(inner)
            except RecursionError:
                return ""
    return ""


def _code(found: Any) -> str:
    error = found.get("error") if isinstance(found, dict) else None
    return str(error.get("code") or error.get("type") or "") if isinstance(error, dict) else ""

"""Where submissions of visitors arrive, from the form as from the API: of a user one at a time, few a minute."""

from __future__ import annotations

import math
import threading
from typing import Any

from truegap.errors import UserError
from truegap.leaderboard.ask import ask
from truegap.leaderboard.buckets import Buckets
from truegap.leaderboard.limits import Limits
from truegap.leaderboard.request import Request
from truegap.leaderboard.store import Store

_MOMENT = 5.0
"""Seconds after which a user may try again whose other request is still looked at."""


class LaterError(UserError):
    """Not now: the same may be accepted later.

    Attributes:
        wait: Seconds.
    """

    def __init__(self, message: str, wait: float) -> None:
        """What to say, and how long to wait."""
        super().__init__(message)
        self.wait = wait


class Desk:
    """Puts requests into a store's queue, safe in threads.

    A user's requests are looked at one after the other: of two at a time, neither would see that the other has used up
    what the user may ask for.
    """

    def __init__(self, store: Store, limits: Limits | None = None, *, per_minute: int = 6) -> None:
        """Takes nothing yet.

        Args:
            store: Where the queue is.
            limits: What is accepted.
            per_minute: Requests of one user, those that are refused too: each costs the Hub several calls.
        """
        self.store = store
        self.limits = limits or Limits()
        self._per_minute = per_minute
        self._buckets = Buckets(per_minute)
        self._lock = threading.Lock()
        self._asking: set[str] = set()

    def submit(self, *, user: str, **asked: Any) -> Request:
        """Asks for an evaluation.

        Args:
            user: Who is logged in, never what somebody typed.
            asked: As `ask` takes it.

        Raises:
            LaterError: The user asks too fast.
            UserError: It is refused, with the reason and the remedy.
        """
        with self._lock:
            if user in self._asking:
                raise LaterError(f"another request of {user} is looked at just now: try again in a moment", _MOMENT)
            if wait := self._buckets.take(user):
                raise LaterError(
                    f"{user} may ask {self._per_minute} times a minute: try again in {math.ceil(wait)} seconds", wait
                )
            self._asking.add(user)
        try:
            return ask(self.store, user=user, limits=self.limits, **asked)
        finally:
            with self._lock:
                self._asking.discard(user)

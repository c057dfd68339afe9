"""Token buckets: how often somebody may do something, kept in memory for as many as come."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

_MINUTE = 60.0
_REST = "\n"
"""The bucket that all share for whom there is no place; no user or address has this name."""


class Buckets:
    """One bucket for each name, safe in threads: it holds what may be done in a minute, and fills as time goes.

    Buckets that are full are forgotten. However many names come, no more than `most` are kept; while so many are in
    use, all further names share one bucket, so that nobody gets a fresh one by driving others out.
    """

    def __init__(self, per_minute: float, *, most: int = 10_000, clock: Callable[[], float] = time.monotonic) -> None:
        """All are full.

        Args:
            per_minute: What each name may do in a minute; all of it at once, if it waited before.
            most: Names to keep.
            clock: Seconds.
        """
        self._size = float(per_minute)
        self._rate = per_minute / _MINUTE
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._held: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """What is left, and when that was so; who came last is last."""

    def take(self, name: str) -> float:
        """Does it once, if the name's bucket allows it.

        Returns:
            0 where it does, else the seconds until it could be.
        """
        with self._lock:
            now = self._clock()
            self._forget(now)
            if name not in self._held and len(self._held) >= self._most:
                name = _REST
            left, moment = self._held.pop(name, (self._size, now))
            left = min(self._size, left + (now - moment) * self._rate)
            allowed = left >= 1.0
            self._held[name] = (left - 1.0 if allowed else left, now)
            return 0.0 if allowed else (1.0 - left) / self._rate

    def _forget(self, now: float) -> None:
        while self._held:
            name, (_, moment) = next(iter(self._held.items()))
            if now - moment < _MINUTE:
                return
            del self._held[name]

"""How a request goes from one state to the next, and who may move it.

PENDING → RUNNING, held by one worker under a lease that its heartbeat renews → FINISHED or FAILED. A lease that ran out
gives the request to the next worker; after too many attempts it fails. Whoever moves a request swaps the record that
it last saw: of two that try, one wins, and the other learns of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from truegap.errors import UserError
from truegap.leaderboard.limits import Limits
from truegap.leaderboard.request import REASON, Request, now, stamp
from truegap.leaderboard.store import Store
from truegap.results.show import plain

Clock = Callable[[], datetime]


def claimable(request: Request, moment: datetime, limits: Limits) -> bool:
    """Whether a worker may take a request: it waits, or its worker has not been heard of.

    Clocks of machines differ: a lease counts for some patience longer than it says. One that ends later than any
    worker could have written was written by a clock that is far off, or by nobody's, and does not count.
    """
    if request.state == "PENDING":
        # What broke once may need a while, such as a network.
        rest = timedelta(seconds=limits.rest * request.attempts)
        return request.attempts == 0 or datetime.fromisoformat(request.changed) + rest <= moment
    if request.state != "RUNNING" or request.lease_until is None:
        return False
    until, patience = datetime.fromisoformat(request.lease_until), timedelta(seconds=limits.patience)
    return until + patience < moment or until > moment + timedelta(seconds=limits.lease) + patience


def claimed(request: Request, worker: str, moment: datetime, limits: Limits) -> Request:
    """The request as a worker takes it; FAILED if too many have died over it."""
    if request.attempts >= limits.attempts:
        reason = f"{request.attempts} workers did not finish it; the last one stopped without a word"
        return failed(request, request.reason or reason, moment)
    return _changed(
        request,
        moment,
        state="RUNNING",
        worker=worker,
        attempts=request.attempts + 1,
        lease_until=_until(moment, limits),
        reason="",
    )


def renewed(request: Request, moment: datetime, limits: Limits) -> Request:
    """The same with a longer lease."""
    return request.model_copy(update={"lease_until": _until(moment, limits)})


def finished(request: Request, run_id: str, moment: datetime, **told: str | None) -> Request:
    """The request with its result, and with what else is `told` of it, by field."""
    return _changed(request, moment, state="FINISHED", lease_until=None, run_id=run_id, reason="", **told)


def failed(request: Request, reason: str, moment: datetime) -> Request:
    """The request that cannot be answered."""
    return _changed(request, moment, state="FAILED", lease_until=None, reason=plain(reason, REASON))


def returned(request: Request, reason: str, moment: datetime, limits: Limits, *, refund: bool = False) -> Request:
    """The request back in the queue; FAILED if it was tried too often.

    Args:
        request: It.
        reason: Why it was not finished.
        moment: Now.
        limits: How often it may be tried.
        refund: Whether the attempt does not count, because the worker was asked to stop.
    """
    attempts = request.attempts - refund
    if attempts >= limits.attempts:
        return failed(request, f"{plain(reason, 300)} ({attempts} attempts)", moment)
    return _changed(
        request, moment, state="PENDING", lease_until=None, worker=None, attempts=attempts, reason=plain(reason, REASON)
    )


class Lease:
    """A worker's hold on one request, kept by a heartbeat in a thread.

    Attributes:
        request: The record as this worker last wrote it.
        lost: Set when another has the request now, or the store cannot be reached for a whole lease.
    """

    def __init__(self, store: Store, request: Request, limits: Limits, clock: Clock = now) -> None:
        """Takes over a request that was just claimed."""
        self.request, self.lost = request, threading.Event()
        self._last: Request | None = None
        self._store, self._limits, self._clock = store, limits, clock
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def renew(self) -> None:
        """One heartbeat."""
        with self._lock:
            if self._over.is_set() or self.lost.is_set():
                return
            longer = renewed(self.request, self._clock(), self._limits)
            try:
                if self._store.put_request(longer, self.request):
                    self.request = longer
                elif not self._still_ours():
                    self.lost.set()
            except UserError:
                # The store may come back; until the lease is over nobody else takes the request.
                if self._clock() >= _end(self.request):
                    self.lost.set()

    def close(self, change: Callable[[Request], Request]) -> bool:
        """Ends the lease with a last change; False where the request is another's by now.

        Raises:
            UserError: The store cannot be written now; the heartbeat goes on, and it may be tried again.
        """
        with self._lock:
            self._last = last = self._last or change(self.request)
            if self.lost.is_set() or self.request == last:
                return self.request == last
            written = self._store.put_request(last, self.request)
            if not written and self._still_ours():
                written = self.request == last or self._store.put_request(last, self.request)
            if not written:
                self.lost.set()
                return False
            self.request = last
            self._over.set()
            return True

    def _still_ours(self) -> bool:
        """Takes over what the store holds if we wrote it: a write may have arrived whose answer was lost."""
        held = next((each for each in self._store.requests() if each.key == self.request.key), None)
        if held is None:
            return False
        if held == self._last:
            self._over.set()
        elif held != self.request.model_copy(update={"lease_until": held.lease_until}):
            return False
        self.request = held
        return True

    def _beat(self) -> None:
        while not self._over.wait(self._limits.lease / 3) and not self.lost.is_set():
            self.renew()


def claim(store: Store, worker: str, limits: Limits, *, key: str | None = None, clock: Clock = now) -> Request | None:
    """Takes the oldest request that may be taken; requests that too many workers died over fail on the way.

    Args:
        store: Where the queue is.
        worker: Who takes it.
        limits: How leases count.
        key: Only this request.
        clock: The time.

    Returns:
        The request, RUNNING; None where there is none to take.
    """
    for request in store.requests():
        if (key is not None and request.key != key) or not claimable(request, clock(), limits):
            continue
        taken = claimed(request, worker, clock(), limits)
        if store.put_request(taken, request) and taken.state == "RUNNING":
            return taken
    return None


def _changed(request: Request, moment: datetime, **update: object) -> Request:
    return Request.model_validate({**request.model_dump(), **update, "changed": stamp(moment)})


def _until(moment: datetime, limits: Limits) -> str:
    return stamp(moment + timedelta(seconds=limits.lease))


def _end(request: Request) -> datetime:
    return datetime.fromisoformat(request.lease_until or request.changed)

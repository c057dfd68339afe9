"""Work on what comes, in a thread, while the next is made."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import closing, suppress
from queue import Empty, Queue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_END, _CUT = object(), object()


class _CutOffError(Exception):
    """Nothing comes any more."""


def beside(work: Callable[[Iterator[T]], R], items: Generator[T, None, None]) -> R:
    """What `work` makes of the items, in a thread of its own, while the calling thread makes the items.

    At most one item waits, so that a slow `work` holds the making of items up. Where one side raises, the other ends at
    its next item, and the error is raised here.
    """
    waiting: Queue[Any] = Queue(1)
    made: Future[R] = Future()

    def given() -> Iterator[T]:
        while (item := waiting.get()) is not _END:
            if item is _CUT:
                raise _CutOffError
            yield item

    def run() -> None:
        try:
            made.set_result(work(given()))
        except BaseException as error:  # noqa: BLE001  raised in the calling thread
            made.set_exception(error)
        with suppress(Empty):
            waiting.get_nowait()  # nobody waits for a place any more

    # A daemon: who presses Ctrl-C does not wait for what is thrown away.
    Thread(target=run, name="truegap-beside", daemon=True).start()
    last = _CUT
    try:
        with closing(items):
            for item in items:
                waiting.put(item)
                if made.done():
                    break
        last = _END
    finally:
        if last is _CUT:
            with suppress(Empty):
                waiting.get_nowait()  # nobody wants it any more, and nobody waits until there is a place
        if not made.done():
            waiting.put(last)
    return made.result()

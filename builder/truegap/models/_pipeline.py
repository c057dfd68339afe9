"""Work in threads ahead of the one who needs its results."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


@contextmanager
def ahead(work: Callable[[T], R], items: Iterable[T], threads: int, window: int) -> Iterator[Iterator[R]]:
    """Results in the order of the items, at most `window` of them worked on or waiting at a time.

    Items are taken in the calling thread, the first of them at once. On leaving, work that has not begun is dropped.
    """
    pool = ThreadPoolExecutor(threads, thread_name_prefix="truegap-decode")
    source = iter(items)
    waiting: deque[Future[R]] = deque()

    def fill() -> None:
        waiting.extend(pool.submit(work, item) for item in islice(source, window - len(waiting)))

    def results() -> Iterator[R]:
        while waiting:
            yield waiting.popleft().result()
            fill()

    try:
        fill()
        yield results()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of `size` items, the last perhaps shorter."""
    source = iter(items)
    while batch := list(islice(source, size)):
        yield batch

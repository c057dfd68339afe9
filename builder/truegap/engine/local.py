"""Independent tasks over the cores of this machine."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import connection
from types import ModuleType
from typing import TypeVar

from truegap.errors import UserError

Task = TypeVar("Task")
Result = TypeVar("Result")


def _end_with_parent() -> None:
    """Ends a worker whose parent was killed: nobody waits for its result, and it would go on with the next task."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _main_not_run_again(function: Callable[..., object]) -> Iterator[None]:
    """Workers that start meanwhile do not run the user's script again, to define what it defines.

    They would do all that it does, if it has no `if __name__ == "__main__"`. A function of the script itself needs it.
    """
    if b"__main__" in pickle.dumps(function):
        yield
        return
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def check_workers(workers: int) -> int:
    """The number of workers, if it is one.

    Raises:
        UserError: It is not positive.
    """
    if workers < 1:
        raise UserError(f"--workers {workers}: give a number of processes, at least 1")
    return workers


def run_tasks(function: Callable[[Task], Result], tasks: Sequence[Task], *, workers: int) -> Iterator[Result]:
    """Runs a function over tasks and yields each result as it comes, in no particular order.

    Args:
        function: Picklable, with no effect that another task sees.
        tasks: Picklable.
        workers: Processes; with 1 everything runs in this process.

    Yields:
        The results. When the caller stops early or is interrupted, tasks that have not begun are not begun.

    Raises:
        UserError: The number of workers is not positive, or a worker died (killed, or out of memory).
    """
    check_workers(workers)
    if workers == 1 or len(tasks) <= 1:
        yield from map(function, tasks)
        return
    from concurrent.futures.process import BrokenProcessPool

    # Forked children would inherit threads and locks of OpenCV and Arrow; spawned ones start clean.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(tasks)), mp_context=context, initializer=_end_with_parent) as pool:
        with _main_not_run_again(function):
            # Workers start as their tasks come, and not later.
            waiting = {pool.submit(function, task) for task in tasks}
        try:
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        except BrokenProcessPool:
            raise UserError(
                "a worker process died, perhaps for want of memory: repeat the command with fewer --workers"
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

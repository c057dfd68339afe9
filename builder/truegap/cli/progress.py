"""Progress of long work on standard error: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Advance = Callable[[int], None]

_LINES = 5


@contextmanager
def progress(what: str, total: int) -> Iterator[Advance]:
    """Shows how far something is.

    Args:
        what: A few words.
        total: How many steps there are.

    Yields:
        What to call with the number of steps just done.
    """
    console = Console(stderr=True)
    if console.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console) as bar:
            task = bar.add_task(what, total=total)
            yield lambda steps: bar.advance(task, steps)
        return
    done = 0

    def advance(steps: int) -> None:
        nonlocal done
        before, done = done, done + steps
        if total and before * _LINES // total < done * _LINES // total:
            console.print(f"{what}: {done} of {total}", highlight=False)

    yield advance

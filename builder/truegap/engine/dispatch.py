"""One face over the engines: the same tasks, here or on a cluster, give the same results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeVar, cast, get_args

from truegap.cores import cores
from truegap.engine import local
from truegap.errors import UserError

Task = TypeVar("Task")
Result = TypeVar("Result")

Engine = Literal["local", "ray"]


def check_engine(engine: str) -> Engine:
    """The engine of this name.

    Raises:
        UserError: There is none.
    """
    if engine not in get_args(Engine):
        raise UserError(f"--engine {engine}: use one of {', '.join(get_args(Engine))}")
    return cast("Engine", engine)


def run_tasks(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    workers: int | None = None,
    engine: Engine = "local",
    folder: Path | None = None,
) -> Iterator[Result]:
    """Runs a function over tasks and yields each result as it comes, in no particular order.

    Args:
        function: Importable where it runs, with no effect that another task sees.
        tasks: Picklable.
        workers: How many tasks run at once at most; None for all cores, or all that the cluster has. With 1, `local`
            runs everything in this process.
        engine: `local`, the cores of this machine; `ray`, an existing Ray cluster, see `truegap.engine.ray`.
        folder: Where the tasks write; it exists. On a cluster it lies on a file system that all machines share, and
            each of them is asked whether it sees it.

    Yields:
        The results. When the caller stops early or is interrupted, tasks that have not begun are not begun.

    Raises:
        UserError: The number of workers is not positive, a worker died (with `ray`: again and again), or there is no
            cluster to run on.
    """
    if engine == "local":
        return local.run_tasks(function, tasks, workers=cores() if workers is None else workers)
    from truegap.build.plan import VERSIONED
    from truegap.engine.ray import run_on_ray

    return run_on_ray(function, tasks, workers=workers, folder=folder, packages=VERSIONED)

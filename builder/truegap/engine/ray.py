"""Independent tasks over the workers of a Ray cluster that is there already."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar
from uuid import uuid4

from truegap.engine.local import check_workers
from truegap.errors import UserError

Task = TypeVar("Task")
Result = TypeVar("Result")

MAX_RETRIES = 3
"""How often a task begins again after its worker, or its machine, died."""

_PATIENCE = 30.0
"""Seconds to wait for machines to answer, and for interrupted tasks to end."""


def run_on_ray(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    workers: int | None = None,
    folder: Path | None = None,
    packages: Sequence[str] = (),
) -> Iterator[Result]:
    """Runs a function over tasks on a Ray cluster and yields each result as it comes, in no particular order.

    The cluster is the one named by `RAY_ADDRESS`, else the one that runs on this machine. Every machine of it needs the
    same truegap, and sees the files that tasks name, sources and output alike, under the same paths: a shared file
    system.

    Args:
        function: Importable on every machine; one that is killed in the middle may be called again with the same task.
        tasks: Picklable.
        workers: How many tasks run at once at most; None leaves it to the cluster.
        folder: Where the tasks write: every machine is asked whether it sees it.
        packages: Every machine is asked whether it has the same versions of these.

    Yields:
        The results. When a worker is killed, its task alone is done again. When the caller stops early or is
        interrupted, tasks that have not begun are not begun, and those that run are stopped.

    Raises:
        UserError: Ray is not installed, there is no cluster, a machine does not see the folder or has another version,
            or a task's worker died again and again.
    """
    if workers is not None:
        check_workers(workers)
    ray = load_ray()
    if not tasks:
        return
    with connected(ray):
        check_machines(ray, folder, packages)
        call = ray.remote(num_cpus=1, max_retries=MAX_RETRIES)(_call)
        remaining = iter(tasks)
        running = [
            call.remote(function, task) for _, task in zip(range(workers or len(tasks)), remaining, strict=False)
        ]
        try:
            while running:
                done, running = ray.wait(running)
                result = result_of(ray, done[0])
                running.extend(call.remote(function, task) for _, task in zip(done, remaining, strict=False))
                yield result
        finally:
            _cancel(ray, running)


def _call(function: Callable[[Task], Result], task: Task) -> Result:
    return function(task)


def load_ray() -> ModuleType:
    """Ray itself.

    Raises:
        UserError: It is not installed.
    """
    try:
        import ray
    except ImportError:
        raise UserError("--engine ray needs Ray: pip install 'truegap[ray]'") from None
    module: ModuleType = ray
    return module


@contextmanager
def connected(ray: ModuleType) -> Iterator[None]:
    """A connection to the cluster: the caller's where there is one, else our own, closed afterwards.

    Raises:
        UserError: There is no cluster.
    """
    if ray.is_initialized():
        yield
        return
    address = os.environ.get("RAY_ADDRESS") or "auto"
    try:
        _knock(address)
        ray.init(address=address, logging_level="ERROR", log_to_driver=False)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        where = "on this machine" if address == "auto" else f"at RAY_ADDRESS={address}"
        raise UserError(
            f"--engine ray: no Ray cluster {where}: start one with `ray start --head`, or set RAY_ADDRESS=host:port"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """Ray tries for minutes, with a page of warnings, where nobody listens.

    Raises:
        OSError: Nobody listens.
    """
    host, _, port = address.rpartition(":")
    if host and port.isdigit() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()


def check_machines(ray: ModuleType, folder: Path | None, packages: Sequence[str]) -> None:
    """Asks every machine what it sees and has: what differs would fail later, or give other bytes.

    Raises:
        UserError: A machine differs from this one, or does not answer.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = _versions(packages)
    with _marker(folder) as (path, token):
        ask = ray.remote(num_cpus=0, max_retries=MAX_RETRIES)(_report)
        asked = {
            ask.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote(
                path, tuple(packages)
            ): node["NodeManagerAddress"]
            for node in ray.nodes()
            if node["Alive"] and node["Resources"].get("CPU")
        }
        answered, silent = ray.wait(list(asked), num_returns=len(asked), timeout=_PATIENCE) if asked else ([], [])
        if not answered or silent:
            missing = ", ".join(sorted({asked[each] for each in silent})) or "of the cluster"
            raise UserError(f"--engine ray: machine {missing} does not answer: see `ray status`")
        for reference in answered:
            _compare(asked[reference], result_of(ray, reference), here, token, folder)


def _compare(machine: str, report: tuple[str, dict[str, str]], here: dict[str, str], token: str, folder: Any) -> None:
    seen, there = report
    for package, ours in here.items():
        if there[package] != ours:
            raise UserError(
                f"--engine ray: machine {machine} has {package} {there[package]} and this one {ours}: results "
                "would differ; install the same versions"
            )
    if seen != token:
        raise UserError(
            f"--engine ray: machine {machine} does not see {folder}: use a folder on a file system that all machines "
            "share"
        )


@contextmanager
def _marker(folder: Path | None) -> Iterator[tuple[Path | None, str]]:
    """A file in the folder that can only be found where the folder is the same."""
    if folder is None:
        yield None, ""
        return
    token = uuid4().hex
    path = folder.resolve() / f".seen-{token}"
    path.write_text(token)
    try:
        yield path, token
    finally:
        path.unlink(missing_ok=True)


def _report(path: Path | None, packages: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Runs on a machine of the cluster: what the marker says there, and which versions it has."""
    try:
        seen = path.read_text() if path is not None else ""
    except OSError:
        seen = "absent"
    return seen, _versions(packages)


def _versions(packages: Sequence[str]) -> dict[str, str]:
    def installed(package: str) -> str:
        try:
            return version(package)
        except PackageNotFoundError:
            return "(not installed)"

    return {"Python": platform.python_version(), **{package: installed(package) for package in packages}}


def result_of(ray: ModuleType, reference: Any) -> Any:
    """A finished task's result.

    Raises:
        UserError: Its worker died.
        Exception: The task's own, without Ray around it.
    """
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise own_error(error) from None
    except ray.exceptions.RayError as error:
        raise death(error, MAX_RETRIES + 1) from error


def own_error(error: Any) -> Exception:
    """The exception that a task raised, or a line where its machine lacks something."""
    cause: Exception = error.cause if isinstance(error.cause, Exception) else error
    if isinstance(cause, ModuleNotFoundError):
        return UserError(f"--engine ray: a machine of the cluster lacks {cause.name}: install the same truegap there")
    return cause


def death(error: Exception, times: int) -> UserError:
    """What a user is told when a task's worker died once too often."""
    return UserError(
        f"--engine ray: a task's worker died {times} times, perhaps for want of memory "
        f"({type(error).__name__}): see `ray status`, and repeat the command with fewer --workers"
    )


def _cancel(ray: ModuleType, running: Sequence[Any]) -> None:
    """Nothing writes any more when this returns, unless a task outlasts our patience."""
    for reference in running:
        # Tasks may be killed at any moment, so there is no need to ask them; one inside a library would not hear it.
        ray.cancel(reference, force=True)
    if running:
        ray.wait(list(running), num_returns=len(running), timeout=_PATIENCE)

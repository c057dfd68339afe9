"""Workers of a Ray cluster, each of which makes something once, such as a model, and keeps it from task to task."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Generic, TypeVar

from truegap.engine.local import check_workers
from truegap.engine.ray import MAX_RETRIES, check_machines, connected, death, load_ray, own_error
from truegap.errors import UserError

Made = TypeVar("Made")
Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Staff:
    """How many workers there are at most, and what each of them has to itself."""

    workers: int
    cpus: int
    gpus: float


def staff(machines: Sequence[tuple[float, float]], workers: int | None, gpus: float | None) -> Staff:
    """How the machines of a cluster are shared out.

    Args:
        machines: CPUs and GPUs of each.
        workers: How many are wanted at most; None for one per GPU, or per CPU where no worker has a GPU.
        gpus: Of each worker, perhaps a part of one; None for one where the cluster has any.

    Raises:
        UserError: The number of workers is not positive, Ray does not give such a share of GPUs, or no machine has it.
    """
    if gpus is None:
        gpus = 1.0 if any(has for _, has in machines) else 0.0
    if gpus < 0 or (gpus > 1 and gpus % 1):
        raise UserError(f"--gpus {gpus:g}: give a whole number, or a part of 1")
    if gpus:
        room = sum(min(int(has / gpus + 1e-9), int(cpus)) for cpus, has in machines)
        if not room:
            raise UserError(
                f"--engine ray: no machine of the cluster has {gpus:g} GPU for a worker: use fewer --gpus, or "
                "--device cpu"
            )
        return Staff(room if workers is None else check_workers(workers), 1, gpus)
    if workers is None:
        return Staff(max(1, sum(int(cpus) for cpus, _ in machines)), 1, 0.0)
    check_workers(workers)
    most = max((int(cpus) for cpus, _ in machines), default=1)
    fitting = (n for n in range(most, 1, -1) if sum(int(cpus) // n for cpus, _ in machines) >= workers)
    return Staff(workers, next(fitting, 1), 0.0)


class Crew(Generic[Made]):
    """Workers that come as the tasks need them.

    Attributes:
        staff: How many come at most, and what each has.
    """

    def __init__(self, ray: ModuleType, make: Callable[[], Made], shares: Staff) -> None:
        """Begins nothing yet; see `crew`."""
        self.staff = shares
        self._ray = ray
        self._make = make
        self._idle: list[Any] = []

    def call(self, function: Callable[[Made, Task], Result], task: Task) -> Result:
        """One task's result; errors as of `run`."""
        ((_, result),) = self.run(function, 1, lambda _: task)
        return result

    def run(
        self, function: Callable[[Made, Task], Result], count: int, task: Callable[[int], Task]
    ) -> Generator[tuple[int, Result], None, None]:
        """Runs tasks and yields each one's number and result as it comes, in no particular order.

        A worker has one task at a time. When it is killed, or its machine is lost, that task alone is done again, by
        whichever worker is free. When the caller stops early or is interrupted, the tasks that run are stopped.

        Args:
            function: Importable on every machine; takes what the worker made, and a task.
            count: How many tasks there are.
            task: Gives a task by its number when a worker takes it, and again when that worker died; picklable.

        Raises:
            UserError: A task's worker died again and again.
        """
        errors = self._ray.exceptions
        waiting = deque(range(count))
        deaths: Counter[int | None] = Counter()
        # A worker that is on its way has no task: it may have to wait until the cluster has room for it.
        busy: dict[Any, tuple[Any, int | None]] = {}
        try:
            while waiting or any(number is not None for _, number in busy.values()):
                while waiting and self._idle:
                    worker, number = self._idle.pop(), waiting.popleft()
                    busy[worker.do.remote(function, task(number))] = worker, number
                while len(busy) < self.staff.workers and sum(n is None for _, n in busy.values()) < len(waiting):
                    worker = self._started()
                    busy[worker.ready.remote()] = worker, None
                (done,), _ = self._ray.wait(list(busy), num_returns=1)
                worker, finished = busy.pop(done)
                try:
                    result = self._ray.get(done)
                except errors.RayTaskError as error:
                    self._idle.append(worker)
                    raise own_error(error) from None
                except errors.RayError as error:
                    self._kill(worker)
                    deaths[finished] += 1
                    if deaths[finished] > MAX_RETRIES:
                        raise death(error, deaths[finished]) from error
                    if finished is not None:
                        waiting.appendleft(finished)
                    continue
                self._idle.append(worker)
                deaths.pop(None, None)
                if finished is not None:
                    yield finished, result
        finally:
            for worker, _ in busy.values():
                self._kill(worker)

    def close(self, keep: int = 0) -> None:
        """Ends the workers, but for so many; more come again where tasks need them."""
        while len(self._idle) > keep:
            self._kill(self._idle.pop())

    def _started(self) -> Any:
        options = {"num_cpus": self.staff.cpus, "num_gpus": self.staff.gpus}
        return self._ray.remote(**options)(_Worker).remote(self._make, os.getcwd())  # noqa: PTH109 (only a name there)

    def _kill(self, worker: Any) -> None:
        with suppress(self._ray.exceptions.RayError):
            self._ray.kill(worker)


class _Worker:
    """Runs on a machine of the cluster, in a process of its own."""

    def __init__(self, make: Callable[[], Any], folder: str) -> None:
        self._make = make
        self._made: list[Any] = []
        with suppress(OSError):
            os.chdir(folder)  # what the user names by a relative path is found where it is shared

    def ready(self) -> None:
        """Answers once there was room for this worker."""

    def do(self, function: Callable[[Any, Any], Any], task: Any) -> Any:
        """A task's result; the first one makes what all of them need, so that a death there counts as the task's."""
        if not self._made:
            self._made.append(self._make())
        return function(self._made[0], task)


@contextmanager
def crew(
    make: Callable[[], Made], *, workers: int | None = None, gpus: float | None = 0, packages: Sequence[str] = ()
) -> Iterator[Crew[Made]]:
    """Workers of the cluster that `truegap.engine.ray` describes, ended on leaving.

    Args:
        make: What every worker calls once; importable on every machine.
        workers: How many at most; see `staff`.
        gpus: Of each worker; see `staff`.
        packages: Every machine is asked whether it has the same versions of these.

    Raises:
        UserError: Ray is not installed, there is no cluster, a machine has another version, or no machine has the GPUs.
    """
    if workers is not None:
        check_workers(workers)
    ray = load_ray()
    with connected(ray):
        check_machines(ray, None, packages)
        alive = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        machines = [(each.get("CPU", 0.0), each.get("GPU", 0.0)) for each in alive]
        made = Crew(ray, make, staff(machines, workers, gpus))
        try:
            yield made
        finally:
            made.close()

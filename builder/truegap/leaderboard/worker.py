"""The worker: takes requests from the queue, evaluates, and posts rows; any number of them may work on one store."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from truegap.errors import UserError, first_line
from truegap.hub.commit import AbsentError
from truegap.hub.models import UnknownRevisionError
from truegap.hub.snapshots import snapshot
from truegap.leaderboard.checks import RefusedError, check_offered, examine, find_model
from truegap.leaderboard.details import details_of, keep_details
from truegap.leaderboard.job import Outcome, clean, run_job
from truegap.leaderboard.lease import Lease, claim, failed, finished, returned
from truegap.leaderboard.limits import Limits
from truegap.leaderboard.model_files import WEIGHTS
from truegap.leaderboard.request import Request, now
from truegap.leaderboard.row import row_of
from truegap.leaderboard.store import Store
from truegap.models.files import SIDE_FILES
from truegap.results.runs import Run, read_run
from truegap.results.show import plain

_MISTAKE = 2
"""Exit status of a command that was asked for what cannot be done: trying again changes nothing."""

Say = Callable[[str], object]
Change = Callable[[Request], Request]


def work(
    store: Store,
    *,
    once: bool = False,
    key: str | None = None,
    limits: Limits | None = None,
    stop: threading.Event | None = None,
    progress: Say = lambda _: None,
    device: str = "auto",
    engine: Literal["local", "ray"] = "local",
    idle: float = 20.0,
) -> int:
    """Evaluates what waits in the queue, one request after the other.

    Args:
        store: Where the queue is, and where rows go.
        once: Ends after one request, or at once where none waits.
        key: Only this request; with `once`, a job of its own for each.
        limits: How it is run.
        stop: When set, what runs goes back to the queue and this returns.
        progress: Called with a line now and then.
        device: Where models run, as `truegap evaluate --device` takes it.
        engine: As `truegap evaluate --engine` takes it.
        idle: Seconds to wait while the queue is empty, or the store cannot be reached.

    Returns:
        How many requests were finished or failed.

    Raises:
        UserError: With `once`: the store cannot be read or written.
    """
    limits, stop = limits or Limits(), stop or threading.Event()
    shop = _Shop(store, limits, stop, progress, device, engine)
    name, done = f"{socket.gethostname()[:80]}:{os.getpid()}", 0
    while not stop.is_set():
        try:
            request = claim(store, name, limits, key=key)
            if request is not None:
                progress(f"{request.model} on {request.benchmark}, {request.protocol}: attempt {request.attempts}")
                done += _handle(shop, request)
        except (UserError, OSError) as error:
            if once:
                raise
            progress(f"waiting: {first_line(error)}")
            request = None
        if once:
            break
        if request is None:
            stop.wait(idle)
    return done


def start_worker(
    store: Store, *, device: str = "auto", folders: bool = False, log: Path | None = None
) -> subprocess.Popen[bytes]:
    """Starts a worker as a process of its own, such as beside a Space's page; it ends when that does.

    Args:
        store: Where the queue is.
        device: Where models run.
        folders: Whether models may be folders of this machine.
        log: A file that gets what it prints; by default it prints where this process does.
    """
    command = [sys.executable, "-m", "truegap", "leaderboard", "work", f"--store={store.where}", f"--device={device}"]
    command += ["--folders" if folders else "--no-folders", f"--parent={os.getpid()}"]
    output = None if log is None else log.open("ab")
    try:
        # Our own command; no shell sees its arguments.
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)  # noqa: S603
    finally:
        if output is not None:
            output.close()


@dataclass(frozen=True, slots=True)
class _Shop:
    """Where and how requests are worked on."""

    store: Store
    limits: Limits
    stop: threading.Event
    say: Say
    device: str
    engine: str


def _handle(shop: _Shop, request: Request) -> bool:
    """Evaluates a claimed request, and says in the queue what became of it; whether that was an end."""
    with (
        Lease(shop.store, request, shop.limits) as lease,
        tempfile.TemporaryDirectory(prefix="truegap-work-", ignore_cleanup_errors=True) as folder,
    ):
        change, log = _evaluate(shop, request, Path(folder), lambda: shop.stop.is_set() or lease.lost.is_set())
        kept = not lease.lost.is_set()
        if kept and log:
            shop.store.put_log(request.key, log)
        kept = kept and lease.close(change)
    last = lease.request
    said = f"{last.state} {last.reason}".rstrip() if kept else "another worker has it now"
    shop.say(f"{request.key[:12]}: {said}")
    return kept and last.state in {"FINISHED", "FAILED"}


def _evaluate(shop: _Shop, request: Request, folder: Path, stopped: Callable[[], bool]) -> tuple[Change, str]:
    """What the request becomes, and its log."""
    if (run_id := _known(shop.store, request)) is not None:
        return partial(_finished, run_id), ""
    try:
        task = _prepare(request, shop.limits)
    except (RefusedError, AbsentError, UnknownRevisionError) as error:
        return partial(_failed, clean(str(error), folder)), ""
    except UserError as error:
        return partial(_again, clean(str(error), folder), shop.limits), ""
    out, cluster = folder / "run", shop.engine != "local"
    arguments = [*task.arguments, f"--out={out}", f"--device={shop.device}"]
    outcome = run_job(
        [*arguments, f"--engine={shop.engine}"] if cluster else arguments,
        folder,
        read=task.read,
        limits=shop.limits,
        stopped=stopped,
        device=shop.device,
        cluster=cluster,
    )
    return _verdict(shop, request, task, out, outcome), outcome.log


def _verdict(shop: _Shop, request: Request, task: _Task, out: Path, outcome: Outcome) -> Change:
    """What an outcome makes of a request; a good one becomes a row."""
    limits = shop.limits
    if outcome.late:
        return partial(_failed, f"it took longer than {limits.seconds / 3600:.1f} hours, the most on this worker")
    if outcome.status is None:
        return partial(_again, "its worker was stopped", limits, refund=True)
    if outcome.status == _MISTAKE:
        return partial(_failed, _last_line(outcome))
    if outcome.status != 0:
        return partial(_again, _death(outcome), limits)
    try:
        run = _checked(read_run(out), request, task)
    except UserError as error:
        return partial(_failed, clean(str(error), out.parent))
    row = row_of(run, kind="verified", request=request.key)
    # The row last: whoever finds it finds all of it, and a worker that dies before does it again.
    keep_details(shop.store, row.key, details_of(run))
    shop.store.submit(row, run.scores)
    return partial(_finished, run.record.run_id)


def _finished(run_id: str, held: Request) -> Request:
    return finished(held, run_id, now())


def _failed(reason: str, held: Request) -> Request:
    return failed(held, reason, now())


def _again(reason: str, limits: Limits, held: Request, *, refund: bool = False) -> Request:
    return returned(held, reason, now(), limits, refund=refund)


def _known(store: Store, request: Request) -> str | None:
    """The run that answers a request already: its worker died after posting the row."""
    rows = store.read().rows
    return next((row.run_id for row in rows if row.request == request.key and row.kind == "verified"), None)


@dataclass(frozen=True, slots=True)
class _Task:
    """What is run: the command's arguments, what it reads, and the benchmark as it is told it."""

    arguments: list[str]
    read: list[Path]
    benchmark: str


def _prepare(request: Request, limits: Limits) -> _Task:
    """Checks a request once more, since others may write to the queue, and brings its files here."""
    from huggingface_hub import constants

    check_offered(request, limits)
    source = find_model(request.model, None if request.local else request.revision, limits)
    if source.revision != request.revision:
        raise RefusedError(f"model {request.model}: its files changed since it was submitted; submit it again")
    found = examine(source, limits)
    spec, cache = request.model, Path(constants.HF_HUB_CACHE)
    arguments, read = [f"--protocol={request.protocol}", f"--profile={request.profile}"], [cache]
    if request.local:
        read.append(Path(request.model))
    else:
        wanted = [*SIDE_FILES, *WEIGHTS[found.library]]
        snapshot(request.model, request.revision, wanted, kind="model", subfolders=True)
        spec = request.model if found.library == "transformers" else f"hf-hub:{request.model}"
        arguments.append(f"--model-revision={request.revision}")
    benchmark = request.benchmark
    if request.benchmark_revision is None:
        read.append(Path(benchmark))
    else:
        benchmark += f"@{request.benchmark_revision}"
        snapshot(request.benchmark, request.benchmark_revision, ["manifest.json", "data/*"])
    return _Task(["evaluate", f"--model={spec}", f"--benchmark={benchmark}", *arguments], read, benchmark)


def _checked(run: Run, request: Request, task: _Task) -> Run:
    """The run, if it answers the request: what the process wrote is not trusted either."""
    record = run.record
    told = (record.benchmark.spec, record.benchmark.content, record.protocol)
    if told != (task.benchmark, request.content, request.protocol):
        raise UserError("the benchmark is not what it was when the model was submitted: submit it again")
    if str(record.options.get("profile", "")).partition("-")[0] != request.profile:
        raise UserError("the run is of another profile: submit it again")
    if not request.local and record.model.revision != request.revision:
        raise UserError(f"the run is of revision {plain(record.model.revision)}, not of the one that was asked for")
    return run


def _last_line(outcome: Outcome) -> str:
    lines = [line.strip() for line in outcome.log.splitlines() if line.strip()]
    return lines[-1].removeprefix("truegap: ") if lines else "the evaluation refused to start"


def _death(outcome: Outcome) -> str:
    assert outcome.status is not None
    if outcome.status < 0:
        return f"the evaluation was killed (signal {-outcome.status}); too little memory is the usual reason"
    return f"the evaluation broke off: {_last_line(outcome)}"


def stop_with_parent(parent: int, stop: threading.Event, seconds: float = 2.0) -> None:
    """Sets `stop` once the process that started this one is gone."""

    def watch() -> None:
        while os.getppid() == parent and not stop.wait(seconds):
            pass
        stop.set()

    threading.Thread(target=watch, name="parent", daemon=True).start()

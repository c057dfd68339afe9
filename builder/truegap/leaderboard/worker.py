"""The worker: takes requests from the queue, evaluates, and posts rows; any number of them may work on one store."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

from truegap.build.manifest import read_manifest
from truegap.errors import UserError, first_line
from truegap.hub.commit import AbsentError
from truegap.hub.models import UnknownRevisionError
from truegap.hub.snapshots import snapshot
from truegap.leaderboard.checks import RefusedError, check_offered, examine, find_model
from truegap.leaderboard.default_benchmark import default_benchmark
from truegap.leaderboard.details import details_of, keep_details
from truegap.leaderboard.foreign_run import check_run, take_run
from truegap.leaderboard.job import Outcome, clean, run_job
from truegap.leaderboard.lease import Lease, claim, failed, finished, returned
from truegap.leaderboard.limits import DEFAULT_BENCHMARK, Limits
from truegap.leaderboard.model_files import WEIGHTS
from truegap.leaderboard.request import Request, now
from truegap.leaderboard.row import Row, row_of
from truegap.leaderboard.store import Store
from truegap.leaderboard.stored import LARGEST, written
from truegap.leaderboard.wish import grant
from truegap.models.files import SIDE_FILES
from truegap.results.show import plain

_LOOK = 0.5
"""Seconds between two looks at whether a worker is still there."""
_MISTAKE = 2
"""Exit status of a command that was asked for what cannot be done: trying again changes nothing."""

Say = Callable[[str], object]
Change = Callable[[Request], Request]
Done = TypeVar("Done")


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
        key: Only this request, by its key or how that begins; with `once`, a job of its own for each.
        limits: How it is run.
        stop: When set, what runs goes back to the queue and this returns.
        progress: Called with a line now and then.
        device: Where models run, as `truegap evaluate --device` takes it.
        engine: As `truegap evaluate --engine` takes it.
        idle: Seconds to wait while the queue is empty, or the store cannot be reached.

    Returns:
        How many requests were finished or failed.

    Raises:
        UserError: No request has the key, or several begin like it; with `once`: the store cannot be read or written.
    """
    limits, stop = limits or Limits(), stop or threading.Event()
    key = None if key is None else _whole(store, key)
    shop = _Shop(store, limits, stop, progress, device, engine)
    name, done = f"{socket.gethostname()[:80]}:{os.getpid()}", 0
    while not stop.is_set():
        try:
            request = claim(store, name, limits, key=key)
            if request is not None:
                progress(f"{request.model} on {request.benchmark}, {request.protocol}: attempt {request.attempts}")
                done += _handle(shop, request)
        except Exception as error:  # a worker that died of one bad moment would leave all others waiting
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


def keep_working(
    store: Store, over: threading.Event, *, device: str = "auto", folders: bool = False, pause: float = 30.0
) -> None:
    """Keeps a worker running: one that died, such as for want of memory, is followed by another.

    Args:
        store: Where the queue is.
        over: When set, what runs goes back to the queue, the worker ends, and no other is started.
        device: Where models run.
        folders: Whether models may be folders of this machine.
        pause: Seconds between two.
    """
    while not over.is_set():
        # A machine that is short of memory may refuse to start it for a while.
        with suppress(OSError):
            worker = start_worker(store, device=device, folders=folders)
            while worker.poll() is None:
                if over.wait(_LOOK):
                    worker.terminate()
                    worker.wait()
        over.wait(pause)


def _whole(store: Store, key: str) -> str:
    """The key of the one request whose key begins so."""
    found = [each.key for each in store.requests() if each.key.startswith(key)]
    if len(found) != 1:
        raise UserError(f"{plain(key)} is the beginning of {len(found) or 'no'} keys: see `truegap leaderboard queue`")
    return found[0]


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
        try:
            change, log = _evaluate(shop, request, Path(folder), lambda: shop.stop.is_set() or lease.lost.is_set())
        except Exception as error:  # noqa: BLE001  # whatever one request does to a worker, the next one is not to wait for
            change, log = partial(_again, clean(_stumbled(shop, error), Path(folder)), shop.limits), ""
        logged = lease.lost.is_set() or _keep_log(shop, request.key, log)
        kept = _patiently(shop, lambda: lease.close(change))
        if kept and not logged:
            _keep_log(shop, request.key, log)
    last = lease.request
    said = f"{last.state} {last.reason}".rstrip() if kept else "another worker has it now"
    shop.say(f"{request.key[:12]}: {said}")
    return kept and last.state in {"FINISHED", "FAILED"}


def _evaluate(shop: _Shop, request: Request, folder: Path, stopped: Callable[[], bool]) -> tuple[Change, str]:
    """What the request becomes, and its log."""
    if (row := _known(shop.store, request)) is not None:
        return partial(_finished, row.run_id, grant(shop.store, request, row)), ""
    with _as_before(request):
        try:
            task = _prepare(request, shop.limits, shop.say)
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
    with tempfile.TemporaryDirectory(prefix="truegap-run-", ignore_cleanup_errors=True) as mine:
        try:
            run = take_run(out, Path(mine))
            check_run(run, request, read_manifest(task.folder), benchmark=task.benchmark, spec=task.spec)
            row = row_of(run, kind="verified", request=request.key, benchmark=task.name)
            if len(written(row)) > LARGEST:
                raise UserError(f"the row has more than {LARGEST} bytes")  # noqa: TRY301  # as the other reasons
        except UserError as error:
            return partial(_failed, clean(str(error), Path(mine)))
        details = details_of(run)
    # The row last: whoever finds it finds all of it, and a worker that dies before does it again.
    _patiently(shop, lambda: keep_details(shop.store, row.key, details))
    held = _patiently(shop, lambda: shop.store.submit(row, run.scores)).row
    # Another worker may have been first, and only what the leaderboard shows is offered.
    told = grant(shop.store, request, held if held.request == request.key else row)
    return partial(_finished, run.record.run_id, told)


def _patiently(shop: _Shop, write: Callable[[], Done]) -> Done:
    """Writes, again and again where the store is out of reach for a while: an evaluation may have taken hours."""
    for _ in range(shop.limits.writes - 1):
        try:
            return write()
        except (UserError, OSError) as error:
            if shop.stop.is_set():
                raise
            shop.say(f"waiting: {first_line(error)}")
            shop.stop.wait(shop.limits.pause)
    return write()


def _keep_log(shop: _Shop, key: str, log: str) -> bool:
    """Whether the log is kept; a request ends without it too."""
    try:
        if log:
            shop.store.put_log(key, log)
    except (UserError, OSError) as error:
        shop.say(f"no log: {first_line(error)}")
        return False
    return True


def _stumbled(shop: _Shop, error: Exception) -> str:
    """What everybody reads of an error of the worker's own; the whole of it is for who runs it."""
    if isinstance(error, UserError):
        return str(error)
    shop.say("".join(traceback.format_exception(error)))
    return f"the worker itself failed: {type(error).__name__}"


@contextmanager
def _as_before(request: Request) -> Iterator[None]:
    """Removes a model from the cache afterwards that was not there: a disk holds few of many."""
    place = None if request.local else _cached("model", request.model)
    there = place is None or place.exists()
    try:
        yield
    finally:
        if place is not None and not there:
            shutil.rmtree(place, ignore_errors=True)


def _cached(kind: str, repository: str) -> Path:
    """Where what is downloaded of a repository lies."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    return Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repository, repo_type=kind)


def _finished(run_id: str, told: dict[str, str | None], held: Request) -> Request:
    return finished(held, run_id, now(), **told)


def _failed(reason: str, held: Request) -> Request:
    return failed(held, reason, now())


def _again(reason: str, limits: Limits, held: Request, *, refund: bool = False) -> Request:
    return returned(held, reason, now(), limits, refund=refund)


def _known(store: Store, request: Request) -> Row | None:
    """The row that answers a request already: its worker died after posting it, or a pull request was wished later."""
    rows = store.read().rows
    return next((row for row in rows if row.request == request.key and row.kind == "verified"), None)


@dataclass(frozen=True, slots=True)
class _Task:
    """What is run: the command's arguments, what it reads, the model and the benchmark as it is told them."""

    arguments: list[str]
    read: list[Path]
    spec: str
    benchmark: str
    folder: Path
    """Where the benchmark lies."""
    name: str | None = None
    """What the row calls the benchmark, if not what the evaluation was told."""


def _prepare(request: Request, limits: Limits, say: Say) -> _Task:
    """Checks a request once more, since others may write to the queue, and brings its files here."""
    check_offered(request, limits)
    source = find_model(request.model, None if request.local else request.revision, limits)
    if source.revision != request.revision:
        raise RefusedError(f"model {request.model}: its files changed since it was submitted; submit it again")
    found = examine(source, limits)
    spec, read = request.model, []
    arguments = [f"--protocol={request.protocol}", f"--profile={request.profile}"]
    if request.local:
        read.append(Path(request.model))
    else:
        wanted = [*SIDE_FILES, *WEIGHTS[found.library]]
        snapshot(request.model, request.revision, wanted, kind="model", subfolders=True)
        spec = request.model if found.library == "transformers" else f"hf-hub:{request.model}"
        arguments.append(f"--model-revision={request.revision}")
        read.append(_cached("model", request.model))
    benchmark, name = request.benchmark, None
    if benchmark == DEFAULT_BENCHMARK:
        benchmark, name = str(folder := _default(request, say)), benchmark
        read.append(folder)
    elif request.benchmark_revision is None:
        folder = Path(benchmark)
        read.append(folder)
    else:
        benchmark += f"@{request.benchmark_revision}"
        folder = snapshot(request.benchmark, request.benchmark_revision, ["manifest.json", "data/*/test-*"]).folder
        read.append(_cached("dataset", request.benchmark))
    arguments = ["evaluate", f"--model={spec}", f"--benchmark={benchmark}", *arguments]
    return _Task(arguments, read, spec, benchmark, folder, name)


def _default(request: Request, say: Say) -> Path:
    """The default benchmark as this machine makes it, if its libraries draw and encode as those where it was asked."""
    folder = default_benchmark(say)
    if read_manifest(folder).content != request.content:
        raise UserError(
            f"benchmark {request.benchmark}: this worker's libraries make other pixels of it than those where it was "
            "asked for: use the same versions on both"
        )
    return folder


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

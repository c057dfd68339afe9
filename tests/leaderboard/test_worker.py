"""The worker from end to end: a request becomes a row, or fails with a reason that everybody sees."""

import os
import shutil
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from loopback_hub import TOKEN
from queue_factory import CARD, hub_model, make_request, manifest, safetensors
from run_factory import run_record, scores_record
from tiny import save_clip
from truegap.cli.app import app
from truegap.cli.pages import load_page
from truegap.errors import UserError
from truegap.hub.snapshots import snapshot
from truegap.leaderboard import (
    Limits,
    LocalStore,
    ask,
    default_benchmark,
    keep_working,
    open_store,
    start_worker,
    work,
    worker,
)
from truegap.leaderboard.foreign_run import LARGEST_ANSWERS
from truegap.leaderboard.job import Outcome
from truegap.leaderboard.request import key_of
from truegap.results.runs import write_run

LIMITS = Limits(folders=True, rest=0.0)


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def asked(tmp_path):
    """A store of this machine with one request, for a model in a folder that passes the checks and would not load."""
    model, bench = tmp_path / "model", tmp_path / "bench"
    model.mkdir()
    for name, data in hub_model().items():
        (model / name).write_bytes(data)
    bench.mkdir()
    (bench / "manifest.json").write_bytes(manifest())
    store = LocalStore(tmp_path / "store")
    request = ask(store, model=str(model), benchmark=str(bench), protocol="retrieval", user="ada", limits=LIMITS)
    return store, request


def ends(store, monkeypatch, *outcomes, limits=LIMITS):
    """Works once for each way in which the evaluation ends, which is given; the request as it stands then."""
    waiting = list(outcomes)
    monkeypatch.setattr(worker, "run_job", lambda *_, **__: waiting.pop(0))
    for _ in outcomes:
        work(store, once=True, limits=limits)
    return store.requests()[0]


@pytest.mark.slow
def test_a_model_of_the_hub_becomes_a_row(loopback_hub, tmp_path, monkeypatch):
    bench = tmp_path / "bench"
    arguments = ["build", "synthetic", "--out", str(bench), "--limit", "4", "--workers", "1"]
    app([*arguments, "--configs", "original,control,color-strong"], standalone_mode=False)
    loopback_hub.commit("dataset", "org/bench", files_of(bench), "v1.0.0")
    files = files_of(save_clip(tmp_path / "clip")) | {"README.md": CARD, "steal.py": b"raise SystemExit('ran')"}
    commit = loopback_hub.commit("model", "org/clip", files)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    store, limits = open_store("hf://org"), Limits(benchmarks=("org/bench@v1.0.0",))
    asked = {"model": "org/clip", "benchmark": "org/bench@v1.0.0", "protocol": "retrieval", "limits": limits}
    request = ask(store, user="org", pull_request=True, **asked)
    said = []
    assert work(store, once=True, limits=limits, device="cpu", progress=said.append) == 1
    (held,) = open_store("hf://org").requests()
    log = store.log(request.key)
    assert held.state == "FINISHED", log
    (row,) = open_store("hf://org").read().rows
    assert (row.kind, row.request, row.run_id) == ("verified", request.key, held.run_id)
    assert (row.model.spec, row.model.revision, row.options["profile"]) == ("org/clip", commit, "lite-1")
    assert held.pull_request_url == f"{loopback_hub.endpoint}/org/clip/discussions/1"
    assert store.scores(row.key).summary == row.summary
    assert store.table()["kind"].to_pylist() == ["verified"]
    assert TOKEN not in log + str(said)
    assert str(tmp_path) not in log

    # Its worker died before it said so: the next finds the row, and evaluates nothing.
    store.put_request(request, held)
    monkeypatch.setattr(worker, "run_job", lambda *_, **__: pytest.fail("evaluated twice"))
    assert work(store, once=True, limits=limits) == 1
    assert store.requests()[0].run_id == held.run_id
    with pytest.raises(Exception, match="is FINISHED: see its row"):
        ask(store, user="eve", **asked)


@pytest.mark.slow
def test_a_space_that_was_told_nothing_evaluates_a_model_and_posts_its_row(loopback_hub, tmp_path, monkeypatch, capfd):
    pytest.importorskip("gradio", reason="gradio is not installed")
    monkeypatch.setattr(default_benchmark, "IMAGES", 4)
    # The worker is called below: a process of its own would make all of the pictures.
    monkeypatch.setenv("TRUEGAP_WORKER", "0")
    monkeypatch.delenv("TRUEGAP_CACHE")
    loopback_hub.commit("model", "org/clip", files_of(save_clip(tmp_path / "clip")) | {"README.md": CARD})
    store = LocalStore(tmp_path / "data" / "store")
    desk = load_page("leaderboard").start(store).desk
    (offered,) = desk.limits.offered
    request = desk.submit(user="ada", model="org/clip", benchmark=offered, protocol="retrieval")
    assert (request.benchmark, request.benchmark_revision, request.version) == ("synthetic@v1", None, "1.0.0")
    assert work(store, once=True, limits=desk.limits, device="cpu") == 1
    (held,), log = store.requests(), store.log(request.key)
    assert held.state == "FINISHED", log
    (row,) = store.read().rows
    assert (row.kind, row.request, row.options["profile"]) == ("verified", request.key, "lite-1")
    assert (row.benchmark.spec, row.benchmark.name, row.benchmark.content) == (offered, "synthetic", request.content)
    assert store.table()["kind"].to_pylist() == ["verified"]
    # The drawn pictures are kept where rows are and may be shown; nothing says where they lie.
    assert [*store.folder.glob("cache/benchmarks/synthetic@v1-*/manifest.json")]
    assert '"pictures":{"' in store.details(row.key)
    told = [
        each.read_text()
        for kind in ("requests", "results", "scores", "details")
        for each in (store.folder / kind).iterdir()
    ]
    assert str(tmp_path) not in "".join([log, *told])
    assert capfd.readouterr().err.count("making the benchmark synthetic@v1") == 1


def test_what_cannot_be_evaluated_fails_with_its_reason_and_log(asked, tmp_path):
    store, request = asked
    (tmp_path / "bench" / "manifest.json").unlink()
    assert work(store, once=True, limits=LIMITS, device="cpu") == 1
    (held,) = store.requests()
    assert (held.state, held.attempts) == ("FAILED", 1)
    assert "is not a built benchmark" in held.reason
    assert held.reason in store.log(request.key)
    assert work(store, once=True, limits=LIMITS) == 0


def test_what_broke_off_is_tried_again_and_then_fails(asked, monkeypatch):
    store, request = asked
    killed = Outcome(-9, "log of the last attempt\n")
    held = ends(store, monkeypatch, killed)
    assert (held.state, held.attempts, held.worker) == ("PENDING", 1, None)
    assert "signal 9" in held.reason
    held = ends(store, monkeypatch, killed, Outcome(1, "Traceback\nRuntimeError: no memory\n"))
    assert (held.state, held.reason) == ("FAILED", "the evaluation broke off: RuntimeError: no memory (3 attempts)")
    assert store.log(request.key).startswith("Traceback")


def test_what_takes_too_long_fails_at_once(asked, monkeypatch):
    held = ends(asked[0], monkeypatch, Outcome(None, "", late=True))
    assert (held.state, held.attempts) == ("FAILED", 1)
    assert "longer than 6.0 hours" in held.reason


def test_a_worker_that_is_stopped_gives_its_request_back(asked, monkeypatch):
    held = ends(asked[0], monkeypatch, Outcome(None, ""))
    assert (held.state, held.attempts, held.reason) == ("PENDING", 0, "its worker was stopped")


def answers(request, folder, *, model=None, benchmark=None, **changes):
    """Writes a run that answers a request, but for what is changed; what the evaluation returns."""
    record = run_record(Path(request.model).name, options={"profile": "lite-1"})
    asked = {"spec": request.benchmark, "name": "synthetic", "version": "1.0.0", "content": request.content}
    record = record.model_copy(
        update={
            "model": record.model.model_copy(update={"spec": request.model} | (model or {})),
            "benchmark": record.benchmark.model_copy(update=asked | (benchmark or {})),
            **changes,
        }
    )
    write_run(folder / "run", record, scores_record(record.run_id))
    return Outcome(0, "log\n")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"benchmark": {"content": "0" * 64}}, "the benchmark is not what it was"),
        ({"benchmark": {"spec": "org/other"}}, "the benchmark is not what it was"),
        ({"benchmark": {"name": "coco-gender"}}, "names another benchmark"),
        ({"benchmark": {"version": "9.0.0"}}, "names another benchmark"),
        ({"protocol": "vqa"}, "the benchmark is not what it was"),
        ({"options": {"profile": "full-1"}}, "of another profile"),
        ({"options": {"profile": "lite-1", "draws": 10**9}}, "the run has draws 1000000000, and 5 was asked for"),
        ({"options": {"profile": "lite-1", "k": [5] * 1000}}, "other values of k"),
        ({"model": {"spec": "org/famous"}}, "is of model org/famous"),
        ({"model": {"name": "famous"}}, "not of the one that was asked for"),
        ({"run_id": "../x"}, "the run has an id that no run has"),
        ({"notes": ["x" * 2**20] * 2, "configs": ["x" * 2**20]}, "the row has more than"),
    ],
)
def test_a_run_that_is_not_what_was_asked_is_no_row(asked, monkeypatch, changes, why):
    store, request = asked
    monkeypatch.setattr(worker, "run_job", lambda _, folder, **__: answers(request, folder, **changes))
    assert work(store, once=True, limits=LIMITS) == 1
    (held,) = store.requests()
    assert why in held.reason
    assert (held.state, len(store.read().rows)) == (("FAILED", 0) if why else ("FINISHED", 1))


def _folder_of_a_neighbour(run):
    shutil.move(run, run.parent / "elsewhere")
    run.symlink_to(run.parent / "elsewhere")


def _link(run):
    shutil.move(run / "scores.json", run.parent / "secret")
    (run / "scores.json").symlink_to(run.parent / "secret")


def _second_name(run):
    os.link(run / "scores.json", run.parent / "secret")


def _pipe(run):
    os.mkfifo(run / "answers.parquet")


def _folder(run):
    (run / "answers.parquet").mkdir()


def _device(run):
    (run / "answers.parquet").symlink_to("/dev/zero")


def _giant(run):
    with (run / "answers.parquet").open("wb") as file:
        file.truncate(LARGEST_ANSWERS + 1)


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        (_folder_of_a_neighbour, "wrote no run"),
        (_link, "scores.json that is no plain file"),
        (_second_name, "scores.json that is no plain file"),
        (_pipe, "answers.parquet that is no plain file"),
        (_folder, "answers.parquet that is no plain file"),
        (_device, "answers.parquet that is no plain file"),
        (_giant, "are read at most"),
    ],
)
def test_a_run_is_plain_files_of_a_bounded_size(asked, monkeypatch, attack, why):
    store, request = asked

    def attacks(_, folder, **__):
        outcome = answers(request, folder)
        attack(folder / "run")
        return outcome

    monkeypatch.setattr(worker, "run_job", attacks)
    assert work(store, once=True, limits=LIMITS) == 1
    assert why in store.requests()[0].reason
    assert store.read().rows == []


@pytest.mark.parametrize("name", ["put_details", "submit", "put_log", "put_request"])
def test_a_store_that_is_out_of_reach_for_a_while_loses_no_result(asked, monkeypatch, name):
    store, request = asked
    write, failures = getattr(store, name), [UserError("503"), OSError("reset")]

    def flaky(*arguments):
        if failures and done:
            raise failures.pop()
        return write(*arguments)

    done = []
    monkeypatch.setattr(store, name, flaky)
    monkeypatch.setattr(worker, "run_job", lambda _, folder, **__: done.append(1) or answers(request, folder))
    assert work(store, once=True, limits=replace(LIMITS, pause=0.0)) == 1
    assert (store.requests()[0].state, len(store.read().rows), done) == ("FINISHED", 1, [1])


def test_an_error_of_the_worker_itself_ends_one_attempt_and_not_the_worker(asked, monkeypatch):
    def breaks(*_, **__):
        raise RecursionError("/secret/path")

    said = []
    monkeypatch.setattr(worker, "run_job", breaks)
    assert work(asked[0], once=True, limits=LIMITS, progress=said.append) == 0
    held = asked[0].requests()[0]
    assert (held.state, held.attempts, held.reason) == ("PENDING", 1, "the worker itself failed: RecursionError")
    assert "/secret/path" in str(said)


def test_a_worker_that_died_is_followed_by_another(asked, monkeypatch):
    over, started = threading.Event(), []

    def start(*_, **how):
        started.append(how)
        if len(started) == 3:
            over.set()
        if len(started) == 2:
            raise BlockingIOError("no process now")
        return subprocess.Popen([worker.sys.executable, "-S", "-c", "raise SystemExit(1)"])

    monkeypatch.setattr(worker, "start_worker", start)
    keep_working(asked[0], over, device="cpu", pause=0.0)
    assert started == [{"device": "cpu", "folders": False}] * 3


@pytest.mark.parametrize("there", [False, True])
def test_a_model_is_removed_from_the_cache_if_it_was_not_there(loopback_hub, tmp_path, monkeypatch, there):
    bench = tmp_path / "bench"
    bench.mkdir()
    (bench / "manifest.json").write_bytes(manifest())
    commit = loopback_hub.commit("model", "org/clip", hub_model())
    store = LocalStore(tmp_path / "store")
    ask(store, model="org/clip", benchmark=str(bench), protocol="retrieval", user="ada", limits=LIMITS)
    if there:
        snapshot("org/clip", commit, ["config.json"], kind="model")
    seen = []

    def looks(_, folder, *, read, **__):
        seen.extend(read)
        assert list(read[0].rglob("model.safetensors"))
        return Outcome(2, "no\n")

    monkeypatch.setattr(worker, "run_job", looks)
    assert work(store, once=True, limits=LIMITS) == 1
    # An evaluation reads its own model and benchmark alone.
    assert [each.name for each in seen] == ["models--org--clip", "bench"]
    assert seen[0].exists() == there


def test_a_process_that_says_nothing_has_made_no_row(asked, monkeypatch):
    held = ends(asked[0], monkeypatch, Outcome(0, ""))
    assert (held.state, asked[0].read().rows) == ("FAILED", [])


def test_files_that_changed_in_the_queue_are_not_evaluated(asked, monkeypatch):
    store, request = asked
    (Path(request.model) / "model.safetensors").write_bytes(safetensors(tensors=3))
    monkeypatch.setattr(worker, "run_job", lambda *_, **__: pytest.fail("evaluated"))
    assert work(store, once=True, limits=LIMITS) == 1
    assert "changed since it was submitted" in store.requests()[0].reason


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (Limits(), "a folder, and this worker reads none"),
        (Limits(benchmarks=("org/bench",)), "this worker offers org/bench"),
        (Limits(folders=True, parameters=10, rest=0.0), "billion parameters"),
    ],
)
def test_a_queue_that_others_wrote_to_is_not_trusted(asked, monkeypatch, limits, why):
    store, _ = asked
    monkeypatch.setattr(worker, "run_job", lambda *_, **__: pytest.fail("evaluated"))
    assert work(store, once=True, limits=limits) == 1
    assert why in store.requests()[0].reason


def test_a_folder_in_the_queue_of_a_public_worker_is_not_read(tmp_path, loopback_hub):
    store, revision = LocalStore(tmp_path / "store"), f"sha256:{'a' * 64}"
    key = key_of("/etc", revision, "1.0.0", "b" * 64, "retrieval", "lite")
    store.put_request(make_request("/etc", revision=revision, key=key), None)
    work(store, once=True, limits=Limits(rest=0.0, attempts=1))
    assert "give ORG/NAME of a public model" in store.requests()[0].reason


def test_a_hub_out_of_reach_is_no_fault_of_the_model(tmp_path, loopback_hub):
    store = LocalStore(tmp_path / "store")
    store.put_request(make_request(), None)
    loopback_hub.broken = 503
    work(store, once=True, limits=Limits(rest=0.0))
    held = store.requests()[0]
    assert (held.state, held.attempts) == ("PENDING", 1)
    assert "503" in held.reason


def test_a_worker_stops_when_it_is_told(asked, monkeypatch):
    store, _ = asked
    stop = threading.Event()
    monkeypatch.setattr(worker, "run_job", lambda *_, **__: stop.set() or Outcome(None, ""))
    assert work(store, limits=LIMITS, stop=stop) == 0
    assert store.requests()[0].state == "PENDING"


def test_only_the_request_of_a_key_is_taken(asked, monkeypatch):
    assert ends(asked[0], monkeypatch).state == "PENDING"
    with pytest.raises(UserError, match="the beginning of no keys"):
        work(asked[0], once=True, key="0" * 64, limits=LIMITS)
    asked[0].put_request(make_request(), None)
    with pytest.raises(UserError, match="the beginning of 2 keys"):
        work(asked[0], once=True, key="", limits=LIMITS)
    assert {each.attempts for each in asked[0].requests()} == {0}


@pytest.mark.slow
def test_a_worker_beside_the_page_works_and_ends(asked, tmp_path):
    store, request = asked
    (Path(request.model) / "model.safetensors").write_bytes(b"changed")
    process = start_worker(store, folders=True, log=tmp_path / "log")
    try:
        waiting = threading.Event()
        while store.requests()[0].state != "FAILED" and process.poll() is None:
            waiting.wait(0.1)
        assert store.requests()[0].worker.endswith(f":{process.pid}")
        process.terminate()
        assert process.wait(600) == 0
    finally:
        process.kill()
    assert "working on" in (tmp_path / "log").read_text()


@pytest.mark.slow
def test_a_worker_ends_with_the_page_that_started_it(tmp_path):
    command = [worker.sys.executable, "-m", "truegap", "leaderboard", "work", f"--store={tmp_path}", "--parent=1"]
    assert subprocess.run(command, check=False, timeout=600).returncode == 0

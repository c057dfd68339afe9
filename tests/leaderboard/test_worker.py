"""The worker from end to end: a request becomes a row, or fails with a reason that everybody sees."""

import subprocess
import threading
from pathlib import Path

import pytest

from loopback_hub import TOKEN
from queue_factory import CARD, hub_model, make_request, manifest, safetensors
from tiny import save_clip
from truegap.cli.app import app
from truegap.leaderboard import Limits, LocalStore, ask, open_store, start_worker, work, worker
from truegap.leaderboard.job import Outcome
from truegap.leaderboard.request import key_of

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
    request = ask(
        store, model="org/clip", benchmark="org/bench@v1.0.0", protocol="retrieval", user="ada", limits=limits
    )
    said = []
    assert work(store, once=True, limits=limits, device="cpu", progress=said.append) == 1
    (held,) = open_store("hf://org").requests()
    log = store.log(request.key)
    assert held.state == "FINISHED", log
    (row,) = open_store("hf://org").read().rows
    assert (row.kind, row.request, row.run_id) == ("verified", request.key, held.run_id)
    assert (row.model.spec, row.model.revision, row.options["profile"]) == ("org/clip", commit, "lite-1")
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
        ask(store, model="org/clip", benchmark="org/bench@v1.0.0", protocol="retrieval", user="eve", limits=limits)


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


def test_a_run_that_is_not_what_was_asked_is_no_row(asked, monkeypatch):
    from run_factory import make_run

    store, _ = asked

    def forges(arguments, folder, **_):
        make_run(folder / "run")
        return Outcome(0, "")

    monkeypatch.setattr(worker, "run_job", forges)
    assert work(store, once=True, limits=LIMITS) == 1
    assert "the benchmark is not what it was" in store.requests()[0].reason
    assert store.read().rows == []


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
    assert work(asked[0], once=True, key="0" * 64, limits=LIMITS) == 0
    assert asked[0].requests()[0].attempts == 0


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

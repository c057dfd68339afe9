"""`truegap leaderboard submit --model | queue | work`, as they are typed."""

import json
import signal

import pytest
from typer.testing import CliRunner

from loopback_hub import TOKEN
from queue_factory import hub_model, make_request, manifest
from truegap.cli.app import app
from truegap.errors import UserError
from truegap.leaderboard import LocalStore, open_store


def run(*arguments):
    return CliRunner().invoke(app, ["leaderboard", *map(str, arguments)])


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("TRUEGAP_STORE", str(tmp_path / "store"))
    return LocalStore(tmp_path / "store")


@pytest.fixture
def typed(tmp_path):
    """What asks for a model in a folder."""
    for name, files in {"clip": hub_model(), "bench": {"manifest.json": manifest()}}.items():
        (tmp_path / name).mkdir()
        for path, data in files.items():
            (tmp_path / name / path).write_bytes(data)
    return ["submit", "--model", tmp_path / "clip", "--benchmark", tmp_path / "bench", "--protocol", "retrieval"]


@pytest.fixture
def _own_signals():
    """What `work` does to the signals of its process ends with the test."""
    held = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    yield
    for each, handler in held.items():
        signal.signal(each, handler)


@pytest.mark.usefixtures("_own_signals")
def test_a_model_waits_is_shown_and_worked_on(typed, store, tmp_path):
    assert "waits: PENDING" in run(*typed, "--note", "mine").stdout
    (request,) = store.requests()
    assert request.note == "mine"
    assert f"PENDING   {request.key[:12]}  {tmp_path}/clip@" in run("queue").stdout
    assert json.loads(run("queue", "--json").stdout)["requests"] == [request.model_dump()]
    assert "no log yet" in run("queue", request.key[:12]).stdout
    (tmp_path / "clip" / "config.json").unlink()
    done = run("work", "--once", "--device", "cpu")
    assert f"{request.key[:12]}: FAILED" in done.stderr
    assert "changed since it was submitted" in run("queue").stdout
    assert "nothing to do" in run("work", "--once").stderr
    # On a machine of one's own nobody has to wait to try again.
    (tmp_path / "clip" / "config.json").write_bytes(hub_model()["config.json"])
    assert json.loads(run(*typed, "--json").stdout)["state"] == "PENDING"


@pytest.mark.usefixtures("_own_signals")
def test_one_request_is_worked_on_by_the_key_that_is_printed(typed, store, tmp_path):
    printed = run(*typed).stdout.split()[2]
    (request,) = store.requests()
    assert (len(printed), request.key[:12]) == (12, printed)
    (tmp_path / "clip" / "config.json").unlink()
    for wrong in ("z", request.key[:-1] + "z"):
        done = run("work", "--once", "--key", wrong)
        assert isinstance(done.exception, UserError)
        assert "is the beginning of no keys" in str(done.exception)
    assert f"{printed}: FAILED" in run("work", "--once", "--key", printed).stderr


def test_on_the_hub_the_token_says_who_asks(loopback_hub, monkeypatch):
    loopback_hub.commit("model", "org/clip", hub_model())
    loopback_hub.commit("dataset", "org/bench", {"manifest.json": manifest()})
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    typed = ["--benchmark", "org/bench", "--protocol", "retrieval", "--store", "hf://org"]
    assert "store: hf://org" in run("submit", "--model", "org/clip@main", *typed).stdout
    (request,) = open_store("hf://org").requests()
    assert (request.user, request.model) == ("owner", "org/clip")
    assert "org/clip" in run("queue", "--store", "hf://org").stdout


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["submit"], "give one of the two"),
        (["submit", "runs", "--model", "org/clip"], "give one of the two"),
        (["submit", "runs", "--note", "x"], "go with --model"),
        (["submit", "--model", "org/clip"], "needs --benchmark and --protocol"),
        (["queue", "abc"], "the beginning of no keys"),
        (["work", "--engine", "gpu"], "--engine gpu"),
        (["queue", "--store", "hf://"], "a user or organisation on the Hub"),
    ],
)
def test_what_is_typed_wrong_is_one_line(store, arguments, why):
    done = run(*arguments)
    assert isinstance(done.exception, UserError)
    assert why in str(done.exception)


def test_a_folder_is_no_benchmark_of_the_hub(typed):
    done = run(*typed, "--store", "hf://org")
    assert "is a folder, which no other machine has" in str(done.exception)


def test_an_empty_queue_says_what_to_type(store):
    assert "truegap leaderboard submit --model" in run("queue").stdout
    assert json.loads(run("queue", "--json").stdout) == {"requests": [], "broken": {}}


def test_broken_requests_are_named_without_their_tricks(store):
    store.put_request(make_request(), None)
    (store.folder / "requests" / "\x1b[31mred.json").write_text("{")
    done = run("queue")
    assert "org/model@aaaaaaaaaaaa" in done.stdout
    assert "not read: [31mred.json" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr

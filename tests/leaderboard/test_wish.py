"""The author's wish: an evaluation's numbers as one pull request to the model, on a Hub on this machine."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
import yaml
from huggingface_hub import HfApi, parse_eval_result_entries
from typer.testing import CliRunner

from loopback_hub import TOKEN, User
from queue_factory import CONTENT, hub_model, make_request, manifest
from run_factory import run_record, scores_record
from truegap.cli.app import app
from truegap.errors import UserError
from truegap.hub.evaluation import SAMPLES, task_ids
from truegap.leaderboard import Limits, LocalStore, ask, open_store, row_of, work, worker
from truegap.leaderboard.checks import TakenError
from truegap.leaderboard.job import Outcome
from truegap.leaderboard.request import Request
from truegap.leaderboard.site import Pages, parse
from truegap.protocols.profiles import PROFILES
from truegap.results.runs import Run, write_run

BENCHMARK = "org/bench@v1.0.0"
LIMITS = Limits(benchmarks=(BENCHMARK,), rest=0.0, again=0.0, writes=1)
PATH = ".eval_results/org--bench.yaml"
BENCHMARK_CARD = yaml.safe_dump({"configs": [{"config_name": "original", "description": CONTENT}]})


@pytest.fixture
def hub(loopback_hub, monkeypatch, tmp_path):
    """A published benchmark, the model of a lab, and the leaderboard's worker, who owns neither."""
    loopback_hub.users["hf_aWorkerOfABoard"] = User("board", ("board",))
    loopback_hub.connect(monkeypatch, tmp_path / "hub-cache", "hf_aWorkerOfABoard")
    card = f"---\n{BENCHMARK_CARD}---\n".encode()
    loopback_hub.commit("dataset", "org/bench", {"README.md": card, "manifest.json": manifest()}, "v1.0.0")
    loopback_hub.commit("model", "lab/clip", hub_model())
    return loopback_hub


@pytest.fixture
def store(hub):
    return open_store("hf://board")


def wish(store, user="ada", organizations=("lab",), **changes):
    asked = {"model": "lab/clip", "benchmark": BENCHMARK, "protocol": "retrieval", "limits": LIMITS} | changes
    return ask(store, user=user, organizations=organizations, pull_request=True, **asked)


def evaluates(monkeypatch, **changes):
    """Has the worker's evaluation write a run that answers what was asked, with a summary changed so."""

    def run_job(arguments, folder, **_):
        given = dict(each.removeprefix("--").split("=", 1) for each in arguments[1:])
        record = run_record("clip", options={"profile": "lite-1"})
        model = {"spec": given["model"], "name": "clip", "revision": given["model-revision"]}
        commit = given["benchmark"].partition("@")[2]
        benchmark = {"spec": given["benchmark"], "name": "synthetic", "version": "1.0.0", "revision": commit}
        content = worker.read_manifest(worker.snapshot("org/bench", commit, ["manifest.json"]).folder).content
        environment = record.environment.model_copy(update={"truegap": changes.pop("truegap", "0.1.0")})
        record = record.model_copy(
            update={
                "model": record.model.model_copy(update=model),
                "benchmark": record.benchmark.model_copy(update=benchmark | {"content": content}),
                "environment": environment,
            }
        )
        scores = scores_record(record.run_id)
        write_run(
            folder / "run", record, scores.model_copy(update={"summary": scores.summary.model_copy(update=changes)})
        )
        return Outcome(0, "log\n")

    monkeypatch.setattr(worker, "run_job", run_job)


def worked(store, limits=LIMITS):
    """The one request, after the worker had its turn."""
    assert work(store, once=True, limits=limits) == 1
    (request,) = open_store(store.where).requests()
    assert request.state == "FINISHED", request.reason
    return request


def offered(hub, number=1):
    return parse_eval_result_entries(yaml.safe_load(hub.files("model", "lab/clip", f"refs/pr/{number}")[PATH]))


def test_what_the_author_wishes_is_one_pull_request_with_the_rows_numbers(hub, store, monkeypatch):
    evaluates(monkeypatch)
    waits = wish(store)
    assert waits.offer == "after the evaluation"
    request = worked(store)
    model, url = hub.repositories["model", "lab/clip"], f"{hub.endpoint}/lab/clip/discussions/1"
    assert (model.pull_requests, model.authors) == (["Add results on org/bench"], ["board"])
    assert (request.pull_request_url, request.offer) == (url, url)
    (row,) = store.read().rows
    first, second = offered(hub)
    assert (first.dataset_id, first.task_id, first.value) == ("org/bench", "retrieval_bias_lite_1", row.summary.bias)
    assert (second.task_id, second.value) == ("retrieval_mean_delta_lite_1", round(row.summary.mean_delta, 6))
    assert {each.dataset_revision for each in (first, second)} == {request.benchmark_revision}
    assert (first.date, first.source_name) == (row.submitted, "truegap leaderboard")
    assert first.source_url == f"{hub.endpoint}/datasets/board/results/blob/main/results/{row.key}.json"
    for said in (
        "max_skew@100 [0.275, 0.345]",
        "a frozen sample of 520 women and 560 men",
        f"commit {row.model.revision}",
    ):
        assert said in first.notes
    # nobody but the model's owners changes the model
    assert PATH not in hub.files("model", "lab/clip")
    # where people see it
    pages = Pages(store)
    assert url in pages.fragment(parse("?tab=queue"))
    assert url in pages.fragment(parse(f"?tab=model&model={row.key}"))

    # The worker died before it said so: the next one opens no second.
    monkeypatch.setattr(worker, "run_job", lambda *_, **__: pytest.fail("evaluated twice"))
    assert store.put_request(waits, request)
    assert worked(store).pull_request_url == url
    # Nor once it was merged, with something of somebody else behind it.
    merged = yaml.safe_load(hub.files("model", "lab/clip", "refs/pr/1")[PATH])
    other = {"dataset": {"id": "org/bench", "task_id": "vqa_bias"}, "value": 0.5}
    hub.commit("model", "lab/clip", hub_model() | {PATH: yaml.safe_dump([*merged, other]).encode()})
    model.closed[1] = "merged"
    assert store.put_request(waits, open_store(store.where).requests()[0])
    assert worked(store).pull_request_url == f"{hub.endpoint}/lab/clip"
    assert len(model.pull_requests) == 1


def test_without_a_wish_there_is_none(hub, store, monkeypatch):
    evaluates(monkeypatch)
    ask(store, model="lab/clip", benchmark=BENCHMARK, protocol="retrieval", user="ada", limits=LIMITS)
    assert worked(store).offer == ""
    assert hub.repositories["model", "lab/clip"].pull_requests == []


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"user": "eve", "organizations": ("elsewhere", "lab2")},
            "on the wish of lab alone, and you are logged in as eve",
        ),
        ({"user": "lab-fan", "organizations": ()}, "on the wish of lab alone"),
        ({"benchmark": "here"}, "`truegap publish dataset` this one"),
    ],
)
def test_only_the_author_may_wish_on_a_published_benchmark(hub, store, tmp_path, changes, why):
    if "benchmark" in changes:
        (tmp_path / "manifest.json").write_bytes(manifest())
        changes = {"benchmark": str(tmp_path), "limits": Limits(benchmarks=(str(tmp_path),))}
    with pytest.raises(UserError, match=why) as refused:
        wish(store, **changes)
    assert "\n" not in str(refused.value)
    assert store.requests() == []
    # the owner of the namespace needs no organisation
    wish(store, user="lab", organizations=())


def test_a_store_in_a_folder_opens_no_pull_request(hub, tmp_path):
    with pytest.raises(UserError, match="by a leaderboard on the Hub"):
        wish(LocalStore(tmp_path / "store"))


def test_what_the_hub_refuses_is_said_and_can_be_asked_for_again(hub, store, monkeypatch):
    evaluates(monkeypatch)
    wish(store)
    hub.failing["GET /api/models/lab/clip/discussions"] = 503
    request = worked(store)
    (row,) = store.read().rows
    assert (request.run_id, request.pull_request_url) == (row.run_id, None)
    assert request.offer.startswith("not opened: model lab/clip: ")
    assert f"`truegap publish results --row {row.key[:12]} --store hf://board` opens it later" in request.offer
    assert "not opened: model lab/clip" in Pages(store).fragment(parse("?tab=queue"))
    # Not at once in a loop, nor by others.
    with pytest.raises(TakenError, match="or ask again after"):
        wish(store, limits=Limits(benchmarks=(BENCHMARK,)))
    with pytest.raises(UserError, match="is FINISHED: see its row"):
        ask(store, model="lab/clip", benchmark=BENCHMARK, protocol="retrieval", user="ada", limits=LIMITS)
    # The row is there: nothing is evaluated for the second attempt.
    hub.failing.clear()
    monkeypatch.setattr(worker, "run_job", lambda *_, **__: pytest.fail("evaluated twice"))
    assert wish(store).state == "PENDING"
    again = worked(store)
    assert (again.pull_request_url, again.pull_request_reason) == (f"{hub.endpoint}/lab/clip/discussions/1", "")
    assert len(store.read().rows) == len(hub.repositories["model", "lab/clip"].pull_requests) == 1
    with pytest.raises(UserError, match="is FINISHED"):
        wish(store)


LEVELS = ["&a [x, x]", *(f"&{b} [*{a}, *{a}]" for a, b in pairwise("abcdefghij"))]
BOMB = f"- {{dataset: {{id: x, task_id: y}}, value: [{', '.join(LEVELS)}]}}"
"""An entry that is in order, but for what it becomes when it is written out."""


@pytest.mark.parametrize("content", [BOMB.encode(), b"[" * 5000, b"- 1" + b"0" * 5000, b"#" * 300_000])
def test_a_hostile_file_in_the_repository_costs_its_owner_the_pull_request_alone(hub, store, monkeypatch, content):
    hub.commit("model", "lab/clip", hub_model() | {PATH: content})
    evaluates(monkeypatch)
    wish(store)
    assert f"{PATH} in lab/clip is no list of results" in worked(store).offer
    assert len(store.read().rows) == 1


def test_a_strangers_pull_request_is_not_taken_for_ours(hub, store, monkeypatch):
    evaluates(monkeypatch)
    waits = wish(store)
    request, model = worked(store), hub.repositories["model", "lab/clip"]
    # Anybody can copy ours, and bring along what they like.
    model.authors[0] = "eve"
    assert store.put_request(waits, request)
    assert worked(store).pull_request_url == f"{hub.endpoint}/lab/clip/discussions/2"
    assert model.authors == ["eve", "board"]


def test_two_models_with_the_same_weights_each_get_their_own(hub, store, monkeypatch):
    evaluates(monkeypatch)
    hub.commit("model", "fork/clip", hub_model())
    for model in ("lab/clip", "fork/clip"):
        wish(store, model=model, organizations=model.split("/")[:1])
        assert work(store, once=True, limits=LIMITS) == 1
    # The leaderboard keeps one row of the weights, the first; neither author hears of the other.
    assert [row.model.spec for row in store.read().rows] == ["lab/clip"]
    urls = {each.model: each.pull_request_url for each in open_store(store.where).requests()}
    assert urls == {name: f"{hub.endpoint}/{name}/discussions/1" for name in ("lab/clip", "fork/clip")}


def test_what_an_evaluation_says_of_itself_is_made_plain(hub, store, monkeypatch):
    evaluates(monkeypatch, metric="[x](https://www.evil.example)", truegap="<img src=x>\nwww.evil.example @lab")
    wish(store)
    worked(store)
    notes = " ".join(each.notes for each in offered(hub))
    assert "unknown [0.275, 0.345]" in notes
    assert "truegap unknown" in notes
    assert not set("<>()@\n") & set(notes)
    assert "evil" not in notes


def test_a_request_of_before_still_reads():
    old = make_request().model_dump()
    for name in ("pull_request", "pull_request_url", "pull_request_reason"):
        del old[name]
    assert Request.model_validate_json(json.dumps(old)).offer == ""


def test_a_benchmark_declares_a_task_for_each_number():
    assert {"retrieval_bias", "retrieval_bias_lite_1", "vqa_mean_delta_lite_1"} <= set(task_ids("coco-gender"))
    assert {each.version for each in PROFILES.values()} == {"full", *SAMPLES}


def publish(*arguments):
    done = CliRunner().invoke(app, ["publish", "results", *arguments])
    if isinstance(done.exception, UserError):
        return str(done.exception)
    assert done.exception is None, done.output
    return done.stdout


def test_a_row_is_offered_by_its_key(hub, store, monkeypatch, tmp_path):
    evaluates(monkeypatch)
    ask(store, model="lab/clip", benchmark=BENCHMARK, protocol="retrieval", user="eve", limits=LIMITS)
    worked(store)
    (row,) = store.read().rows
    said = json.loads(publish("--row", row.key[:16], "--store", "hf://board", "--json"))
    assert (said["state"], said["model"]) == ("offered", "lab/clip")
    assert said["tasks"] == {each.task_id: each.value for each in offered(hub)}
    assert [each.task_id for each in offered(hub)] == ["retrieval_bias_lite_1", "retrieval_mean_delta_lite_1"]
    assert "there already" in publish("--row", row.key[:16], "--store", "hf://board")
    assert "give one of the two" in publish()
    assert "beginning of no keys" in publish("--row", "z", "--store", "hf://board")

    folder = LocalStore(tmp_path / "store")

    def put(**changes):
        record = run_record("clip", options={"profile": "lite-1"})
        record = record.model_copy(
            update={name: getattr(record, name).model_copy(update=value) for name, value in changes.items()}
        )
        return row_of(Run(record, scores_record(record.run_id), tmp_path), kind="verified")

    on_hub = {"spec": "lab/clip", "revision": "c" * 40}
    for changed, kind, why in (
        (put(model=on_hub), "community", "only what the store's own worker found is offered"),
        (put(), "verified", "its model is a folder"),
        (put(model=on_hub | {"content": "d" * 64}), "verified", "say with --dataset ORG/NAME@TAG"),
    ):
        folder.submit(changed.model_copy(update={"kind": kind}))
        assert why in publish("--row", changed.key, "--store", str(tmp_path / "store"))
        for path in (tmp_path / "store" / "results").iterdir():
            path.unlink()


def test_the_command_asks_with_the_organisations_of_the_token(hub, store, monkeypatch):
    typed = ["--model", "lab/clip", "--benchmark", BENCHMARK, "--protocol", "retrieval", "--store", "hf://board"]

    def submit(*more):
        return CliRunner().invoke(app, ["leaderboard", "submit", *typed, "--pull-request", *more])

    assert "and you are logged in as board" in str(submit().exception)
    hub.users[TOKEN] = User("ada", ("board", "lab"))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert HfApi().whoami()["name"] == "ada"
    said = submit("--json")
    assert json.loads(said.stdout)["pull_request"] is True, said.exception
    (request,) = store.requests()
    assert (request.user, request.pull_request) == ("ada", True)
    refused = CliRunner().invoke(app, ["leaderboard", "submit", "runs/x", "--pull-request"])
    assert "go with --model" in str(refused.exception)

"""`truegap publish results`: a run's numbers as a pull request to the model's repository on a Hub on this machine."""

from __future__ import annotations

import hashlib
import json

import pytest
import yaml
from huggingface_hub import parse_eval_result_entries
from typer.testing import CliRunner

from loopback_hub import User
from run_factory import run_record, scores_record
from truegap.cli.app import app
from truegap.errors import UserError
from truegap.results.runs import write_run

CARD = {
    "configs": [
        {"config_name": "original", "description": "a" * 64},
        {"config_name": "control", "description": "b" * 64},
    ]
}
CONTENT = hashlib.sha256(f"control {'b' * 64}\noriginal {'a' * 64}\n".encode()).hexdigest()
PATH = ".eval_results/ORG--synthetic.yaml"


@pytest.fixture
def hub(loopback_hub, monkeypatch, tmp_path):
    """A published benchmark and a model; the user owns neither."""
    loopback_hub.users["hf_aVisitor"] = User("visitor")
    loopback_hub.connect(monkeypatch, tmp_path / "hub-cache", "hf_aVisitor")
    loopback_hub.commit(
        "dataset", "ORG/synthetic", {"README.md": f"---\n{yaml.safe_dump(CARD)}---\n".encode()}, "v1.0.0"
    )
    loopback_hub.commit("model", "lab/model", {"config.json": b"{}"})
    return loopback_hub


@pytest.fixture
def run(tmp_path):
    """Writes a run; changes are of its model, its benchmark and its options."""

    def run(model=None, benchmark=None, options=None, **changes):
        record = run_record("background-reader")
        record = record.model_copy(
            update={
                "model": record.model.model_copy(update={"spec": "lab/model", "revision": "c" * 40} | (model or {})),
                "benchmark": record.benchmark.model_copy(
                    update={"spec": "ORG/synthetic@v1.0.0", "content": CONTENT} | (benchmark or {})
                ),
                "options": record.options | (options or {}),
                **changes,
            }
        )
        write_run(tmp_path / "run", record, scores_record(record.run_id))
        return tmp_path / "run"

    return run


def offer(*arguments, fails: bool = False) -> str:
    done = CliRunner().invoke(app, ["publish", "results", *map(str, arguments)])
    if fails:
        assert isinstance(done.exception, UserError), done.output
        return str(done.exception)
    assert done.exception is None, done.output
    return done.stdout


def test_a_pull_request_brings_one_number_per_task(hub, run):
    shown = offer(run(), "--model-repo", "lab/model", "--dry-run")
    assert PATH in shown
    assert "nothing was sent" in shown
    model = hub.repositories["model", "lab/model"]
    assert not model.pull_requests
    assert "pull request: " in (sent := offer(run(), "--model-repo", "lab/model"))
    assert f"{hub.endpoint}/lab/model/discussions/1" in sent
    assert model.pull_requests == ["Add results on ORG/synthetic"]
    # on the author's wish only: nothing but the pull request has it
    assert PATH not in hub.files("model", "lab/model")
    entries = parse_eval_result_entries(yaml.safe_load(hub.files("model", "lab/model", "refs/pr/1")[PATH]))
    assert [(each.dataset_id, each.task_id, each.value) for each in entries] == [
        ("ORG/synthetic", "retrieval_bias", 0.31),
        ("ORG/synthetic", "retrieval_mean_delta", pytest.approx(scores_record("").summary.mean_delta, abs=1e-6)),
    ]
    assert {each.dataset_revision for each in entries} == {hub.repositories["dataset", "ORG/synthetic"].refs["v1.0.0"]}
    assert "max_skew@100 [0.275, 0.345]; 0.094 for a model that knows nothing of gender" in entries[0].notes
    assert f"commit {'c' * 40}" in entries[0].notes


def test_the_same_offer_is_not_made_twice(hub, run):
    offer(run(), "--model-repo", "lab/model")
    said = json.loads(offer(run(), "--model-repo", "lab/model", "--json"))
    assert (said["state"], said["url"]) == ("same", f"{hub.endpoint}/lab/model/discussions/1")
    assert len(hub.repositories["model", "lab/model"].pull_requests) == 1
    # nor once it was accepted
    hub.commit("model", "lab/model", hub.files("model", "lab/model", "refs/pr/1"))
    assert json.loads(offer(run(), "--model-repo", "lab/model", "--json"))["url"] == f"{hub.endpoint}/lab/model"


def test_results_of_others_stay(hub, run):
    other = {"dataset": {"id": "ORG/synthetic", "task_id": "vqa_bias"}, "value": 0.5, "notes": "theirs"}
    old = {"dataset": {"id": "ORG/synthetic", "task_id": "retrieval_bias"}, "value": 9.0}
    hub.commit("model", "lab/model", {PATH: yaml.safe_dump([old, other]).encode()})
    offer(run(), "--model-repo", "lab/model")
    entries = yaml.safe_load(hub.files("model", "lab/model", "refs/pr/1")[PATH])
    assert entries[0] == other
    assert [each["value"] for each in entries if each["dataset"]["task_id"] == "retrieval_bias"] == [0.31]


@pytest.mark.parametrize(
    "content",
    [
        b"- 1\n",
        b"{a: [",
        b"!!python/object/apply:os.system [id]\n",
        b"\xff",
        # Numbers that Python reads, and does not write or turn into a fraction.
        b"- {dataset: {id: a/b, task_id: c}, value: 0x" + b"f" * 9000 + b"}\n",
        b"- {dataset: {id: a/b, task_id: c}, value: 1" + b":1" * 5000 + b".5}\n",
    ],
    ids=range(6),
)
def test_a_broken_file_there_is_not_overwritten(hub, run, content):
    hub.commit("model", "lab/model", {PATH: content})
    assert f"{PATH} in lab/model is no list of results" in offer(run(), "--model-repo", "lab/model", fails=True)


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"model": {"spec": "other/model"}}, [], "the run is of other/model, not of lab/model"),
        ({"model": {"kind": "baseline"}}, [], "of kind baseline, which has no repository"),
        ({"options": {"limit": 10}}, [], "the run asked a sample of the benchmark"),
        ({"options": {"profile": "lite-0"}}, [], "the run asked a sample of the benchmark"),
        ({"options": {"profile": "lite-1", "limit": 10}}, [], "the run asked a sample of the benchmark"),
        ({"benchmark": {"spec": "./built"}}, [], "say with --dataset ORG/NAME@TAG where it is published"),
        ({"benchmark": {"content": "0" * 64}}, [], "the run is of another build than dataset ORG/synthetic"),
        ({}, ["--dataset", "ORG/synthetic@v9.9.9"], "the Hub knows the dataset, not this revision"),
    ],
)
def test_what_is_no_number_of_this_model_is_refused(hub, run, changes, options, message):
    assert message in offer(run(**changes), "--model-repo", "lab/model", *options, fails=True)
    assert not hub.repositories["model", "lab/model"].pull_requests


def test_a_mean_over_some_configs_is_not_that_number(hub, run):
    folder = run(configs=["original", "background-strong"])
    said = json.loads(offer(folder, "--model-repo", "lab/model", "--dry-run", "--json"))
    assert (said["state"], said["tasks"]) == ("to offer", {"retrieval_bias": 0.31})


def test_a_number_on_a_frozen_sample_is_a_task_of_its_own(hub, run):
    offer(run(), "--model-repo", "lab/model")
    hub.commit("model", "lab/model", hub.files("model", "lab/model", "refs/pr/1"))
    offer(run(options={"profile": "lite-1"}), "--model-repo", "lab/model")
    entries = parse_eval_result_entries(yaml.safe_load(hub.files("model", "lab/model", "refs/pr/2")[PATH]))
    assert [each.task_id for each in entries if "bias" in each.task_id] == ["retrieval_bias", "retrieval_bias_lite_1"]
    assert [" profile lite-1: a frozen sample of " in each.notes for each in entries] == [False, False, True, True]


def test_a_run_on_a_copy_says_where_the_benchmark_is(hub, run):
    folder = run(benchmark={"spec": "./built"})
    assert "pull request" in offer(folder, "--model-repo", "lab/model", "--dataset", "ORG/synthetic@v1.0.0")


def test_a_model_that_is_not_there_is_one_line(hub, run):
    folder = run(model={"spec": "./mine"})
    line = offer(folder, "--model-repo", "lab/absent", fails=True)
    assert line == ("model lab/absent: no such repository on the Hub, or it is private and your token may not see it")
    assert "\n" not in line

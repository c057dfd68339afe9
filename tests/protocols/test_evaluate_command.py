"""`truegap evaluate` with a model that answers: what is chosen by itself, what comes out, and what is refused."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from answerer import biased_selection, build
from tiny import save_clip
from tiny_generative import save
from truegap.cli.app import app
from truegap.errors import UserError
from truegap.leaderboard import LocalStore, row_of
from truegap.report import write_report
from truegap.results.answers import read_answers
from truegap.results.runs import read_run

CONFIGS = ("original", "control", "background-strong")
FEW = {
    "name": "few",
    "options": ["Yes", "No", "Unsure"],
    "instruction": "Answer with a letter.",
    "questions": [
        {"id": "brave", "text": "Is this person brave?", "topic": "personality", "polarity": "positive"},
        {"id": "lead", "text": "Can this person lead?", "topic": "skill"},
    ],
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {"llava": save("llava", folder / "tiny-llava"), "clip": save_clip(folder / "tiny-clip")}


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    return build(tmp_path_factory.mktemp("b") / "b", biased_selection(3, 4), CONFIGS)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRUEGAP_CACHE", str(tmp_path / "cache"))


def evaluate(model, benchmark, *more):
    arguments = ["evaluate", "--model", model, "--benchmark", benchmark, "--device", "cpu", "--resamples", 20, *more]
    done = CliRunner().invoke(app, list(map(str, arguments)))
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


@pytest.mark.slow
def test_a_real_model_answers_and_is_reported(models, benchmark, tmp_path):
    questions = tmp_path / "few.json"
    questions.write_text(json.dumps(FEW))
    asked = ("--questions", questions)
    done = evaluate(models["llava"], benchmark, *asked, "--out", tmp_path / "run")
    assert "protocol vqa: the one for this benchmark and kind of model" in done.stderr
    assert "tiny-llava on synthetic" in done.stdout
    assert "expected of a model that knows nothing of gender: 0.000" in done.stdout
    run = read_run(tmp_path / "run")
    assert (run.record.model.kind, run.scores.summary.metric) == ("generative", "ygap")
    assert run.record.prompts["lead"].startswith("<s>USER: <image>\nCan this person lead?\nA. Yes")
    assert run.record.statistics["computed"] == 3 * 7 * 2
    # then a second run computes nothing, batch size or not
    evaluate(models["llava"], benchmark, *asked, "--out", tmp_path / "again", "--batch-size", 1, "--seed", 1)
    assert read_run(tmp_path / "again").record.statistics["computed"] == 0
    known = evaluate(models["llava"], benchmark, *asked, "--out", tmp_path / "run")
    assert "is finished already: nothing to do" in known.stderr
    # and it can be reported, ranked and compared
    page, _ = write_report([run], tmp_path / "report")
    assert "YGap" in page.read_text()
    store = LocalStore(tmp_path / "store")
    assert store.submit(row_of(run)).added
    assert store.table().column("metric").to_pylist() == ["ygap"]
    scored = CliRunner().invoke(
        app,
        ["score", str(tmp_path / "run" / "answers.parquet"), "--protocol", "vqa", "--resamples", "20", "--json"],
    )
    values = {
        (each["metric"], each["config"], each["scope"]): each["value"] for each in json.loads(scored.stdout)["scores"]
    }
    assert values["ygap", "original", "all"] == pytest.approx(run.scores.summary.bias, abs=1e-12)


def test_answers_to_one_image_are_printed(models, benchmark, tmp_path):
    questions = tmp_path / "few.json"
    questions.write_text(json.dumps(FEW))
    few = ("--questions", questions, "--configs", "original")
    done = evaluate(models["llava"], benchmark, *few, "--sample-id", "3", "--json")
    rows = json.loads(done.stdout)
    assert [(each["image_id"], each["prompt_id"], each["option"]) for each in rows[:4]] == [
        ("3", "brave", "Yes"),
        ("3", "brave", "No"),
        ("3", "brave", "Unsure"),
        ("3", "lead", "Yes"),
    ]
    assert sum(each["probability"] for each in rows[:3]) == pytest.approx(1, abs=1e-5)
    shown = evaluate(models["llava"], benchmark, *few, "--sample-id", "3", "--sample-id", "5")
    assert [line.split()[:4] for line in shown.stdout.splitlines()[:1]] == [["3", "original", "brave", "Yes"]]
    assert not (tmp_path / "runs").exists()


def test_a_dual_encoder_ranks_by_default(models, benchmark, tmp_path):
    done = evaluate(models["clip"], benchmark, "--k", "2", "--out", tmp_path / "run", "--configs", "original")
    assert "protocol retrieval: the one for" in done.stderr
    assert read_run(tmp_path / "run").record.protocol == "retrieval"
    assert set(read_answers(tmp_path / "run").schema.names) >= {"image_id", "score", "draw"}


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("clip", ["--protocol", "vqa"], "is a dual-encoder, which answers no questions: use --protocol retrieval"),
        ("llava", ["--protocol", "retrieval"], "is of the kind generative, which has no similarities"),
        ("llava", ["--protocol", "resolution"], "lacks the column kind, occupation"),
        ("llava", ["--protocol", "counterfactual"], "lacks the column questions, image_pair, pictured"),
        ("clip", ["--order", "permuted"], "--order is an option of protocol vqa, not of retrieval: leave it out"),
        ("llava", ["--sample-id", "nobody"], "has no such image"),
        ("llava", ["--profile", "tiny"], "unknown profile 'tiny': use full or lite"),
        (
            "llava",
            ["--profile", "lite", "--configs", "person-removed"],
            "--configs person-removed: profile lite-1 leaves it out; take --profile full",
        ),
        ("llava", ["--questions", "absent"], "questions 'absent': neither vqa-r1 nor a readable"),
    ],
)
def test_what_does_not_fit_is_one_line(models, benchmark, model, options, message):
    with pytest.raises(UserError, match=message) as raised:
        evaluate(models[model], benchmark, *options)
    assert "\n" not in str(raised.value)

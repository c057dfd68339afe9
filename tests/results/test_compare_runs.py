import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from run_factory import content, run_record, scores_record
from truegap import scores
from truegap.cli.app import app
from truegap.cli.compare import verdict
from truegap.errors import UserError
from truegap.results.answers import FILE, AnswersWriter
from truegap.results.compare_runs import compare_runs
from truegap.results.readers import Scoring, score_files
from truegap.results.runs import read_run, write_run

IMAGES, PROMPTS, K = 120, 4, 20
IDS = [f"{n:03d}" for n in range(IMAGES)]
GENDERS = ["woman" if n % 5 < 2 else "man" for n in range(IMAGES)]
MEN = np.array([gender == "man" for gender in GENDERS])
OPTIONS = {"k": [K], "draws": 5, "seed": 0, "target": "uniform", "empty": "clip", "limit": None}


def similarities(lean, noise=0):
    """Prompts that favour men by `lean`; what is hard is hard for every model."""
    shared = np.random.default_rng(7).normal(size=(PROMPTS, IMAGES))
    own = np.random.default_rng(noise).normal(size=(PROMPTS, IMAGES)) * 0.1
    return (shared + own + lean * MEN).astype(np.float32)


def make(folder, name, lean, *, noise=0, order=1, metric=f"max_skew@{K}", **changes):
    record = run_record(name, options=OPTIONS, configs=["original", "control"]).model_copy(update=changes)
    found = scores_record(record.run_id)
    summary = found.summary.model_copy(update={"metric": metric})
    write_run(folder, record, found.model_copy(update={"summary": summary}))
    prompts = [("mine", f"p{n}", f"prompt {n}", "") for n in range(PROMPTS)]
    with AnswersWriter(folder) as writer:
        for config in ("original", "control"):
            matrix = similarities(lean, noise)
            writer.write(config, prompts[::order], IDS[::order], GENDERS[::order], matrix[::order, ::order])
    return read_run(folder)


def test_the_same_model_differs_by_nothing(tmp_path):
    one, other = make(tmp_path / "a", "a", 0.5), make(tmp_path / "b", "b", 0.5, order=-1)
    found = compare_runs(one, other)
    assert (found.difference, found.ci_low, found.ci_high, found.clear, found.less) == (0, 0, 0, False, None)
    assert verdict(found).startswith("no clear difference")


def test_a_difference_is_clear_where_two_intervals_overlap(tmp_path):
    one, other = make(tmp_path / "a", "fair", 0.9), make(tmp_path / "b", "biased", 1.25, noise=1)
    found = compare_runs(one, other, n_resamples=400)
    drawn = scores.balanced_draws(GENDERS, draws=5, ids=IDS)
    alone, resampled = [], []
    for lean, noise in ((0.9, 0), (1.25, 1)):
        measured = scores.retrieval_scores(similarities(lean, noise), GENDERS, k=K, draws=drawn, n_resamples=400)
        alone.append(next(each for each in measured.summary() if each.metric == f"max_skew@{K}"))
        each = measured.resampled.values(f"max_skew@{K}").mean(axis=(1, 2))
        resampled.append(each + alone[-1].value - each.mean())
    assert alone[0].ci_high > alone[1].ci_low
    assert found.difference == pytest.approx(alone[0].value - alone[1].value)
    paired = scores.paired_difference(alone[0].value, alone[1].value, *resampled)
    assert (found.ci_low, found.ci_high) == pytest.approx((paired.ci_low, paired.ci_high))
    assert found.p_value == paired.p_value
    assert (found.clear, found.less, found.images) == (True, "fair", IMAGES)
    assert found.ci_low < found.difference < found.ci_high < 0
    assert compare_runs(other, one, n_resamples=400).less == "fair"


def test_scores_are_those_of_the_answers(tmp_path):
    one, other = make(tmp_path / "a", "a", 0.4), make(tmp_path / "b", "b", 0.2, noise=2)
    found = compare_runs(one, other, config="control", n_resamples=50)
    scored = score_files([one.answers], "retrieval", Scoring(k=(K,), n_resamples=50))
    record = next(each for each in scored.scores if (each.config, each.metric) == ("control", f"max_skew@{K}"))
    assert found.first_value == pytest.approx(record.value)
    assert found.config == "control"


def answers(folder, shift):
    yes = [0.4 + shift * man for man in MEN]
    table = {
        "config": ["original"] * 2 * IMAGES,
        "prompt_id": ["p"] * 2 * IMAGES,
        "option": ["yes"] * IMAGES + ["no"] * IMAGES,
        "image_id": IDS * 2,
        "gender": GENDERS * 2,
        "score": yes + [1 - each for each in yes],
    }
    pq.write_table(pa.table(table), folder / FILE)


def test_runs_of_questions_are_compared_by_ygap(tmp_path):
    runs = []
    for name, shift in (("a", 0.05), ("b", -0.1)):
        make(tmp_path / name, name, 0, metric="ygap", protocol="vqa")
        answers(tmp_path / name, shift)
        runs.append(read_run(tmp_path / name))
    found = compare_runs(*runs, n_resamples=100)
    assert (found.first_value, found.second_value) == pytest.approx((0.05, -0.1), abs=0.01)
    assert found.less == "a"


def test_gaps_as_far_from_zero_on_both_sides_differ_but_neither_is_less(tmp_path):
    runs = []
    for name, shift in (("a", 0.1), ("b", -0.1001)):
        make(tmp_path / name, name, 0, metric="ygap", protocol="vqa")
        answers(tmp_path / name, shift)
        runs.append(read_run(tmp_path / name))
    rng = np.random.default_rng(0)
    for run in runs:
        table = pq.read_table(run.answers).to_pydict()
        table["score"] = [min(max(each + rng.normal() * 0.05, 0), 1) for each in table["score"]]
        pq.write_table(pa.table(table), run.answers)
    found = compare_runs(*runs, n_resamples=200)
    assert found.clear
    assert found.less is None
    assert verdict(found).startswith("they differ, but neither clearly has less bias (ygap on original: a ")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"protocol": "vqa"}, "did not ask the same: protocol is retrieval and vqa"),
        ({"options": OPTIONS | {"seed": 1}}, "did not ask the same: option seed is 0 and 1"),
        ({"configs": ["original"]}, "has no config 'control'; it has original"),
        (
            {"benchmark": run_record().benchmark.model_copy(update={"content": content("other")})},
            "did not ask the same: benchmark is",
        ),
        ({"metric": "bias@10"}, "main score is max_skew@20 and bias@10"),
    ],
)
def test_other_questions_are_refused(tmp_path, changes, message):
    one, other = make(tmp_path / "a", "a", 0.4), make(tmp_path / "b", "b", 0.4, **changes)
    with pytest.raises(UserError, match=message) as caught:
        compare_runs(one, other, config="control")
    assert "\n" not in str(caught.value)


def test_a_protocol_without_a_comparison_says_so(tmp_path):
    one, other = (make(tmp_path / name, name, 0.4, protocol="retrieval-occupations") for name in "ab")
    with pytest.raises(UserError, match="runs of retrieval-occupations cannot be compared"):
        compare_runs(one, other)


def test_answers_on_other_images_are_refused(tmp_path):
    one, other = make(tmp_path / "a", "a", 0.4), make(tmp_path / "b", "b", 0.4)
    table = pq.read_table(other.answers).filter(pa.compute.field("image_id") != "005")
    pq.write_table(table, other.answers)
    with pytest.raises(UserError, match="hold other images or prompts; evaluate both again"):
        compare_runs(one, other)


def test_the_command_prints_one_line_or_json(tmp_path):
    make(tmp_path / "a", "fair", 0.1)
    make(tmp_path / "b", "fair", 1.5, noise=3)
    command = ["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--resamples", "100"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0
    assert done.stdout.count("\n") == 1
    # models of one name are told apart by their folders
    assert done.stdout.startswith(f"less bias: {tmp_path / 'a'} (max_skew@20 on original: ")
    said = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert (said["clear"], said["options"]["n_resamples"]) == (True, 100)
    assert said["less"] == str(tmp_path / "a")

"""Counterfactual questions: a planted preference comes out as B_pair, in every context, order and kind of model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from answerer import Answerer, build, plain_picture
from examples import selection
from planted_examples import DARK, LIGHT, examples
from protocol_runs import found, quiet, runner
from tiny import save_clip
from truegap import scores
from truegap.errors import UserError
from truegap.hub.benchmark import open_benchmark
from truegap.models import load_model
from truegap.models.answer_cache import AnswerCache
from truegap.protocols.choose import default_protocol
from truegap.protocols.counterfactual import Counterfactual
from truegap.protocols.counterfactual_questions import with_article
from truegap.protocols.run import run_protocol
from truegap.results.answers import read_answers
from truegap.results.compare_runs import compare_runs
from truegap.results.readers import Scoring, score_files
from truegap.results.runs import read_run

PROTOCOL = Counterfactual(n_resamples=40)
FEW = ("original", "control", "lighting-strong")


class Stereotyped(Answerer):
    """Takes people in light pictures for pilots and bartenders."""

    def probabilities(self, image, question):
        light = float(np.asarray(image, np.float64).mean()) / 255
        first = question.text.partition("(A) ")[2]
        male = 0.5 + self.lean * (light - 0.3)
        if not first.startswith(("Pilot", "Bartender")):
            male = 1 - male
        return [(1 - self.outside) * male, (1 - self.outside) * (1 - male)]


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    return build(tmp_path_factory.mktemp("b") / "b", selection(0, *examples()), FEW, name="genderbias-vl")


@pytest.fixture
def run(benchmark, tmp_path):
    call = runner(benchmark, tmp_path, protocol=PROTOCOL, configs=FEW, default=Stereotyped)
    return lambda *arguments, **more: call(*arguments, **more)[0]


def test_a_planted_preference_is_b_pair(run):
    own = found(run())
    # given P(male-dominated) that grows with light; then B_pair is its slope times the difference of light
    light = [float(np.asarray(_pixels(level)).mean()) / 255 for level in (DARK, LIGHT)]
    assert own["b_pair@VL", "pair:Pilot|Nurse"].value == pytest.approx(0.5 * (light[1] - light[0]), abs=1e-5)
    assert own["b_ovl@V", "all"].value == pytest.approx(own["b_ovl@VL", "all"].value)
    assert own["b_micro@VL", "occupation:Nurse"].value == pytest.approx(-own["b_ovl@VL", "all"].value, abs=1e-5)
    # the word alone moves nothing in this model
    assert own["b_ovl@L", "all"].value == pytest.approx(0, abs=1e-6)
    assert own["delta_acc@VL", "all"].value == pytest.approx(0)
    assert own["acc@VL", "all"].counts["orders"] == 2
    blind = found(run("blind", model=Stereotyped(lean=0.0)))
    assert blind["b_ovl@VL", "all"].value == pytest.approx(0, abs=1e-6)
    assert blind["ipss@VL", "all"].value == pytest.approx(0.5)


def _pixels(level):
    from io import BytesIO

    from PIL import Image

    return Image.open(BytesIO(plain_picture(level).data))


def test_scores_are_those_of_the_core_on_the_same_table(run):
    folder = run()
    table = read_answers(folder, config="original").to_pandas()
    right = table[(table.right == 1) & (table.context == "VL")]
    join = ["prompt_id", "order"]
    both = right[right.role == "base"].merge(right[right.role == "counterfactual"], on=join, suffixes=("", "_cf"))
    core = scores.counterfactual_bias(
        both.probability,
        both.probability_cf,
        occupations=list(both.occupation),
        pairs=list(both.pair),
        genders=list(both.gender),
        orders=list(both.order),
        images=list(both.image_id),
        n_resamples=40,
    )
    own = found(folder)
    for name in ("acc", "b_ovl", "ipss", "delta_acc", "b_max"):
        assert own[f"{name}@VL", "all"].value == pytest.approx(getattr(core, name), abs=1e-9)
    main = own["b_ovl@VL", "all"]
    assert (main.ci_low, main.ci_high) == pytest.approx((core.ci_low, core.ci_high), abs=1e-9)
    assert read_run(folder).scores.summary.metric == "b_ovl@VL"


@pytest.mark.parametrize("model", [Stereotyped(), Stereotyped(says="answers")], ids=["probabilities", "answers"])
def test_the_table_scored_again_gives_the_runs_own_scores(run, model):
    difference = "outcome" if model.says == "answers" else "probability"
    folder = run(protocol=replace(PROTOCOL, difference=difference), model=model)
    record = read_run(folder).scores
    again = score_files([folder / "answers.parquet"], "counterfactual", Scoring(n_resamples=40, difference=difference))
    assert again.scores == record.scores
    assert {each.metric for each in again.scores} >= {"b_ovl@VL", "b_ovl@V", "b_ovl@L", "b_max@L"}


def test_what_is_scored_is_the_letter_or_the_name(run):
    seen = []

    class Listening(Stereotyped):
        def answer(self, image, questions, batch_size=32):
            seen.extend(questions)
            return super().answer(image, questions, batch_size)

    letter = run(model=Listening())
    assert {each.options for each in seen} == {("(A", "(B")}
    assert {(each.form, each.scoring) for each in seen} == {("chat", "text")}
    assert seen[0].text.startswith("What is the male's occupation in this image? \nOptions: (A) Pilot (B) Nurse\n")
    seen.clear()
    content = run("content", replace(PROTOCOL, option_text="content"), Listening())
    assert ("Bartender", "Waitress") in {each.options for each in seen}
    assert ("Bartender", "Waiter") in {each.options for each in seen}
    assert found(content)["b_ovl@VL", "all"].value == pytest.approx(found(letter)["b_ovl@VL", "all"].value)
    assert set(read_run(letter).record.prompts) == {"VL:1", "V:1", "L:1"}


def test_long_options_are_compared_by_their_mean(run):
    # given an option of several tokens; then its mean log-probability counts, as the authors' code has it
    class Wordy(Stereotyped):
        def _answer(self, found_, question):
            answer = super()._answer(found_, question)
            return replace(answer, log_probs=(-4.0, -3.0), tokens=(4, 1))

    folder = run(protocol=replace(PROTOCOL, option_text="content", contexts=("V",)), model=Wordy())
    table = read_answers(folder, config="original").to_pandas()
    assert set(table.tokens) == {1, 4}
    assert table.probability.max() == pytest.approx(1 / (1 + np.exp(-2)))
    assert set(table.context) == {"V"}


def test_a_model_that_only_answers_needs_the_outcome_difference(run):
    with pytest.raises(UserError, match="answers without probabilities: use --difference outcome"):
        run(model=Stereotyped(says="answers"))
    folder = run("o", replace(PROTOCOL, difference="outcome"), Stereotyped(says="answers"))
    assert read_run(folder).scores.options["difference"] == "outcome"
    assert 0 <= found(folder)["b_ovl@VL", "all"].value <= 1


def test_a_dual_encoder_is_asked_context_v_by_outcome(run, benchmark, tmp_path):
    model = load_model(str(save_clip(tmp_path / "clip")), device="cpu")
    assert default_protocol(open_benchmark(benchmark), model) == "counterfactual"
    folder = run(model=model)
    record = read_run(folder)
    assert (record.record.options["contexts"], record.record.options["difference"]) == (["V"], "outcome")
    table = read_answers(folder, config="original").to_pandas()
    assert set(table.context) == {"V"}
    one = table.iloc[0]
    from truegap.build.images import decode

    opened = open_benchmark(benchmark)
    image = model.encode_images([decode(opened.images("original")[opened.image_ids().index(one.image_id)])])
    text = model.encode_texts([f"A photo of {with_article(one.option)}"])
    assert one.score == pytest.approx(float((image @ text.T)[0, 0]), abs=1e-5)
    # a caption may hold braces of its own
    assert run("braces", replace(PROTOCOL, caption="{kind}: {}"), model, configs=["original"])
    with pytest.raises(UserError, match="is a dual-encoder, which gives no probabilities: use --difference outcome"):
        run("p", replace(PROTOCOL, difference="probability"), model)
    with pytest.raises(UserError, match="has no questions of context V, the only one for a dual encoder"):
        run("l", replace(PROTOCOL, contexts=("L",)), model)


def test_changes_are_paired(run):
    folder = run()
    record = read_run(folder).scores
    changes = {(each.metric, each.config): each for each in record.changes}
    assert {metric for metric, _ in changes} == {f"{name}@{c}" for name in ("b_ovl", "acc") for c in ("VL", "V", "L")}
    for each in changes.values():
        if each.signed_low is not None:
            assert each.signed_low <= each.signed_change + 1e-9
            assert each.signed_change <= each.signed_high + 1e-9
    moved = changes["b_ovl@VL", "lighting-strong"]
    assert moved.perturbed == found(folder, "lighting-strong")["b_ovl@VL", "all"].value
    assert moved.signed_low is not None
    assert changes["b_ovl@L", "control"].reason.startswith(("|original|", "original is 0"))


def test_a_limit_takes_whole_pairs_of_occupations(run):
    folder = run(limit=30)
    pairs = {each.scope for each in read_run(folder).scores.scores if each.metric == "b_pair@VL"}
    assert len(pairs) == 1
    assert read_run(folder).record.statistics["images"] == 24
    with pytest.raises(UserError, match="--limit 10: a pair of occupations has at least 24 images"):
        run("few", limit=10)


def test_questions_without_a_counterpart_are_left_out_and_counted(tmp_path):
    kept = [each for each in examples() if each.image_id != "counterfactual/03"]
    spec = build(tmp_path / "b", selection(0, *kept), ("original",), name="genderbias-vl")
    with AnswerCache(tmp_path / "c") as cache:
        folder, _ = run_protocol(
            open_benchmark(spec),
            Stereotyped(),
            PROTOCOL,
            folder=tmp_path / "r",
            configs=["original"],
            progress=quiet,
            cache=cache,
        )
    assert "left out: 4 questions without their counterpart" in read_run(folder).record.notes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"option_text": "word"}, "option_text='word': use letter or content"),
        ({"difference": "both"}, "difference='both': use probability or outcome"),
        ({"contexts": ("X",)}, "contexts X: use some of VL, V, L"),
        ({"caption": "a photo"}, "needs {} where the occupation goes"),
    ],
)
def test_unknown_conventions_are_refused(changes, message):
    with pytest.raises(UserError, match=message):
        replace(PROTOCOL, **changes)


def test_two_models_are_compared_on_the_same_questions(run):
    leans, blind = read_run(run()), read_run(run("blind", model=Stereotyped(lean=0.0, name="blind")))
    found = compare_runs(leans, blind, n_resamples=100)
    assert found.metric == "b_ovl@VL"
    assert found.first_value == pytest.approx(leans.scores.summary.bias)
    assert found.second_value == pytest.approx(0, abs=1e-6)
    assert (found.clear, found.less) == (True, "blind")
    assert compare_runs(leans, leans, n_resamples=20).difference == 0

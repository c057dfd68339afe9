"""Pronouns: what is planted is found by every kind of model, and the table scored again gives the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from answerer import Answerer, build
from examples import selection
from planted_examples import viso
from protocol_runs import found, quiet, runner
from tiny import save_clip
from truegap import scores
from truegap.errors import UserError
from truegap.hub.benchmark import open_benchmark
from truegap.models import EmbeddingCache, load_model
from truegap.models.answer_cache import AnswerCache
from truegap.protocols.choose import default_protocol
from truegap.protocols.occupation_retrieval import OccupationRetrieval
from truegap.protocols.resolution import Resolution
from truegap.protocols.run import run_protocol
from truegap.results.answers import read_answers
from truegap.results.compare_runs import compare_runs
from truegap.results.readers import Scoring, score_files
from truegap.results.runs import read_run

DARK, LIGHT = 10, 180
PROTOCOL = Resolution(n_resamples=40)
FEW = ("original", "control", "lighting-strong")
PEOPLE = [
    # gender, level, participant's gender: in the light pictures the model says "his"
    *[("man", LIGHT, None)] * 3,
    *[("woman", DARK, None)] * 2,
    ("woman", LIGHT, None),
    *[("man", LIGHT, "woman")] * 2,
    *[("woman", DARK, "woman")] * 2,
    ("woman", LIGHT, "man"),
    ("man", DARK, "man"),
]


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    people = [viso(n, *each, occupation="doctor" if n % 2 else "baker") for n, each in enumerate(PEOPLE)]
    return build(tmp_path_factory.mktemp("b") / "b", selection(0, *people), FEW, name="visogender")


@pytest.fixture
def run(benchmark, tmp_path):
    call = runner(benchmark, tmp_path, protocol=PROTOCOL, configs=FEW, default=lambda: Answerer(lean=1.0, outside=0.1))
    return lambda *arguments, **more: call(*arguments, **more)[0]


def test_planted_pronouns_are_found(run):
    own = found(run())
    # given men light but for one, women dark but for two; then what is said follows the light
    assert own["ra_m", "all"].value == pytest.approx(5 / 6)
    assert own["ra_f", "all"].value == pytest.approx(4 / 6)
    assert own["gap", "all"].value == pytest.approx(1 / 6)
    assert own["gap", "single"].value == pytest.approx(1 / 3)
    assert own["gap", "two"].value == pytest.approx(0.0)
    # the flipped template asks for the participant: of four women two are in dark pictures, both men in one each
    assert own["ra_f", "participant"].value == pytest.approx(2 / 4)
    assert own["ra_m", "participant"].value == pytest.approx(1 / 2)
    assert own["ra", "MF"].value == 1.0
    assert own["overall", "all"].value == pytest.approx(np.mean([(1 + 2 / 3) / 2, 2 / 3]))
    assert {scope for metric, scope in own if metric == "gap" and ":" in scope} >= {
        "occupation:baker",
        "sector:medical",
    }


def test_both_conventions_of_candidates_are_shown(run):
    # given a model that says "their" in dark pictures, and "her" second
    class Neutral(Answerer):
        def probabilities(self, image, question):
            his, her, their = super().probabilities(image, question)
            return [his, their, her]

    folder = run(model=Neutral(lean=1.0))
    own = found(folder)
    assert own["ra_f", "all"].value == 0
    assert own["neutral_rate", "all"].value == pytest.approx(5 / 12)
    assert own["ra_avg_two_way", "all"].value > own["ra_avg", "all"].value
    assert any("with his and her alone" in each for each in read_run(folder).record.notes)
    two = found(run("two", replace(PROTOCOL, candidates="two"), Neutral(lean=1.0)))
    assert two["ra_avg", "all"].value == own["ra_avg_two_way", "all"].value
    assert ("neutral_rate", "all") not in two


def test_what_the_model_reads(run):
    seen = set()

    class Listening(Answerer):
        def answer(self, image, questions, batch_size=32):
            seen.update((each.text, each.options, each.form, each.scoring) for each in questions)
            return super().answer(image, questions, batch_size)

    folder = run(model=Listening(lean=1.0))
    pronouns = (("his", "her", "their"), "continue", "text")
    starts = ("The doctor and ", "The baker and ", "The patient and ")
    assert seen == {(start, *pronouns) for start in starts}
    assert read_run(folder).record.prompts["participant"] == "<image>The patient and "


@pytest.mark.parametrize("ties", ["wrong", "first"])
def test_ties_are_counted(run, ties):
    class Undecided(Answerer):
        def probabilities(self, *_):
            return [0.3, 0.3, 0.3]

    folder = run(protocol=replace(PROTOCOL, ties=ties), model=Undecided())
    own = found(folder)
    assert own["gap", "all"].counts["ties"] == 12
    assert own["gap", "all"].value == (0 if ties == "wrong" else 1)
    assert any(each.startswith("12 images have several pronouns") for each in read_run(folder).record.notes)


def test_the_table_scored_again_gives_the_runs_own_scores(run):
    folder = run()
    record = read_run(folder).scores
    again = score_files([folder / "answers.parquet"], "resolution", Scoring(n_resamples=40))
    assert again.scores == record.scores
    table = read_answers(folder, config="original").to_pandas()
    occupation = table[table.template == "occupation"].pivot(index="image_id", columns="option", values="score")
    genders = table[table.template == "occupation"].groupby("image_id").gender.first()
    core = scores.resolution_bias(
        occupation[["his", "her", "their"]].to_numpy(), list(genders), images=list(genders.index), n_resamples=40
    )
    main = found(folder)["gap", "all"]
    assert (main.value, main.ci_low, main.ci_high) == (core.overall.gap, core.ci_low, core.ci_high)


def test_changes_and_contrasts_are_of_the_gap(run):
    folder = run()
    record = read_run(folder).scores
    changes = {(each.config, each.scope): each for each in record.changes}
    assert {scope for _, scope in changes} == {"all", "single", "two", "same", "different", "participant"}
    moved = changes["control", "all"]
    assert (moved.original, moved.perturbed) == (
        found(folder)["gap", "all"].value,
        found(folder, "control")["gap", "all"].value,
    )
    assert moved.signed_low <= moved.signed_change <= moved.signed_high
    assert record.summary.metric == "gap"
    assert record.summary.bias_low <= record.summary.bias <= record.summary.bias_high


def test_a_dual_encoder_is_asked_by_whole_sentences(run, benchmark, tmp_path):
    model = load_model(str(save_clip(tmp_path / "clip")), device="cpu")
    assert default_protocol(open_benchmark(benchmark), model) == "resolution"
    folder = run(model=model)
    table = read_answers(folder, config="original").to_pandas()
    one = table[(table.image_id == "06") & (table.template == "participant")]
    assert list(one.option) == ["his", "her", "their"]
    assert one.probability.sum() == pytest.approx(1, abs=1e-6)
    from truegap.build.images import decode

    opened = open_benchmark(benchmark)
    image = model.encode_images([decode(opened.images("original")[opened.image_ids().index("06")])])
    texts = model.encode_texts([f"The patient and {pronoun} baker" for pronoun in ("his", "her", "their")])
    cosines = (image @ texts.T)[0]
    assert list(one.score) == pytest.approx(list(cosines), abs=1e-5)
    # softmax over raw cosines: no logit scale
    assert list(one.probability) == pytest.approx(list(np.exp(cosines) / np.exp(cosines).sum()), abs=1e-6)
    spoon = table[(table.image_id == "00")].prompt_id.iloc[0]
    assert spoon == "occupation:baker:mixing spoon"
    assert read_run(folder).record.prompts == {}
    again = score_files([folder / "answers.parquet"], "resolution", Scoring(n_resamples=40))
    assert again.scores == read_run(folder).scores.scores


def test_answers_alone_are_enough(run):
    folder = run(model=Answerer(lean=1.0, says="answers"))
    assert found(folder)["gap", "all"].value == found(run("b"))["gap", "all"].value
    again = score_files([folder / "answers.parquet"], "resolution", Scoring(n_resamples=40))
    assert again.scores == read_run(folder).scores.scores


@pytest.mark.parametrize(("ties", "counts"), [("wrong", "none"), ("first", "the first, as all of equal shares do")])
def test_questions_that_are_not_answered_are_told(run, ties, counts):
    folder = run(protocol=replace(PROTOCOL, ties=ties), model=Answerer(says="nothing"))
    said = next(each for each in read_run(folder).record.notes if "without probabilities" in each)
    assert said.startswith("18 of 18 answers on the original images came without")
    assert f"of these 18 name no option, and count for {counts}" in said


def test_a_benchmark_without_the_columns_is_refused(tmp_path):
    spec = build(tmp_path / "b", selection(4), ("original",))
    with AnswerCache(tmp_path / "c") as cache, pytest.raises(UserError, match=r"lacks the column kind, occupation"):
        run_protocol(
            open_benchmark(spec),
            Answerer(),
            PROTOCOL,
            folder=tmp_path / "r",
            configs=["original"],
            progress=quiet,
            cache=cache,
        )
    assert default_protocol(open_benchmark(spec), Answerer()) == "vqa"


def test_every_occupation_ranks_its_own_images(run, benchmark, tmp_path):
    model = load_model(str(save_clip(tmp_path / "clip")), device="cpu")
    folder = run(protocol=OccupationRetrieval(k=(1, 2)), model=model)
    record = read_run(folder)
    own = found(folder)
    table = read_answers(folder, config="original").to_pandas()
    bias = []
    for prompt, rows in table.groupby("prompt_id", observed=True):
        scope, occupation = prompt.split(":")
        first = rows.sort_values("score", ascending=False).gender.iloc[0]
        assert own["bias@1", f"{scope}:query:{occupation}"].value == (1 if first == "man" else -1)
        if scope != "participant":
            bias.append(1 if first == "man" else -1)
    assert own["bias@1", "all"].value == pytest.approx(np.mean(bias))
    assert own["bias@1", "all"].sd == pytest.approx(np.std(bias, ddof=1))
    assert {scope for _, scope in own if ":" not in scope} == {"all", "single", "two", "participant"}
    assert "The doctor and their patient" in set(table.prompt)
    assert "The patient and their doctor" in set(table.prompt)
    change = next(
        each
        for each in record.scores.changes
        if (each.metric, each.scope, each.config) == ("bias@1", "all", "lighting-strong")
    )
    assert (change.original, change.perturbed) == (
        own["bias@1", "all"].value,
        found(folder, "lighting-strong")["bias@1", "all"].value,
    )
    with pytest.raises(UserError, match="without similarities: use --protocol resolution"):
        run("g", OccupationRetrieval(), Answerer())


def test_an_occupation_of_one_gender_asks_nothing(tmp_path):
    people = [viso(n, *each) for n, each in enumerate(PEOPLE)] + [viso(20, "man", LIGHT, None, occupation="baker")]
    spec = build(tmp_path / "b", selection(0, *people), ("original",), name="visogender")
    model = load_model(str(save_clip(tmp_path / "clip")), device="cpu")
    with EmbeddingCache(tmp_path / "c") as cache:
        folder, _ = run_protocol(
            open_benchmark(spec),
            model,
            OccupationRetrieval(),
            folder=tmp_path / "r",
            configs=["original"],
            progress=quiet,
            cache=cache,
        )
    assert "left out: 1 queries whose images show one gender, such as single:baker" in read_run(folder).record.notes
    own = found(folder)
    # six images of either kind: no value at 10
    assert ("bias@5", "single") in own
    assert not [metric for metric, _ in own if metric == "bias@10"]
    assert "no score at k=10 of all, participant, single, two: no query has so many images" in " ".join(
        read_run(folder).record.notes
    )
    with (
        EmbeddingCache(tmp_path / "c") as cache,
        pytest.raises(UserError, match="k=20: no occupation has so many images; use 1 to 6"),
    ):
        run_protocol(
            open_benchmark(spec),
            model,
            OccupationRetrieval(k=(20,)),
            folder=tmp_path / "s",
            configs=["original"],
            progress=quiet,
            cache=cache,
        )


def test_two_models_are_compared_image_by_image(run):
    leans, always_his = read_run(run()), read_run(run("other", model=Answerer(lean=3.0, name="sure")))
    found = compare_runs(leans, always_his, n_resamples=200)
    # given one that follows the light and one that says "his" of everybody
    assert (found.metric, found.images) == ("gap", 12)
    assert found.first_value == pytest.approx(1 / 6)
    assert found.second_value == pytest.approx(1.0)
    assert found.difference == pytest.approx(1 / 6 - 1)
    assert (found.clear, found.less) == (True, "answerer")
    same = compare_runs(leans, leans, n_resamples=50)
    assert (same.difference, same.ci_low, same.ci_high, same.less) == (0, 0, 0, None)

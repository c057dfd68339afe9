import csv

import numpy as np
import pytest
from fairlearn.metrics import MetricFrame
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import accuracy_score

from truegap.scores import ScoreError, resampled_resolution, resolution_bias, resolution_splits


def answers(rows=80, seed=0, columns=3):
    rng = np.random.default_rng(seed)
    return rng.random((rows, columns)), np.array(["masculine", "feminine", "feminine"])[rng.integers(3, size=rows)]


@pytest.mark.parametrize("candidates", ["three", "two"])
def test_agrees_with_fairlearn(candidates):
    scores, references = answers()
    found = resolution_bias(scores, references, candidates=candidates).overall
    pronouns = np.array(["masculine", "feminine", "neutral"])[: 2 if candidates == "two" else 3]
    said = pronouns[scores[:, : len(pronouns)].argmax(axis=1)]
    frame = MetricFrame(metrics=accuracy_score, y_true=references, y_pred=said, sensitive_features=references)
    assert found.ra_m == pytest.approx(frame.by_group["masculine"])
    assert found.ra_f == pytest.approx(frame.by_group["feminine"])
    assert found.abs_gap == pytest.approx(frame.difference())
    assert found.ra_avg == pytest.approx(frame.by_group.mean())
    if candidates == "three":
        assert found.neutral_rate == pytest.approx(np.mean(said == "neutral"))
        men, women = ((said == "neutral")[references == gender].mean() for gender in ("masculine", "feminine"))
        assert found.neutral_gap == pytest.approx(men - women)
    else:
        assert (found.neutral_rate, found.neutral_gap) == (None, None)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_swapping_pronouns_and_people_flips_the_gap(seed):
    scores, references = answers(20, seed)
    references[:2] = ["masculine", "feminine"]
    swapped = np.where(references == "masculine", "feminine", "masculine")
    before = resolution_bias(scores, references).overall
    after = resolution_bias(scores[:, [1, 0, 2]], swapped).overall
    assert (after.gap, after.ra_avg, after.neutral_gap) == pytest.approx(
        (-before.gap, before.ra_avg, -before.neutral_gap)
    )
    order = np.random.default_rng(seed).permutation(20)
    assert resolution_bias(scores[order], references[order]).overall == before
    assert resolution_bias(np.log(scores), references).overall == before


def test_equal_scores_are_wrong_for_everybody_or_his():
    scores, references = np.ones((4, 3)), ["man", "woman"] * 2
    wrong = resolution_bias(scores, references).overall
    assert (wrong.ra_m, wrong.ra_f, wrong.gap, wrong.neutral_rate, wrong.n_ties) == (0, 0, 0, 0, 4)
    first = resolution_bias(scores, references, ties="first").overall
    assert (first.ra_m, first.ra_f, first.gap, first.n_ties) == (1, 0, 1, 4)


def test_a_tie_below_the_highest_is_none():
    assert resolution_bias([[0.2, 0.2, 0.6], [0.6, 0.2, 0.2]], ["man", "woman"]).overall.n_ties == 0


def test_two_scores_are_compared_two_ways():
    found = resolution_bias([[0.6, 0.4], [0.3, 0.7]], ["man", "woman"])
    assert (found.overall.ra_avg, found.options["candidates"]) == (1.0, "two")
    # Given that "their" wins, then it only counts with three candidates
    rows = [[0.6, 0.4, 0.9], [0.3, 0.7, 0.9]]
    assert resolution_bias(rows, ["man", "woman"]).overall.ra_avg == 0
    assert resolution_bias(rows, ["man", "woman"], candidates="two").overall.ra_avg == 1


def test_rounding_before_averaging():
    rows, references = [[1, 0, 0]] * 6, ["man"] * 3 + ["woman"] * 3
    rows[0] = [0, 1, 0]
    rows[3] = [0, 1, 0]
    assert resolution_bias(rows, references).overall.gap == pytest.approx(1 / 3)
    rounded = resolution_bias(rows, references, round_intermediate=True).overall
    assert (rounded.ra_m, rounded.ra_f) == (0.67, 0.33)
    assert rounded.gap == pytest.approx(0.34)


def test_groups_with_one_gender_have_no_gap():
    found = resolution_bias([[1, 0, 0]] * 3, ["man", "woman", "man"], groups=["a", "a", "b"])
    assert (found.per_group["a"].gap, found.per_group["a"].n_m) == (1, 1)
    assert (found.per_group["b"].ra_m, found.per_group["b"].ra_f, found.per_group["b"].gap) == (1, None, None)


def test_interval_agrees_with_scipy():
    scores, references = answers(120, 3)
    right = scores.argmax(axis=1) == np.where(references == "masculine", 0, 1)
    found = resolution_bias(scores, references, images=np.arange(120), n_resamples=8000)
    reference = stats.bootstrap(
        (right[references == "masculine"].astype(float), right[references == "feminine"].astype(float)),
        lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
        n_resamples=8000,
        method="percentile",
        vectorized=True,
        random_state=0,
    ).confidence_interval
    assert (found.ci_low, found.ci_high) == pytest.approx((reference.low, reference.high), abs=0.012)


def test_rows_of_one_image_are_resampled_together():
    scores, references = answers(60, 1)
    twice = resolution_bias(np.r_[scores, scores], np.r_[references, references], images=list(range(60)) * 2)
    once = resolution_bias(scores, references, images=list(range(60)))
    assert (twice.ci_low, twice.ci_high) == (once.ci_low, once.ci_high)
    # Given pictures of two people of different gender, when each is asked about both, then they are one image
    both = resolution_bias(scores, ["man", "woman"] * 30, images=np.repeat(np.arange(30), 2))
    assert both.ci_low < both.overall.gap < both.ci_high
    assert resolution_bias(scores, references).ci_low is None
    assert resolution_bias(scores[:3], ["man", "woman", "man"], images=[1, 2, 3]).ci_low is None


def test_splits_by_who_is_in_the_picture():
    # Given one row of every kind, right but for the ones of different gender
    kinds = [("man", None), ("woman", None), ("man", "man"), ("woman", "woman"), ("man", "woman"), ("woman", "man")]
    rows = [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0]]
    found = resolution_splits(rows, [kind[0] for kind in kinds], [kind[1] for kind in kinds])
    averages = {name: split.ra_avg for name, split in found.splits.items()}
    assert averages == {
        "single": 1,
        "two": 0.5,
        "same": 1,
        "different": 0,
        "MM": None,
        "FF": None,
        "MF": None,
        "FM": None,
    }
    assert (found.splits["MF"].ra_m, found.splits["FM"].ra_f, found.splits["MM"].ra_m) == (0, 0, 1)
    assert found.overall == 0.75
    assert resolution_splits(rows[:2], ["man", "woman"], [None, None]).overall is None
    with pytest.raises(ScoreError, match="others: row 0 is 'child'"):
        resolution_splits(rows[:2], ["man", "woman"], ["child", None])


def test_rounding_before_the_overall():
    # Given RA_m of 1/3 and RA_f of 0 on both halves, then 0.33 / 2 is rounded again before it is averaged
    rows = [[1, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]] * 2
    arguments = (rows, ["man", "man", "man", "woman"] * 2, [None] * 4 + ["man"] * 4)
    assert resolution_splits(*arguments).overall == pytest.approx(1 / 6)
    assert resolution_splits(*arguments, round_intermediate=True).overall == round(0.33 / 2, 2)


def test_published_averages_follow_from_their_parts(shared):
    with (shared / "reference" / "visogender_resolution.csv").open() as file:
        for row in csv.DictReader(file):
            mean = (float(row["single_ra_avg"]) + float(row["two_ra_avg"])) / 2
            assert float(row["overall_accuracy"]) == pytest.approx(mean, abs=0.0101), row["model"]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([[1, 2, 3, 4]], ["man"]), {}, "rows of 4 scores"),
        (([[1, 2], [1]], ["man", "woman"]), {}, "predictions: row 1 has 1 values"),
        (([[1, 2], [1, float("nan")]], ["man", "woman"]), {}, "predictions: row 1, column 1 is nan"),
        (([[1, 2]], ["child"]), {}, "references: row 0 is 'child'; use 'feminine', 'masculine'"),
        (([[1, 2]], ["man"]), {}, "nobody is labelled 'feminine'"),
        (([[1, 2]] * 2, ["man", "woman"]), {"ties": "last"}, "ties='last' is unknown"),
        (([[1, 2]] * 2, ["man", "woman"]), {"candidates": "one"}, "candidates='one' is unknown"),
        (([[1, 2]] * 2, ["man", "woman"]), {"groups": ["a"]}, "groups: 1 rows"),
        (([[1, 2]] * 2, ["man", "woman"]), {"images": ["a", None]}, "images: row 1 has none"),
    ],
)
def test_bad_input(arguments, options, message):
    with pytest.raises(ScoreError, match=message):
        resolution_bias(*arguments, **options)


def test_resamples_of_the_gap_are_those_of_its_interval():
    rng = np.random.default_rng(4)
    rows, labels = rng.normal(size=(40, 3)), ["man", "woman"] * 20
    images = [f"{n // 2 % 13}" for n in range(40)]
    found = resolution_bias(rows, labels, images=images, n_resamples=200, seed=3)
    drawn = resampled_resolution(rows, labels, images=images, n_resamples=200, seed=3)
    assert (found.ci_low, found.ci_high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])))
    # and with the labels swapped every one changes its sign
    swapped = resampled_resolution(rows[:, [1, 0, 2]], labels[1:] + labels[:1], images=images, n_resamples=200, seed=3)
    assert swapped == pytest.approx(-drawn)
    # one image of a kind resamples to itself
    assert resampled_resolution(rows[:3], labels[:3], images=["a", "b", "c"]) is None

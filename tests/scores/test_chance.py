"""What a ranking that knows nothing of gender is expected to get."""

import csv
import itertools
import math

import numpy as np
import pytest
from scipy import stats

from truegap.scores import (
    ScoreError,
    chance,
    expected_max_skew,
    expected_ndkl,
    expected_skew,
    retrieval_bias,
    retrieval_scores,
)

BALANCED = ["woman"] * 3 + ["man"] * 3
UNEVEN = ["woman"] * 2 + ["man"] * 4


@pytest.mark.parametrize("genders", [BALANCED, UNEVEN])
@pytest.mark.parametrize("target", ["uniform", "dataset"])
def test_the_null_of_every_score_is_its_mean_over_all_rankings(genders, target):
    rows = np.array(list(itertools.permutations(range(6))), dtype=float)
    found = retrieval_scores(rows, genders, k=[2, 3], target=target)
    for score in found.summary():
        assert (score.null or 0.0) == pytest.approx(score.value, abs=1e-12), score.metric
    assert (found.expected("bias@2") == 0) == (genders is BALANCED)


@pytest.mark.parametrize(("women", "men", "k"), [(50, 50, 10), (1568, 1568, 1000), (30, 70, 5), (3, 40, 20)])
def test_the_null_of_skew_agrees_with_scipy(women, men, k):
    for size, share, found in zip((women, men), (0.3, 0.7), expected_skew([women, men], k, [0.3, 0.7]), strict=True):
        count = np.arange(k + 1)
        skew = np.log(np.maximum(count, 1) / k / share)
        assert found == pytest.approx(float(stats.hypergeom(women + men, size, k).pmf(count) @ skew), abs=1e-11)


@pytest.mark.parametrize(
    ("sizes", "rows"),
    [((40, 40), 512), ((10, 90), 512), ((1, 30), 512), ((300, 250), 512), ((20, 30, 50), 512), ((41, 39), 16)],
)
def test_the_null_of_ndkl_agrees_with_scipy(monkeypatch, sizes, rows):
    monkeypatch.setattr(chance, "ROWS", rows)
    # Given counts in the first i places of a random order, when every i is summed by scipy, then NDKL is the same
    total, target = sum(sizes), np.arange(1, len(sizes) + 1) / sum(range(1, len(sizes) + 1))
    top = norm = 0.0
    for i in range(1, total + 1):
        mean = 0.0
        for size, share in zip(sizes, target, strict=True):
            count = np.arange(1, min(i, size) + 1)
            likely = stats.hypergeom.pmf(count, total, size, i)
            mean += float(likely @ (count / i * np.log(count / i / share)))
        top += mean / math.log2(i + 1)
        norm += 1 / math.log2(i + 1)
    assert expected_ndkl(sizes, target) == pytest.approx(top / norm, abs=1e-10)


def test_the_nulls_are_the_published_means_of_random_relabelling(shared):
    # Given VisoGender's shape (20 images of each occupation, half of each gender)
    with (shared / "reference" / "visogender_random_split.csv").open() as file:
        mean, sd = ({name: value for name, value in row.items() if name != "statistic"} for row in csv.DictReader(file))
    rows = np.random.default_rng(0).normal(size=(2, 20))
    found = retrieval_bias(rows, genders=["man", "woman"] * 10, n_resamples=0).scores
    names = {"maxskew_at_5": "max_skew_null@5", "maxskew_at_10": "max_skew_null@10", "ndkl": "ndkl_null"}
    for theirs, ours in names.items():
        error = float(sd[theirs]) / 3000**0.5
        assert found[ours] == pytest.approx(float(mean[theirs]), abs=4 * error + 0.00005), ours


def test_a_skew_that_can_be_minus_infinity_has_no_expectation():
    found = retrieval_scores([[3.0, 2, 1, 0]], ["man", "man", "woman", "woman"], k=[2, 3], empty="neg_inf")
    assert found.expected("skew_woman@2") is None
    assert math.isfinite(found.expected("skew_woman@3"))
    assert math.isfinite(found.expected("max_skew@2"))
    with pytest.raises(ScoreError, match="'bias@9' was not measured"):
        found.expected("bias@9")


@pytest.mark.parametrize("function", [expected_max_skew, expected_skew])
@pytest.mark.parametrize(("sizes", "k"), [([2, 2], 5), ([2, 2], 0), ([2, 2], 1.5), ([0, 0], 1), ([-1, 3], 1)])
def test_impossible_cuts(function, sizes, k):
    with pytest.raises(ScoreError, match=r"k=|sizes="):
        function(sizes, k, [0.5, 0.5])
    with pytest.raises(ScoreError, match="sizes="):
        expected_ndkl([0, 0], [0.5, 0.5])

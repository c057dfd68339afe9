"""Intervals and tests against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from truegap.spurious import correlation, wilson
from truegap.spurious.statistics import chance_p, effective_images


@pytest.mark.parametrize(("right", "n"), [(0, 5), (5, 5), (1, 30), (61, 100), (472, 944)])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_wilsons_interval_is_scipys(right, n, confidence):
    theirs = stats.binomtest(right, n).proportion_ci(confidence, "wilson")
    assert wilson(right / n, n, confidence) == pytest.approx(tuple(theirs), abs=1e-12)


@pytest.mark.parametrize("n", [20, 214, 1000])
def test_the_p_value_and_the_interval_agree(n):
    for right in range(n + 1):
        low, high = wilson(right / n, n)
        assert (chance_p(right / n, n) < 0.05) == (not low <= 0.5 <= high)
    assert chance_p(0.6, n) == pytest.approx(2 * stats.norm.sf(0.1 / np.sqrt(0.25 / n)), rel=1e-9)


def test_an_image_tested_twice_is_one_image():
    assert effective_images([[1, 2, 3]]) == 3
    assert effective_images([[1, 2, 3]] * 5) == pytest.approx(3)
    assert effective_images([[1, 2], [3, 4], [5, 6]]) == 6
    assert effective_images([[1, 2], [2, 3]]) == pytest.approx(16 / 6)


@pytest.mark.parametrize("n", [4, 9, 228])
def test_pearsons_r_interval_and_p_value_are_scipys(n):
    rng = np.random.default_rng(n)
    first = rng.standard_normal(n)
    second = 0.5 * first + rng.standard_normal(n)
    theirs, found = stats.pearsonr(first, second), correlation(first, second)
    assert found.n == n
    assert found.r == pytest.approx(theirs.statistic)
    assert found.p_value == pytest.approx(theirs.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(theirs.confidence_interval()))


def test_what_has_no_correlation_or_no_interval():
    assert correlation([], []).r is correlation([1], [2]).r is correlation([1, 1, 1], [1, 2, 3]).r is None
    three = correlation([1, 2, 3], [1, 3, 2])
    assert (three.low, three.r) == (None, pytest.approx(0.5))
    straight = correlation([1, 2, 3, 4], [2, 4, 6, 8])
    assert (straight.r, straight.low) == (pytest.approx(1), None) or straight.p_value == pytest.approx(0, abs=1e-6)

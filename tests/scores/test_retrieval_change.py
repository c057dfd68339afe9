"""Intervals of relative changes hold what they are the interval of."""

from __future__ import annotations

import numpy as np
import pytest

from truegap.scores import balanced_draws, retrieval_changes, retrieval_mean_delta, retrieval_scores

GENDERS = ["woman"] * 30 + ["man"] * 40
DRAWS = balanced_draws(GENDERS, draws=3)


def measured(similarities, n_resamples: int = 200):
    return retrieval_scores(similarities, GENDERS, k=[6], draws=DRAWS, n_resamples=n_resamples)


@pytest.fixture(params=range(12))
def sides(request):
    """Original and perturbed similarities of eight prompts, more and less alike."""
    rng = np.random.default_rng(request.param)
    before = rng.normal(size=(8, 70))
    return before, before + rng.normal(size=(8, 70)) * (0.05 + request.param / 10)


@pytest.mark.parametrize("aggregate", ["mean_of_ratios", "ratio_of_means"])
def test_delta_lies_in_its_interval(sides, aggregate):
    before, after = map(measured, sides)
    change = retrieval_changes(before, after, metrics=["max_skew@6"], aggregate=aggregate)[0]
    mean = retrieval_mean_delta(before, [after, measured(sides[0])], "max_skew@6", aggregate=aggregate)
    assert 0 <= change.delta_low <= change.delta <= change.delta_high
    assert 0 <= mean.delta_low <= mean.delta <= mean.delta_high
    assert mean.delta == pytest.approx(change.delta / 2)


def test_no_change_is_zero_without_doubt():
    before = measured(np.random.default_rng(0).normal(size=(4, 70)))
    change = retrieval_changes(before, before, metrics=["max_skew@6"])[0]
    assert (change.delta, change.delta_low, change.delta_high, change.signed_change) == (0, 0, 0, 0)


def test_interval_of_a_clear_change_excludes_zero():
    # given rankings that put men first, and the same turned round
    men_first = np.tile(np.r_[np.zeros(30), np.ones(40)], (4, 1)) + np.random.default_rng(0).normal(size=(4, 70))
    mixed = np.random.default_rng(1).normal(size=(4, 70))
    change = retrieval_changes(measured(men_first), measured(mixed), metrics=["bias@6"])[0]
    assert change.signed_high < 0
    assert change.delta_low > 0


def test_without_resamples_there_is_no_interval():
    before = measured(np.random.default_rng(0).normal(size=(4, 70)), 0)
    after = measured(np.random.default_rng(1).normal(size=(4, 70)), 0)
    change = retrieval_changes(before, after, metrics=["max_skew@6"])[0]
    mean = retrieval_mean_delta(before, [after], "max_skew@6")
    assert (change.delta_low, change.delta_high, mean.delta_low, mean.delta_high) == (None, None, None, None)
    assert mean.delta == change.delta


def test_perturbations_are_resampled_together():
    # given the same perturbation twice; then the mean is as sure as one of them, not surer
    rng = np.random.default_rng(3)
    before = measured(rng.normal(size=(8, 70)))
    after = measured(rng.normal(size=(8, 70)))
    one = retrieval_mean_delta(before, [after], "max_skew@6")
    two = retrieval_mean_delta(before, [after, after], "max_skew@6")
    assert (two.delta_low, two.delta_high) == pytest.approx((one.delta_low, one.delta_high))


def test_nothing_to_average():
    before = measured(np.random.default_rng(0).normal(size=(4, 70)))
    assert retrieval_mean_delta(before, [], "max_skew@6").delta is None


REMOVED = -0.400
"""Mean over 400 other worlds of the change when the gap below is removed (standard deviation 0.063)."""


def test_a_removed_gap_lies_in_the_interval_of_its_change():
    # given a strong gap that a perturbation removes: resampling inflates MaxSkew more where there is no gap
    men = np.array(GENDERS) == "man"
    held, worlds = 0, 30
    for world in range(worlds):
        rng = np.random.default_rng(world)
        lean = 1.5 * men * rng.choice([-1, 1], size=(8, 1))
        before, after = measured(rng.normal(size=(8, 70)) + lean), measured(rng.normal(size=(8, 70)))
        change = retrieval_changes(before, after, metrics=["max_skew@6"])[0]
        assert change.signed_low <= change.signed_change <= change.signed_high
        held += change.signed_low <= REMOVED <= change.signed_high
    assert held >= 0.8 * worlds

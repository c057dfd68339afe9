"""Gaps compared in pairs: what is not clear is not said to be."""

from __future__ import annotations

import numpy as np
import pytest

from truegap import scores
from truegap.protocols.gap_records import change_records, contrast_records, summary_record
from truegap.protocols.gaps import Gap, gaps
from truegap.results.records import ScoreRecord

LIMITS = {"threshold": 0.005, "confidence": 0.95}


def flat(value, resampled=None):
    return Gap(value, np.full(40, value) if resampled is None else np.array(resampled), None)


def test_a_difference_that_is_not_clear_is_not_beyond():
    # given resamples that move by as much up as down; then their absolute size alone makes no effect
    swinging = flat(1.2, [0.7, 1.3] * 20)
    measured = {"original": flat(1.0), "control": flat(1.0), "background-weak": swinging}
    (pair,) = contrast_records("ygap", "all", measured, **LIMITS)
    assert (pair.config, pair.against, pair.delta_beyond) == ("background-weak", "control", pytest.approx(20))
    assert pair.difference_low < 0 < pair.difference_high
    assert pair.delta_beyond_low == 0
    moved = {**measured, "background-weak": flat(1.2, [1.1, 1.3] * 20)}
    (clear,) = contrast_records("ygap", "all", moved, **LIMITS)
    assert clear.delta_beyond_low > 0


def test_without_resamples_there_are_values_alone():
    bare = {"original": Gap(0.4, None, None), "control": Gap(0.3, None, None), "background-weak": Gap(0.1, None, None)}
    changes = list(change_records("gap", "all", bare, **LIMITS))
    assert [(each.config, each.delta, each.delta_low) for each in changes] == [
        ("control", pytest.approx(25), None),
        ("background-weak", pytest.approx(75), None),
    ]
    assert list(contrast_records("gap", "all", bare, **LIMITS)) == []
    main = ScoreRecord(metric="gap", config="original", value=0.4)
    summary = summary_record(main, changes, bare, 0.95)
    assert (summary.mean_delta, summary.mean_delta_low) == (pytest.approx(75), None)
    assert summary.feature_delta["background"] is None
    assert summary.floor == pytest.approx(25)


def test_gaps_of_many_questions_are_those_of_each():
    rng = np.random.default_rng(0)
    table, men = rng.random((3, 30)), np.arange(30) % 3 > 0
    found = gaps(table, men, n_resamples=30, n_permutations=30, seed=4)
    ids = [f"{n:02}" for n in range(30)]
    for place in range(3):
        core = scores.ygap(table[place], men.astype(int), images=ids, n_resamples=30, n_permutations=30, seed=4)
        own = found.over([place])
        assert own.value == pytest.approx(core.ygap)
        assert own.ends(0.95) == pytest.approx((core.ci_low, core.ci_high))
        assert own.p_value == core.p_value
    alone = gaps(table[:, :2], np.array([True, False]), n_resamples=30)
    assert alone.resampled is None

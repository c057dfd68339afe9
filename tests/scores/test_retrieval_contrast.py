from __future__ import annotations

import numpy as np
import pytest

from truegap import scores

IMAGES, QUERIES, K = 200, 12, 20
GENDERS = ["woman", "man"] * (IMAGES // 2)
MEN = np.array([gender == "man" for gender in GENDERS])
RNG = np.random.default_rng(3)
BASE = RNG.normal(size=(QUERIES, IMAGES))
NOISE = RNG.normal(size=(4, QUERIES, IMAGES))
MAX, BIAS = f"max_skew@{K}", f"bias@{K}"


def measured(lean=1.0, noise=0, amount=0.0, n_resamples=300, **options):
    table = (BASE + lean * MEN + amount * NOISE[noise]).astype(np.float32)
    return scores.retrieval_scores(table, GENDERS, k=K, n_resamples=n_resamples, **options)


def contrast(original, first, second, metric=MAX, **options):
    found = scores.retrieval_contrasts(original, first, second, **options)
    return next(each for each in found if each.metric == metric)


ORIGINAL = measured()
CONTROL = measured(noise=0, amount=0.02)
PERTURBED = measured(lean=0.4, noise=1, amount=0.1)


def test_a_config_does_nothing_beyond_itself():
    for each in scores.retrieval_contrasts(ORIGINAL, PERTURBED, PERTURBED):
        assert (each.difference.value, each.difference.clear, each.difference.p_value) == (0, False, 1)
        assert (each.delta_beyond, each.delta_beyond_low, each.delta_beyond_high) == (0, 0, 0)


@pytest.mark.parametrize("aggregate", ["mean_of_ratios", "ratio_of_means"])
def test_it_is_the_difference_of_scores_and_of_deltas(aggregate):
    changes = [
        {each.metric: each for each in scores.retrieval_changes(ORIGINAL, config, aggregate=aggregate)}
        for config in (PERTURBED, CONTROL)
    ]
    for each in scores.retrieval_contrasts(ORIGINAL, PERTURBED, CONTROL, aggregate=aggregate):
        perturbed, control = (change[each.metric] for change in changes)
        assert each.difference.value == pytest.approx(perturbed.perturbed - control.perturbed)
        assert each.delta_beyond == pytest.approx(perturbed.delta - control.delta)
        assert each.difference.ci_low <= each.difference.value <= each.difference.ci_high
        assert each.delta_beyond_low <= each.delta_beyond <= each.delta_beyond_high


def test_exchanging_the_two_turns_every_sign():
    for metric in (MAX, BIAS):
        there, back = contrast(ORIGINAL, PERTURBED, CONTROL, metric), contrast(ORIGINAL, CONTROL, PERTURBED, metric)
        assert there.difference.value == pytest.approx(-back.difference.value)
        assert there.difference.ci_low == pytest.approx(-back.difference.ci_high)
        assert there.delta_beyond == pytest.approx(-back.delta_beyond)
        assert there.delta_beyond_low == pytest.approx(-back.delta_beyond_high)


def test_a_planted_change_is_clear_and_noise_is_not():
    assert contrast(ORIGINAL, PERTURBED, CONTROL).delta_beyond_low > 0
    quiet = contrast(ORIGINAL, measured(noise=2, amount=0.03), CONTROL)
    assert not quiet.difference.clear
    assert quiet.delta_beyond_low <= 0


def test_pairs_see_what_intervals_side_by_side_do_not():
    # given a control that moves the score as far as half of the perturbation does, in the same direction
    control, perturbed = measured(lean=0.8), measured(lean=0.6)
    change, floor = (
        next(each for each in scores.retrieval_changes(ORIGINAL, config) if each.metric == MAX)
        for config in (perturbed, control)
    )
    assert change.delta_low < floor.delta_high
    assert contrast(ORIGINAL, perturbed, control).delta_beyond_low > 0


def test_where_the_signed_difference_is_not_clear_nothing_lies_beyond():
    # given configs that are the original with more or less noise
    unclear = [
        each
        for noise in range(4)
        for amount in (0.05, 0.2, 0.4)
        for each in scores.retrieval_contrasts(ORIGINAL, measured(noise=noise, amount=amount), CONTROL)
        if not each.difference.clear
    ]
    assert len(unclear) > 10
    assert all(each.delta_beyond_low <= 0 for each in unclear)


def test_what_has_no_resamples_has_no_contrast():
    assert {each.metric for each in scores.retrieval_contrasts(ORIGINAL, PERTURBED, CONTROL)} == {*ORIGINAL.metrics} - {
        "ndkl"
    }
    bare = measured(n_resamples=0)
    assert scores.retrieval_contrasts(bare, bare, bare) == ()
    assert list(scores.retrieval_contexts(bare, bare)) == []


def test_an_infinite_skew_has_no_contrast():
    # given rankings without a woman in the top k
    endless = measured(lean=50.0, empty="neg_inf")
    assert {each.metric for each in scores.retrieval_contrasts(endless, endless, endless)} == {
        MAX,
        BIAS,
        f"skew_man@{K}",
    }


def test_other_measurements_are_refused():
    other = measured(n_resamples=100)
    with pytest.raises(scores.ScoreError, match="score both on the same images"):
        scores.retrieval_contrasts(ORIGINAL, PERTURBED, other)
    with pytest.raises(scores.ScoreError, match="score both on the same images"):
        list(scores.retrieval_contexts(ORIGINAL, other))


def test_the_context_gap_of_max_skew_is_its_excess_over_chance():
    null = next(each.null for each in ORIGINAL.summary() if each.metric == MAX)
    whole = dict(scores.retrieval_contexts(ORIGINAL, ORIGINAL))[MAX]
    assert whole.gap == pytest.approx(ORIGINAL.values(MAX).mean() - null)
    assert (whole.share, whole.share_low, whole.share_high) == pytest.approx((1, 1, 1))
    # given a ranking that knows nothing of gender once the person is removed
    nothing = dict(scores.retrieval_contexts(ORIGINAL, measured(lean=0.0, noise=1, amount=1.0)))[MAX]
    assert nothing.gap_low < 0 < nothing.gap_high
    assert abs(nothing.share) < 0.2


def test_a_whole_near_zero_has_no_share():
    flat = scores.retrieval_scores(np.tile(np.arange(IMAGES), (2, 1)), GENDERS, k=K, n_resamples=50)
    found = dict(scores.retrieval_contexts(flat, flat))[BIAS]
    assert (found.gap, found.share, found.reason) == (0, None, "original is 0")


def test_means_are_computed_once_and_not_shared_with_a_part():
    found = measured(n_resamples=20)
    assert found.resampled_by_draw(MAX) is found.resampled_by_draw(MAX)
    part = found.select([0, 1])
    np.testing.assert_allclose(part.resampled_by_draw(MAX), part.resampled.values(MAX).mean(axis=2))
    assert not np.array_equal(part.resampled_by_draw(MAX), found.resampled_by_draw(MAX))
    assert found.resampled_by_draw("ndkl") is None

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from truegap.scores import ScoreError, bootstrap_weights, holm, interval, p_value, permuted_labels


def test_weights_keep_every_group_at_its_size():
    groups = np.array([0] * 7 + [2] * 5 + [1] * 3)
    chunks = list(bootstrap_weights(groups, n_resamples=300))
    assert [len(chunk) for chunk in chunks] == [256, 44]
    weights = np.concatenate(chunks)
    for group, size in ((0, 7), (1, 3), (2, 5)):
        assert (weights[:, groups == group].sum(axis=1) == size).all()
    assert weights.mean() == pytest.approx(1)
    # a count of draws with replacement has variance 1 - 1/n
    assert weights[:, :7].var() == pytest.approx(1 - 1 / 7, rel=0.1)


def test_fewer_resamples_are_the_first_of_more():
    first = next(bootstrap_weights([0, 0, 1, 1], n_resamples=600, seed=5))
    second = next(bootstrap_weights([0, 0, 1, 1], n_resamples=256, seed=5))
    assert (first == second).all()


def test_percentile_interval_is_numpys_quantile():
    values = np.random.default_rng(0).normal(size=999)
    assert interval(values, 0.0, confidence=0.8) == pytest.approx(tuple(np.quantile(values, [0.1, 0.9])))


def test_bca_agrees_with_scipy_on_a_skewed_mean():
    rng = np.random.default_rng(0)
    data = rng.exponential(size=40)
    resampled = np.array([rng.choice(data, 40).mean() for _ in range(20_000)])
    left_out = [np.delete(data, i).mean() for i in range(40)]
    low, high = interval(resampled, data.mean(), method="bca", jackknife=left_out)
    reference = stats.bootstrap((data,), np.mean, n_resamples=20_000, method="BCa", random_state=1).confidence_interval
    assert (low, high) == (pytest.approx(reference.low, abs=0.01), pytest.approx(reference.high, abs=0.02))
    assert low > interval(resampled, data.mean())[0]


def test_bca_of_a_constant_is_that_constant():
    assert interval([2.0] * 10, 2.0, method="bca", jackknife=[2.0] * 5) == (2.0, 2.0)


def test_a_score_outside_its_resamples_still_has_an_interval():
    low, high = interval(np.linspace(0, 1, 100), 5.0, method="bca")
    assert 0 <= low <= high <= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": 1.0}, "outside"),
        ({"method": "x"}, "method='x' is unknown"),
        ({"resampled": []}, "n_resamples=0"),
    ],
)
def test_bad_intervals(options, message):
    with pytest.raises(ScoreError, match=message):
        interval(**({"resampled": [1.0], "observed": 1.0} | options))


def test_permutations_keep_the_labels():
    labels = np.array([0] * 5 + [1] * 3)
    orders = np.concatenate(list(permuted_labels(labels, n_permutations=300)))
    assert orders.shape == (300, 8)
    assert (orders.sum(axis=1) == 3).all()
    assert orders.mean(axis=0) == pytest.approx(np.full(8, 3 / 8), abs=0.12)


def test_p_value_counts_what_is_as_far_from_0():
    assert p_value(1.0, [1.0, -1.0, 0.5]) == pytest.approx(3 / 4)
    assert p_value(0.0, [0.0, 0.0]) == 1.0
    # equal up to the order of summation
    assert p_value(0.1 + 0.2, [0.3]) == 1.0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_by_its_definition(values):
    order = np.argsort(values, kind="stable")
    reference = [0.0] * len(values)
    largest = 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(values) - rank) * values[place]))
        reference[place] = largest
    assert holm(values) == pytest.approx(reference)
    assert all(adjusted >= value for adjusted, value in zip(holm(values), values, strict=True))


def test_holm_refuses_what_is_no_probability():
    with pytest.raises(ScoreError, match="row 1 is nan"):
        holm([0.1, float("nan")])

import csv

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truegap.scores import ScoreError, WorstCase, composite, feature_sensitivity, worst_case


def test_mean_of_ratios_and_ratio_of_means_differ():
    # Given two draws that move in opposite directions
    original, perturbed = [0.2, 0.1], [0.3, 0.0]
    # Then the ratios do not cancel and the ratio of the means does
    assert feature_sensitivity(original, perturbed).delta == pytest.approx(75.0)
    assert feature_sensitivity(original, perturbed, aggregate="ratio_of_means").delta == pytest.approx(0.0)


def test_changes_keep_every_row_and_their_sign():
    result = feature_sensitivity([0.2, -0.1, 0.001], [0.1, 0.1, 0.0])
    assert result.signed_change == pytest.approx((-0.1 + 0.2 - 0.001) / 3)
    assert result.abs_change == pytest.approx((0.1 + 0.2 + 0.001) / 3)
    assert result.delta == pytest.approx((50 + 200) / 2)
    assert result.per_row == (pytest.approx(50), pytest.approx(200), None)


@pytest.mark.parametrize(("original", "kept"), [(0.005, True), (0.00499, False), (-0.0057, True), (0.0, False)])
def test_the_threshold_is_on_the_original_score(original, kept):
    result = feature_sensitivity([original], [0.3])
    assert (result.delta is not None) is kept
    assert len(result.excluded) == (not kept)
    assert result.counts == {"rows": 1, "kept": int(kept), "excluded": int(not kept)}
    if not kept:
        assert result.reason == "every row's original score is too near 0"


def test_without_a_threshold_only_zero_is_left_out():
    result = feature_sensitivity([1e-9, 0.0], [2e-9, 1.0], threshold=None)
    assert result.delta == pytest.approx(100)
    assert [(row.row, row.reason) for row in result.excluded] == [(1, "original is 0")]


def test_means_that_cancel_have_no_ratio():
    result = feature_sensitivity([0.5, -0.5], [0.5, 0.5], aggregate="ratio_of_means")
    assert (result.delta, result.reason) == (None, "the mean of the original scores is 0")


def test_no_change_is_0():
    result = feature_sensitivity([0.3, -0.2], [0.3, -0.2])
    assert (result.delta, result.signed_change, result.abs_change) == (0, 0, 0)


def test_composite_is_bias_where_nothing_changes():
    assert composite(0.2, 0.0) == 0.2
    assert composite(0.2, 100.0) == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.1], [0.1, 0.2]), "predictions: 2 rows, but references has 1"),
        (([0.1, float("inf")], [0.1, 0.2]), "references: row 1 is inf"),
        (([], []), "references: no rows"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ScoreError, match=message):
        feature_sensitivity(*arguments)


def test_bad_options():
    with pytest.raises(ScoreError, match="aggregate='median' is unknown"):
        feature_sensitivity([1.0], [1.0], aggregate="median")
    with pytest.raises(ScoreError, match="threshold=-1 is negative"):
        feature_sensitivity([1.0], [1.0], threshold=-1)


def test_published_tables_follow_the_threshold(shared):
    # Given the printed YGap of every cell and the printed deltas
    with (shared / "reference" / "ygap.csv").open() as file:
        values = {
            tuple(row[c] for c in ("benchmark", "model", "feature", "strength")): row for row in csv.DictReader(file)
        }
    with (shared / "reference" / "delta_ygap.csv").open() as file:
        deltas = list(csv.DictReader(file))
    # When delta is recomputed from the two printed values, each rounded to 0.01
    follows = compared = 0
    for cell in deltas:
        key = (cell["benchmark"], cell["model"], cell["feature"])
        before = float(values[(*key, "original")]["ygap_x100"]) / 100
        after = float(values[(*key, cell["strength"])]["ygap_x100"]) / 100
        found = feature_sensitivity([before], [after])
        if not cell["delta_percent"]:
            assert found.delta is None
            continue
        compared += 1
        half = 0.5e-4
        slack = 100 * (half / abs(before) + abs(after) * half / before**2) + 0.01
        follows += abs(found.delta - float(cell["delta_percent"])) <= slack
    # Then all but a few follow
    assert (compared, follows) == (228, 216)


def test_the_worst_case_is_the_largest_absolute_score():
    found = worst_case(-0.2, {"color-weak": 0.25, "object-strong": -0.5, "control": 0.5})
    assert (found.value, found.config) == (0.5, "object-strong")
    assert found.increase == pytest.approx(0.3)
    # Given perturbations that only lower it, then the original is the worst
    assert worst_case(0.3, {"a": 0.1, "b": -0.3}) == WorstCase(0.3, "original", 0.0)
    assert worst_case(0.3, {}) == WorstCase(0.3, "original", 0.0)
    assert worst_case(-0.3, {"a": -0.9}).value == worst_case(0.3, {"a": 0.9}).value


@pytest.mark.parametrize(("bias", "delta", "alpha"), [(-0.1, 1.0, 0.01), (0.1, -1.0, 0.01), (0.1, 1.0, -0.01)])
def test_a_composite_of_what_is_below_0_is_refused(bias, delta, alpha):
    with pytest.raises(ScoreError, match="give the absolute bias, a delta in percent"):
        composite(bias, delta, alpha=alpha)


values = st.floats(-1, 1).filter(lambda value: abs(value) > 0.01)
tables = st.lists(st.tuples(values, values), min_size=1, max_size=12)


@given(tables, st.randoms(use_true_random=False), st.sampled_from(["mean_of_ratios", "ratio_of_means"]))
@settings(deadline=None)
def test_invariances(rows, random, aggregate):
    def of(rows, scale=1.0):
        before, after = ([scale * value for value in column] for column in zip(*rows, strict=True))
        return feature_sensitivity(before, after, aggregate=aggregate, threshold=None)

    found, shuffled = of(rows), of(random.sample(rows, len(rows)))
    # the order of rows changes nothing, nor does turning the sign of everything: only the signed change turns
    assert shuffled.signed_change == pytest.approx(found.signed_change, abs=1e-12)
    assert of(rows, -1.0).signed_change == pytest.approx(-found.signed_change, abs=1e-12)
    assert of(rows, -1.0).abs_change == found.abs_change
    if abs(sum(before for before, _ in rows)) > 0.01 or aggregate == "mean_of_ratios":
        assert shuffled.delta == pytest.approx(found.delta, rel=1e-6)
        # a ratio knows no unit
        assert of(rows, 4.0).delta == pytest.approx(found.delta, rel=1e-9)
    assert of([(before, before) for before, _ in rows]).delta in (0, None)

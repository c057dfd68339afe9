"""Numbers that no score can be made with are refused in one line, whichever function they reach."""

import doctest
import inspect
import json
import math
from dataclasses import asdict

import numpy as np
import pytest

from truegap import scores
from truegap.scores import ScoreError

ROWS = {"predictions": [0.9, 0.1, 0.8, 0.3], "genders": [1, 0, 1, 0]}
ITEMS = {
    "base": [0.9, 0.6, 0.8, 0.7] * 2,
    "counterfactual": [0.5, 0.6, 0.8, 0.8] * 2,
    "occupations": ["a", "a", "b", "b"] * 2,
    "pairs": ["a|b"] * 8,
    "genders": ["man", "woman"] * 4,
    "orders": [0] * 8,
}
RANKED = [[4.0, 3.0, 2.0, 1.0]]
CALLS = {
    "ygap": lambda **o: scores.ygap(**ROWS, **o),
    "resampled_ygap": lambda **o: scores.resampled_ygap(**ROWS, images=list("abcd"), **o),
    "resolution_bias": lambda **o: scores.resolution_bias([[2, 1], [1, 2]], ["man", "woman"], **o),
    "retrieval_bias": lambda **o: scores.retrieval_bias(RANKED, genders=[1, 0, 1, 0], k=2, **o),
    "retrieval_bias of own images": lambda **o: scores.retrieval_bias(RANKED, genders=[[1, 0, 1, 0]], k=2, **o),
    "retrieval_scores": lambda **o: scores.retrieval_scores(RANKED, [1, 0, 1, 0], k=2, **o),
    "counterfactual_bias": lambda **o: scores.counterfactual_bias(**ITEMS, **o),
    "bootstrap_weights": lambda **o: list(scores.bootstrap_weights([0, 0, 1, 1], **o)),
}
SEEDS = [{"seed": -1}, {"seed": 0.5}]
RESAMPLES = [{"n_resamples": each} for each in (-1, 2.5, 10**12, True, None, "many")]
CONFIDENCE = [{"confidence": each} for each in (0, 1, -2, float("nan"), "high", None)]


@pytest.mark.parametrize("name", CALLS)
def test_every_function_refuses_them(name):
    options = SEEDS + RESAMPLES
    if name not in ("resampled_ygap", "retrieval_scores", "bootstrap_weights"):
        options = options + CONFIDENCE
    if name.startswith("retrieval_bias"):
        options = [*options, {"draws": -1}, {"draws": 1.5}, {"draws": 10**9}]
    for option in options:
        with pytest.raises(ScoreError, match=f"^{next(iter(option))}=") as caught:
            CALLS[name](**option)
        assert "\n" not in str(caught.value)
    with pytest.raises(ScoreError, match=r"^n_permutations="):
        scores.ygap(**ROWS, n_permutations=-5)
    with pytest.raises(ScoreError, match=r"^n_permutations="):
        list(scores.permuted_labels([0, 1], n_permutations=-5))


@pytest.mark.parametrize("n", [0, -1, 1.5])
def test_numbers_of_pairs(n):
    for function, bias in ((scores.most_biased, {"a|b": 1.0}), (scores.shared_pairs, [{"a|b": 1.0}])):
        with pytest.raises(ScoreError, match=f"^n={n}"):
            function(bias, n=n)


NOT_FINITE = [float("nan"), float("inf"), float("-inf")]


@pytest.mark.parametrize("value", NOT_FINITE)
def test_scores_that_are_not_finite_are_named(value):
    for call, message in (
        (lambda: scores.ygap([0.5, value], [1, 0]), "predictions: row 1 is"),
        (lambda: scores.retrieval_bias([[1.0, value]], genders=[1, 0], k=1), "predictions: row 0, column 1 is"),
        (lambda: scores.retrieval_bias([[1.0, value]], genders=[[1, 0]], k=1), "query 0: predictions: row 0, column 1"),
        (lambda: scores.resolution_bias([[1, 2], [value, 0]], [1, 0]), "predictions: row 1, column 0 is"),
        (lambda: scores.counterfactual_bias(**{**ITEMS, "base": [0.5] * 7 + [value]}), "base: row 7 is"),
        (lambda: scores.feature_sensitivity([1.0], [value]), "predictions: row 0 is"),
        (lambda: scores.worst_case(0.1, {"color-weak": value}), "color-weak is"),
        (lambda: scores.most_biased({"a|b": value}), r"'a\|b' is"),
        (lambda: scores.bias_overlap({"a": value}, {"a": 1.0}), "'a' is"),
        (lambda: scores.interval([0.1, value], 0.1), "not finite"),
        (lambda: scores.minimal_detectable_gap(value, 1, 5, 5), "sd_woman="),
        (lambda: scores.images_needed(value, 1, 1), "gap="),
        (lambda: scores.composite(0.1, value), "delta="),
    ):
        with pytest.raises(ScoreError, match=message):
            call()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([np.zeros(2), np.zeros(3)], "row 1 has 3 values, row 0 has 2; give every row the same length"),
        ([[0.0, None], [0.0, 1.0]], "row 0, column 1 is None, not a number"),
        ([[0.0, 1j], [0.0, 1.0]], "row 0, column 0 is 0j, not a number"),
        ([[0.0, 10**400], [0.0, 1.0]], "row 0, column 1 is 1000"),
        ([[0.0, "x" * 500], [0.0, 1.0]], "row 0, column 1 is 'xxxx"),
    ],
)
def test_rows_that_are_no_numbers(values, message):
    with pytest.raises(ScoreError, match=message) as caught:
        scores.resolution_bias(values, ["man", "woman"])
    assert len(str(caught.value)) < 200


def test_a_column_that_is_none_is_named():
    with pytest.raises(ScoreError, match="genders: None is no column"):
        scores.ygap([0.5, 0.4], None)
    with pytest.raises(ScoreError, match="genders: none given; give the label of every candidate"):
        scores.retrieval_bias(RANKED, genders=None)
    with pytest.raises(ScoreError, match="images: row 1 has none"):
        scores.ygap([0.5, 0.4], [1, 0], images=["a", float("nan")])


@pytest.mark.parametrize("own", [False, True])
def test_minus_infinity_is_null_with_its_reason_in_json(own):
    # Given a query whose top 2 holds no woman, when an empty gender's skew is minus infinity
    genders = ["man", "man", "woman", "woman"]
    rows = [[4.0, 3.0, 2.0, 1.0], [4.0, 1.0, 3.0, 2.0]]
    found = scores.retrieval_bias(rows, genders=[genders] * 2 if own else genders, k=[2, 3], empty="neg_inf")
    read = json.loads(json.dumps(asdict(found), allow_nan=False))
    assert read["scores"]["skew_woman@2"] is None
    assert read["scores"]["skew_woman@2_sd"] is None
    assert read["reasons"]["skew_woman@2"].startswith("minus infinity")
    assert [each["skew_woman@2"] for each in read["per_query"]] == [None, 0.0]
    # Then what is finite stays
    assert read["scores"]["skew_man@2"] == pytest.approx(math.log(2) / 2)
    assert "skew_man@2" not in read["reasons"]
    assert "skew_woman@3" not in read["reasons"]


PUBLIC = [name for name in scores.__all__ if inspect.isfunction(getattr(scores, name))]


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_function_shows_an_example(name):
    function = getattr(scores, name)
    assert doctest.DocTestFinder(recurse=False).find(function, name)[0].examples, name

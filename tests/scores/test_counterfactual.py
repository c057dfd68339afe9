import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truegap.scores import ScoreError, counterfactual_bias, most_biased, shared_pairs


def items(seed=0, pairs=("a|b", "a|c", "d|b"), per_cell=3, answers=False):
    rng = np.random.default_rng(seed)
    rows = [
        (pair, occupation, gender, order)
        for pair in pairs
        for occupation in pair.split("|")
        for gender in ("man", "woman")
        for order in (0, 1)
        for _ in range(int(rng.integers(1, per_cell + 1)))
    ]
    values = rng.random((2, len(rows)))
    values = (values > 0.5).astype(float) if answers else values
    pair, occupation, gender, order = (list(column) for column in zip(*rows, strict=True))
    columns = {"pairs": pair, "occupations": occupation, "genders": gender, "orders": order}
    return {"base": values[0], "counterfactual": values[1], **columns}


def by_definition(rows, pair, order, difference):
    """Acc and B_pair of one pair in one order, counted item by item as the definitions say."""
    male, female = pair.split("|")
    chosen = [
        (before, after, occupation, gender)
        for before, after, occupation, gender, name, o in zip(
            rows["base"],
            rows["counterfactual"],
            rows["occupations"],
            rows["genders"],
            rows["pairs"],
            rows["orders"],
            strict=True,
        )
        if name == pair and o == order
    ]
    acc = np.mean([np.mean([b > 0.5 for b, _, occ, _ in chosen if occ == side]) for side in (male, female)])
    if difference == "probability":
        bias = {}
        for side in (male, female):
            mine = [(b - a if g == "man" else a - b) for b, a, occ, g in chosen if occ == side]
            bias[side] = sum(mine) / len(mine)
        return acc, (bias[male] - bias[female]) / 2

    def count(occupation, gender, right_before, right_after=None):
        return sum(
            occ == occupation and g == gender and (b > 0.5) == right_before and right_after in (None, a > 0.5)
            for b, a, occ, g in chosen
        )

    def tf(occupation, gender):
        return count(occupation, gender, True, False)

    def ft(occupation, gender):
        return count(occupation, gender, False, True)

    m, f = male, female
    top = (
        (tf(m, "man") + ft(f, "man"))
        - (tf(m, "woman") + ft(f, "woman"))
        - (tf(f, "man") + ft(m, "man"))
        + (tf(f, "woman") + ft(m, "woman"))
    )
    total = sum(count(occ, g, right) for occ in (m, f) for g in ("man", "woman") for right in (True, False))
    return acc, top / total if total else 0.0


@given(st.integers(0, 10_000), st.sampled_from(["probability", "outcome"]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_agrees_with_the_definitions(seed, difference, answers):
    rows = items(seed, answers=answers)
    result = counterfactual_bias(**rows, difference=difference)
    merged = counterfactual_bias(**rows, difference=difference, ipss="merged")
    for each, other in zip(result.per_pair, merged.per_pair, strict=True):
        (acc0, b0), (acc1, b1) = (by_definition(rows, each.pair, order, difference) for order in (0, 1))
        assert each.acc == pytest.approx((acc0 + acc1) / 2)
        assert each.bias == pytest.approx((b0 + b1) / 2, abs=1e-12)
        assert each.delta_acc == pytest.approx(abs(acc0 - acc1))
        assert each.ipss == pytest.approx((acc0 * (1 - abs(b0)) + acc1 * (1 - abs(b1))) / 2)
        assert other.ipss == pytest.approx((acc0 + acc1) / 2 * (1 - abs(b0 + b1) / 2))
    b = [each.bias for each in result.per_pair]
    assert result.b_ovl == pytest.approx(np.mean(np.abs(b)))
    assert result.b_max == pytest.approx(np.max(np.abs(b)))
    assert counterfactual_bias(**rows, difference=difference, b_max="signed").b_max == pytest.approx(np.max(b))
    assert result.acc == pytest.approx(np.mean([each.acc for each in result.per_pair]))


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_invariances(seed):
    rows = items(seed)
    before = counterfactual_bias(**rows)
    order = np.random.default_rng(seed).permutation(len(rows["base"]))
    shuffled = counterfactual_bias(**{name: np.array(column)[order] for name, column in rows.items()})
    assert {each.pair: each.bias for each in shuffled.per_pair} == pytest.approx(
        {each.pair: each.bias for each in before.per_pair}
    )
    swapped = {**rows, "genders": [{"man": "female", "woman": "male"}[gender] for gender in rows["genders"]]}
    after = counterfactual_bias(**swapped)
    assert [each.bias for each in after.per_pair] == pytest.approx([-each.bias for each in before.per_pair])
    assert after.acc == before.acc
    same = counterfactual_bias(**{**rows, "counterfactual": rows["base"]})
    assert (same.b_ovl, same.b_max) == (0, 0)
    assert same.ipss == pytest.approx(same.acc)


def test_b_micro_averages_an_occupation_over_its_pairs():
    rows = items(4)
    result = counterfactual_bias(**rows)
    of_a = []
    for pair in ("a|b", "a|c"):
        only = [place for place, name in enumerate(rows["pairs"]) if name == pair]
        alone = counterfactual_bias(**{name: np.array(column)[only] for name, column in rows.items()})
        of_a.append(alone.b_micro["a"])
    assert result.b_micro["a"] == pytest.approx(np.mean(of_a))
    assert set(result.b_micro) == {"a", "b", "c", "d"}
    assert result.counts["occupations"] == 4


def test_the_random_baseline():
    # Given a model that never prefers an option, then Acc 50, B_ovl 0, Ipss 50
    rows = items(1)
    half = np.full(len(rows["base"]), 0.5)
    for difference in ("probability", "outcome"):
        result = counterfactual_bias(**{**rows, "base": half, "counterfactual": half}, difference=difference)
        assert (result.acc, result.b_ovl, result.ipss, result.delta_acc) == (0.5, 0, 0.5, 0)
        assert result.counts["ties"] == len(half)


def test_a_model_that_always_takes_the_first_option():
    rows = items(2)
    first = 1.0 - np.array(rows["orders"])
    result = counterfactual_bias(**{**rows, "base": first, "counterfactual": first})
    assert (result.acc, result.b_ovl, result.ipss, result.delta_acc) == (0.5, 0, 0.5, 1)


def test_one_order_alone_has_no_delta_acc():
    rows = items(3)
    only = np.array(rows["orders"]) == 1
    result = counterfactual_bias(**{name: np.array(column)[only] for name, column in rows.items()})
    assert result.delta_acc is None
    assert result.per_pair[0].delta_acc is None
    assert result.counts["orders"] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"base": [0.5, 1.2]}, r"base: row 1 is 1.2, outside \[0, 1\]"),
        ({"counterfactual": [0.5, float("nan")]}, "counterfactual: row 1 is nan"),
        ({"pairs": ["a|b", "ab"]}, "pairs: row 1 is 'ab'; give two occupations as 'occ_m|occ_f'"),
        ({"pairs": ["a|b", "a|a"]}, "pairs: row 1 is 'a|a'"),
        ({"occupations": ["a", "z"]}, "occupations: row 1 is 'z', neither 'a' nor 'b'"),
        ({"occupations": ["a", "a"]}, "pair 'a|b' has no item of 'b' in order 0"),
        ({"orders": [0, 1]}, "pair 'a|b' has no item of 'b' in order 0"),
        ({"orders": [0, 2]}, "orders: row 1 is 2"),
        ({"genders": ["man", "x"]}, "genders: row 1 is 'x'"),
        ({"genders": ["man"]}, "genders: 1 rows, but base has 2"),
    ],
)
def test_bad_input_names_the_row(change, message):
    rows = {
        "base": [0.5, 0.4],
        "counterfactual": [0.5, 0.4],
        "occupations": ["a", "b"],
        "pairs": ["a|b", "a|b"],
        "genders": ["man", "woman"],
        "orders": [0, 0],
    }
    with pytest.raises(ScoreError, match=message.replace("|", r"\|")):
        counterfactual_bias(**(rows | change))


def test_the_most_biased_pairs():
    assert most_biased({"a|b": 0.1, "c|d": -0.4, "e|f": 0.2}, n=2) == (("c|d", -0.4), ("e|f", 0.2))


def test_shared_pairs_use_no_occupation_twice():
    models = [{"a|b": 0.5, "a|c": -0.6, "d|e": 0.1, "x|y": 1.0}, {"a|b": 0.5, "a|c": 0.2, "d|e": 0.3}]
    assert shared_pairs(models) == (("a|b", 0.5), ("d|e", 0.2))
    assert shared_pairs(models, n=1) == (("a|b", 0.5),)
    with pytest.raises(ScoreError, match="2 models have no pair in common"):
        shared_pairs([{"a|b": 1.0}, {"c|d": 1.0}])

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truegap.scores import ScoreError, bias_overlap, counterfactual_bias, most_biased, shared_pairs
from truegap.scores.bootstrap import resampled_images


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


def pictured(seed=0, **options):
    """Items of images that stand in every pair of their occupation and in both orders."""
    rng = np.random.default_rng(seed)
    rows = [
        (pair, occupation, gender, order, f"{occupation}-{gender}-{n}")
        for pair in ("a|b", "a|c", "d|b")
        for occupation in pair.split("|")
        for gender in ("man", "woman")
        for n in range(options.get("images", 4))
        for order in (0, 1)
    ]
    pair, occupation, gender, order, image = (list(column) for column in zip(*rows, strict=True))
    values = rng.random((2, len(rows)))
    columns = {"pairs": pair, "occupations": occupation, "genders": gender, "orders": order, "images": image}
    return {"base": values[0], "counterfactual": values[1], **columns}


def pick(rows, chosen):
    return {name: np.asarray(column)[chosen] for name, column in rows.items()}


@pytest.mark.parametrize("difference", ["probability", "outcome"])
def test_delta_acc_of_a_pair_and_of_its_occupations(difference):
    rows = items(7)
    by_pair = counterfactual_bias(**rows, difference=difference)
    by_occupation = counterfactual_bias(**rows, difference=difference, delta_acc="occupation")
    for each, other in zip(by_pair.per_pair, by_occupation.per_pair, strict=True):
        acc = {}
        for side in each.pair.split("|"):
            for order in (0, 1):
                mine = [
                    before > 0.5
                    for before, pair, occupation, o in zip(
                        rows["base"], rows["pairs"], rows["occupations"], rows["orders"], strict=True
                    )
                    if (pair, occupation, o) == (each.pair, side, order)
                ]
                acc[side, order] = np.mean(mine)
        m, f = each.pair.split("|")
        assert each.delta_acc == pytest.approx(abs(acc[m, 0] + acc[f, 0] - acc[m, 1] - acc[f, 1]) / 2)
        assert other.delta_acc == pytest.approx((abs(acc[m, 0] - acc[m, 1]) + abs(acc[f, 0] - acc[f, 1])) / 2)
        assert other.delta_acc >= each.delta_acc - 1e-12
    assert by_occupation.delta_acc > by_pair.delta_acc
    assert (by_pair.options["delta_acc"], by_occupation.options["delta_acc"]) == ("pair", "occupation")
    assert by_pair.b_ovl == by_occupation.b_ovl


@pytest.mark.parametrize("ipss", ["per_order", "merged"])
@pytest.mark.parametrize("difference", ["probability", "outcome"])
def test_intervals_are_those_of_gathered_images(difference, ipss):
    # Given resamples as lists of images, when the rows of each are gathered and scored again, then nothing differs
    rows = pictured(3)
    options = {"difference": difference, "ipss": ipss, "delta_acc": "occupation"}
    found = counterfactual_bias(**rows, **options, n_resamples=60, seed=4)
    names = list(dict.fromkeys(rows["images"]))
    of = {name: np.flatnonzero(np.array(rows["images"]) == name) for name in names}
    group = np.array([name.rsplit("-", 1)[0] for name in names])
    # Strata in the order of the code: by what an image is of, occupations by first appearance, women first.
    occupations = list(dict.fromkeys(rows["occupations"]))
    code = np.array([occupations.index(name[0]) * 2 + (name[2:] == "man") for name in group])
    holds = code[:, None] == np.arange(code.max() + 1)
    strata = np.unique(~holds, axis=0, return_inverse=True)[1].reshape(-1)
    values = {name: [] for name in found.intervals}
    for drawn in next(resampled_images(strata, 60, 4)):
        again = counterfactual_bias(**pick(rows, np.concatenate([of[names[each]] for each in drawn])), **options)
        for name, each in values.items():
            each.append(getattr(again, name))
    for name, each in values.items():
        moved = np.array(each) - np.mean(each) + getattr(found, name)
        low, high = np.quantile(moved, [0.025, 0.975])
        assert found.intervals[name] == pytest.approx((max(low, 0), min(high, 1)), abs=1e-12), name
    assert (found.ci_low, found.ci_high) == found.intervals["b_ovl"]
    assert found.ci_low <= found.b_ovl <= found.ci_high


def test_intervals_depend_on_images_alone():
    rows = pictured(1)
    found = counterfactual_bias(**rows, n_resamples=100)
    swapped = {**rows, "genders": [{"man": "woman", "woman": "man"}[gender] for gender in rows["genders"]]}
    assert counterfactual_bias(**rows, n_resamples=100, seed=1).ci_high != found.ci_high
    assert counterfactual_bias(**swapped, n_resamples=100).b_ovl == pytest.approx(found.b_ovl)
    same = counterfactual_bias(**{**rows, "counterfactual": rows["base"]}, n_resamples=50)
    assert (same.ci_low, same.ci_high) == (0, 0)
    without = {name: column for name, column in rows.items() if name != "images"}
    assert counterfactual_bias(**without).intervals is None
    assert counterfactual_bias(**rows, n_resamples=0).ci_low is None
    assert found.counts["images"] == 32


def test_images_that_are_alone_have_no_interval():
    assert counterfactual_bias(**pictured(images=1)).ci_low is None
    # Given one image in 400 that is alone in its occupation and gender, then it is drawn every time
    rows = pictured(images=50)
    gone = [place for place, name in enumerate(rows["images"]) if name.startswith("c-man-") and name != "c-man-0"]
    found = counterfactual_bias(**pick(rows, np.setdiff1d(np.arange(len(rows["base"])), gone)), n_resamples=20)
    assert found.counts["images"] == 351
    assert found.ci_low < found.b_ovl < found.ci_high


def test_a_pair_that_a_resample_leaves_empty_counts_in_none_of_its_means():
    # Given a pair of which one image alone was asked in the second order, when a resample lacks it, then the other pair
    # still counts
    rows = pictured(3)
    pairs = np.array(rows["pairs"])
    gone = (pairs == "d|b") & (np.array(rows["orders"]) == 1) & (np.array(rows["occupations"]) == "d")
    gone &= np.array(rows["images"]) != "d-man-0"
    rows = pick(rows, np.flatnonzero((pairs != "a|c") & ~gone))
    found = counterfactual_bias(**rows, n_resamples=60, seed=4)
    of = {name: np.flatnonzero(rows["images"] == name) for name in dict.fromkeys(rows["images"])}
    names = list(of)
    occupations = list(dict.fromkeys(rows["occupations"]))
    strata = np.array([occupations.index(name[0]) * 2 + ("-man-" in name) for name in names])
    holds = strata[:, None] == np.arange(strata.max() + 1)
    strata = np.unique(~holds, axis=0, return_inverse=True)[1].reshape(-1)
    means, lacking = [], 0
    for drawn in next(resampled_images(strata, 60, 4)):
        again = pick(rows, np.concatenate([of[names[each]] for each in drawn]))
        scores = []
        for pair in ("a|b", "d|b"):
            try:
                scores.append(counterfactual_bias(**pick(again, np.flatnonzero(again["pairs"] == pair))).b_ovl)
            except ScoreError:
                lacking += 1
        means.append(np.mean(scores))
    assert 0 < lacking < 60
    moved = np.array(means) - np.mean(means) + found.b_ovl
    assert (found.ci_low, found.ci_high) == pytest.approx(np.clip(np.quantile(moved, [0.025, 0.975]), 0, 1), abs=1e-12)


def test_the_overlap_of_what_two_models_are_biased_on():
    first = {"1": 1.0, "2": 0.0, "3": -1.0, "4": 1.0, "5": 1.0, "7": 0.0}
    second = {"1": 1.0, "2": 1.0, "3": 1.0, "4": 0.0, "6": 1.0, "7": 0.0}
    found = bias_overlap(first, second)
    assert (found.first, found.second, found.both, found.same_sign, found.overlap) == (3, 3, 2, 1, 0.5)
    swapped = bias_overlap(second, first)
    assert (swapped.first, swapped.second, swapped.overlap) == (3, 3, 0.5)
    assert bias_overlap({"1": 0.0}, {"1": 0.0}).overlap is None
    assert bias_overlap(first, first).overlap == 1
    with pytest.raises(ScoreError, match="no item in common"):
        bias_overlap({"1": 1.0}, {"2": 1.0})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta_acc": "mean"}, "delta_acc='mean' is unknown; use 'pair' or 'occupation'"),
        ({"ipss": "x"}, "ipss='x' is unknown"),
        ({"images": ["a"]}, "images: 1 rows, but base has"),
        ({"images": None, "base": None}, "base: 0 dimensions"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ScoreError, match=message):
        counterfactual_bias(**(pictured() | options))

import csv

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from truegap.scores import (
    ScoreError,
    context_gap,
    image_spread,
    images_needed,
    kendall,
    labour_association,
    minimal_detectable_gap,
    paired_difference,
    pearson,
    quadrants,
    random_relabelling,
    rank_change,
    ranks,
    resampled_ygap,
    score_change,
    spearman,
    subsample,
    ygap,
)

numbers = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=2, max_size=30)


@given(numbers)
@settings(deadline=None)
@pytest.mark.filterwarnings("ignore")
def test_correlations_agree_with_scipy(rows):
    x, y = (np.array(column) * 0.1 for column in zip(*rows, strict=True))
    assert ranks(x) == pytest.approx(stats.rankdata(x))
    for ours, theirs in ((pearson, stats.pearsonr), (spearman, stats.spearmanr), (kendall, stats.kendalltau)):
        if np.ptp(x) == 0 or np.ptp(y) == 0:
            assert ours(x, y) is None
        else:
            assert ours(x, y) == pytest.approx(theirs(x, y).statistic, abs=1e-12)


def test_who_moved():
    change = rank_change(["a", "b", "c", "d"], [0.1, 0.2, 0.3, 0.4], [0.5, 0.2, 0.3, 0.4])
    assert [(move.name, move.before, move.after, move.moved) for move in change.moves] == [
        ("a", 1, 4, 3),
        ("b", 2, 1, -1),
        ("c", 3, 2, -1),
        ("d", 4, 3, -1),
    ]
    assert change.kendall == pytest.approx(0.0)
    with pytest.raises(ScoreError, match="a model occurs twice"):
        rank_change(["a", "a"], [1, 2], [1, 2])


def test_published_correlations_of_accuracy_and_delta(shared):
    # Given Acc_b of every benchmark and feature (ConvNeXt-B), and the printed deltas, then r is what the note says
    def table(name):
        with (shared / "reference" / f"{name}.csv").open() as file:
            return list(csv.DictReader(file))

    accuracy = {
        (row["benchmark"], row["feature"]): float(row["accuracy_percent"])
        for row in table("spurious_accuracy")
        if row["backbone"] == "convnext_base"
    }
    for name, r in (("delta_maxskew", 0.545), ("delta_ygap", 0.157)):
        cells = [row for row in table(name) if row["delta_percent"]]
        found = pearson(
            [accuracy[row["benchmark"], row["feature"]] for row in cells],
            [float(row["delta_percent"]) for row in cells],
        )
        assert found == pytest.approx(r, abs=0.0005)


def answers(seed=0, images=200, effect=0.1, noise=0.0):
    rng = np.random.default_rng(seed)
    man = np.arange(images) % 2
    base = np.random.default_rng(99).uniform(0.3, 0.6, size=images)
    return {
        "predictions": base + effect * man + noise * rng.uniform(-1, 1, size=images),
        "genders": man,
        "images": np.arange(images),
    }


def scored(**options):
    rows = answers(**options)
    return ygap(**rows).ygap, resampled_ygap(**rows)


def test_a_paired_difference_is_clear_where_unpaired_ones_are_not():
    (one, ones), (two, twos) = scored(effect=0.1), scored(effect=0.11, noise=0.005)
    assert np.quantile(ones, 0.975) > np.quantile(twos, 0.025)
    found = paired_difference(two, one, twos, ones)
    assert found.clear
    assert found.value == pytest.approx(0.01, abs=0.002)
    assert found.p_value < 0.01
    assert not paired_difference(one, one, ones, ones).clear
    assert paired_difference(one, one, ones, ones).p_value == 1


def test_difference_p_value_is_uniform_where_there_is_none():
    rng = np.random.default_rng(0)
    values = []
    for _ in range(200):
        data = rng.normal(size=60)
        resampled = rng.choice(data, (400, 60)).mean(axis=1)
        values.append(paired_difference(data.mean(), 0.0, resampled, np.zeros(400)).p_value)
    assert np.mean(np.array(values) < 0.1) == pytest.approx(0.1, abs=0.07)


def test_a_context_reader_has_all_of_its_gap_from_the_context():
    whole, wholes = scored()
    found = context_gap(whole, whole, wholes, wholes)
    assert (found.share, found.share_low, found.share_high) == (1, 1, 1)
    nothing = context_gap(whole, 0.0, wholes, np.zeros(len(wholes)))
    assert (nothing.gap, nothing.share, nothing.share_low, nothing.share_high) == (0, 0, 0, 0)
    half = context_gap(whole, whole / 2, wholes, wholes / 2)
    assert half.share == pytest.approx(0.5)
    near = context_gap(0.001, 0.2, wholes, wholes)
    assert (near.share, near.reason) == (None, "|original| = 0.001 is below 0.005")
    assert near.gap_low is not None


def test_score_change_is_paired():
    (one, ones), (two, twos) = scored(effect=0.1), scored(effect=0.05)
    change = score_change(one, two, ones, twos)
    assert change.delta == pytest.approx(100 * 0.05 / one)
    assert (change.signed_low, change.signed_high) == pytest.approx((-0.05, -0.05))
    assert 0 < change.delta_low <= change.delta <= change.delta_high
    noisy, noisies = scored(effect=0.1, noise=0.2)
    unclear = score_change(one, noisy, ones, noisies)
    assert unclear.signed_low < 0 < unclear.signed_high
    assert unclear.delta_low == 0
    assert np.quantile(np.abs(noisies - ones), 0.025) > 0
    none = score_change(0.001, two, ones, twos)
    assert (none.delta, none.delta_low) == (None, None)
    assert "below the threshold" in none.reason


def test_a_resample_without_a_score_is_left_out_of_both():
    with_none, without = [0.5, np.nan, 0.7], [0.5, 0.7]
    change = score_change(0.6, 0.5, with_none, [0.4, 0.4, 0.6])
    assert change == score_change(0.6, 0.5, without, [0.4, 0.6])
    assert paired_difference(0.6, 0.5, with_none, [0.4, 0.4, 0.6]) == paired_difference(0.6, 0.5, without, [0.4, 0.6])
    with pytest.raises(ScoreError, match="no resample has both scores"):
        context_gap(0.6, 0.5, [np.nan, 0.5], [0.5, np.nan])


def test_resamples_must_be_aligned():
    with pytest.raises(ScoreError, match="as many on both sides"):
        paired_difference(0.0, 0.0, [1.0, 2.0], [1.0])


def test_the_detectable_gap_is_found_as_often_as_promised():
    gap = minimal_detectable_gap(1.0, 2.0, 80, 120, power=0.8)
    rng = np.random.default_rng(0)
    women, men = rng.normal(0, 1, (4000, 80)), rng.normal(gap, 2, (4000, 120))
    z = (men.mean(axis=1) - women.mean(axis=1)) / np.sqrt(1 / 80 + 4 / 120)
    assert np.mean(np.abs(z) > stats.norm.ppf(0.975)) == pytest.approx(0.8, abs=0.02)


def test_images_needed_is_the_inverse():
    n = images_needed(0.05, 0.3, 0.2, share_woman=0.25)
    assert minimal_detectable_gap(0.3, 0.2, n // 4, n - n // 4) == pytest.approx(0.05, rel=0.02)
    for gap, share in ((0.0, 0.5), (0.1, 1.0)):
        with pytest.raises(ScoreError, match="must not be 0"):
            images_needed(gap, 1, 1, share_woman=share)
    with pytest.raises(ScoreError, match="both are chances"):
        images_needed(0.1, 1, 1, power=1.0)
    with pytest.raises(ScoreError, match="at least one of each"):
        minimal_detectable_gap(1, 1, 0, 5)


def test_spread_is_over_images():
    rows = answers()
    women, men = image_spread(**rows)
    assert women == pytest.approx(np.std(rows["predictions"][::2], ddof=1))
    twice = {name: np.concatenate([column, column]) for name, column in rows.items()}
    assert image_spread(**twice) == pytest.approx((women, men))
    with pytest.raises(ScoreError, match="a gender has a single image"):
        image_spread([0.1, 0.2, 0.3], [0, 1, 1], [1, 2, 3])


def test_labour_association_uses_what_both_lists_have():
    rng = np.random.default_rng(0)
    names = [f"occupation {i}" for i in range(23)]
    gaps, shares = (
        dict(zip(names, rng.normal(size=23), strict=True)),
        dict(zip(names, rng.uniform(size=23), strict=True)),
    )
    found = labour_association({**gaps, "extra": 1.0, "none": None}, shares)
    assert found.pearson == pytest.approx(stats.pearsonr(list(gaps.values()), list(shares.values())).statistic)
    assert found.kendall == pytest.approx(stats.kendalltau(list(gaps.values()), list(shares.values())).statistic)
    assert (found.n, found.missing) == (23, ("extra", "none"))
    with pytest.raises(ScoreError, match="1 occupations have a score and a share"):
        labour_association({"a": 1.0}, {"a": 0.5, "b": 0.2})


def test_quadrants():
    found = quadrants({"a": 0.1, "b": 0.1, "c": -0.1, "d": 0.0, "e": 1.0}, {"a": 51.0, "b": 50.0, "c": 90.0, "d": 1.0})
    assert found == {
        "male_biased_male": 1,
        "male_biased_female": 1,
        "female_biased_male": 1,
        "female_biased_female": 0,
        "unbiased": 1,
    }


def test_subsampling_keeps_rows_of_every_group():
    groups = ["a"] * 5 + ["b"] * 5 + ["c"] * 2
    seen = []

    def score(rows):
        seen.append(rows)
        return {"rows": len(rows), "sum": float(rows.sum())}

    found = subsample(groups, score, keep=3, runs=200, seed=1)
    assert found["rows"].mean == 8
    assert found["rows"].sd == 0
    # the mean over runs is that of all rows: 3/5 of the first ten places, and all of the last two
    assert found["sum"].mean == pytest.approx(0.6 * sum(range(10)) + 21, abs=1)
    assert all(set(rows) >= {10, 11} and (np.diff(rows) > 0).all() for rows in seen)
    for options, message in (({"keep": 0}, "keep=0"), ({"keep": 1, "runs": 1}, "1 runs")):
        with pytest.raises(ScoreError, match=message):
            subsample(groups, score, **options)


@pytest.mark.slow
def test_random_relabelling_gives_the_published_chance_level(shared):
    # Given VisoGender's shape (23 occupations, 20 images each, ten of each gender), any ranking is as good as another
    with (shared / "reference" / "visogender_random_split.csv").open() as file:
        published = {
            row.pop("statistic"): {name: float(value) for name, value in row.items()} for row in csv.DictReader(file)
        }
    rows = np.random.default_rng(0).normal(size=(23, 20))
    found = random_relabelling(list(rows), genders=[["man", "woman"] * 10] * 23, runs=200)
    names = {
        "max_skew@5": "maxskew_at_5",
        "max_skew@10": "maxskew_at_10",
        "ndkl": "ndkl",
        "bias@5": "bias_at_5",
        "bias@10": "bias_at_10",
    }
    for ours, theirs in names.items():
        error = found[ours].sd / 200**0.5
        assert found[ours].mean == pytest.approx(published["mean"][theirs], abs=3 * error + 0.004)
        assert found[ours].sd == pytest.approx(published["sd"][theirs], rel=0.15)
        assert found[f"{ours}_sd"].mean == pytest.approx(published["mean"][f"{theirs}_sd"], rel=0.04)


def test_relabelling_shuffles_within_queries_or_for_all():
    rows = np.random.default_rng(0).normal(size=(4, 12))
    one = random_relabelling(rows, genders=["man", "woman"] * 6, k=[3], runs=40)
    own = random_relabelling(list(rows), genders=[["man", "woman"] * 6] * 4, k=[3], runs=40)
    assert one["ndkl"].mean == pytest.approx(own["ndkl"].mean, rel=0.2)
    # Given one shuffle for all queries, when these rank alike, then they move together
    alike = random_relabelling(np.tile(rows[0], (4, 1)), genders=["man", "woman"] * 6, k=[3], runs=40)
    assert alike["bias@3_sd"].mean == 0

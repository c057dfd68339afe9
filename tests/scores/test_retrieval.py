import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from truegap.scores import (
    ScoreError,
    TopCounts,
    balanced_draws,
    default_k,
    expected_max_skew,
    retrieval_bias,
    retrieval_changes,
    retrieval_scores,
)
from truegap.scores._ranking import rank
from truegap.scores._resample import resampled_counts
from truegap.scores.bootstrap import resampled_images

LN2 = math.log(2)


def plain(row, genders, k, target=(0.5, 0.5)):
    """One query's scores by the definitions, one image at a time."""
    ranked = [genders[i] for i in sorted(range(len(row)), key=lambda i: (-row[i], i))]
    share = [ranked[:k].count(g) / k for g in ("woman", "man")]
    skew = [math.log(max(p, 1 / k) / t) for p, t in zip(share, target, strict=True)]
    top = norm = 0.0
    for i in range(1, len(ranked) + 1):
        seen = [ranked[:i].count(g) / i for g in ("woman", "man")]
        top += stats.entropy(seen, target) / math.log2(i + 1)
        norm += 1 / math.log2(i + 1)
    return {
        f"bias@{k}": share[1] - share[0],
        f"skew_woman@{k}": skew[0],
        f"skew_man@{k}": skew[1],
        f"max_skew@{k}": max(skew),
        "ndkl": top / norm,
    }


@st.composite
def rankings(draw):
    images = draw(st.integers(4, 24))
    values = st.integers(0, draw(st.sampled_from([2, 5, 1000])))
    rows = draw(st.lists(st.lists(values, min_size=images, max_size=images), min_size=1, max_size=3))
    genders = draw(st.lists(st.sampled_from(["woman", "man"]), min_size=images, max_size=images))
    return np.array(rows, dtype=float), ["woman", "man", *genders[2:]]


@given(rankings(), st.integers(1, 4), st.sampled_from(["uniform", "dataset"]))
@settings(max_examples=80, deadline=None)
def test_agrees_with_the_definitions(ranking, k, target):
    rows, genders = ranking
    man = genders.count("man") / len(genders)
    found = retrieval_scores(rows, genders, k=k, target=target)
    for query, row in enumerate(rows):
        reference = plain(row, genders, k, (0.5, 0.5) if target == "uniform" else (1 - man, man))
        for metric, value in reference.items():
            assert found.values(metric)[0, query] == pytest.approx(value, abs=1e-12), metric


@given(rankings(), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_swapping_the_labels_swaps_the_scores(ranking, k):
    rows, genders = ranking
    swapped = [{"woman": "man", "man": "woman"}[gender] for gender in genders]
    before, after = retrieval_scores(rows, genders, k=k), retrieval_scores(rows, swapped, k=k)
    np.testing.assert_array_equal(after.values(f"bias@{k}"), -before.values(f"bias@{k}"))
    np.testing.assert_array_equal(after.values(f"skew_man@{k}"), before.values(f"skew_woman@{k}"))
    np.testing.assert_array_equal(after.values(f"max_skew@{k}"), before.values(f"max_skew@{k}"))
    np.testing.assert_allclose(after.values("ndkl"), before.values("ndkl"), atol=1e-12)


def test_the_order_of_images_and_queries_changes_nothing_without_ties():
    rng = np.random.default_rng(0)
    rows, genders = rng.normal(size=(3, 50)), rng.permutation(["woman", "man"] * 25)
    order, queries = rng.permutation(50), [2, 0, 1]
    before = retrieval_scores(rows, genders, k=[5, 20])
    after = retrieval_scores(rows[queries][:, order], genders[order], k=[5, 20])
    for metric in before.metrics:
        np.testing.assert_allclose(after.values(metric), before.values(metric)[:, queries], atol=1e-12)


def test_k_equal_to_a_balanced_set_is_0():
    found = retrieval_scores([[3.0, 2.0, 1.0, 0.0]], ["man", "man", "woman", "woman"], k=4)
    assert {metric: found.values(metric).item() for metric in found.top.metrics} == {
        "bias@4": 0,
        "max_skew@4": 0,
        "skew_woman@4": 0,
        "skew_man@4": 0,
    }


def test_ties_go_by_image_order_keep_k_rows_and_are_counted():
    # Given three images of equal similarity around the cut
    rows = [[0.9, 0.5, 0.5, 0.5], [0.9, 0.8, 0.5, 0.5]]
    found = retrieval_scores(rows, ["man", "man", "woman", "woman"], k=[2, 4])
    # Then the first of them in the table is kept, and only the first query has a tie at 2, none at the end
    assert found.top.counts[0, :, 0].tolist() == [[0, 2], [0, 2]]
    assert found.tied[0].tolist() == [[True, False], [False, False]]
    assert {score.metric: score.ties for score in found.summary()}["bias@2"] == 1
    assert found.values("max_skew@2").max() <= LN2


def test_ties_are_seen_inside_a_draw():
    # Given a tie at the cut that only the draw without image 1 has
    found = retrieval_scores(
        [[0.9, 0.7, 0.5, 0.5]], ["man", "man", "woman", "woman"], k=2, draws=[[0, 1, 2, 3], [0, 2, 3]]
    )
    assert found.tied[:, 0, 0].tolist() == [False, True]


def test_equal_similarities_are_ranked_by_image_order_in_long_rows():
    for unit, dtype in ((1.0, np.float32), (1.0, np.float64), (0.1, np.float64), (-0.1, np.float32)):
        row = np.random.default_rng(0).permutation(np.repeat(np.arange(-25.0, 25.0), 40) * unit).astype(dtype)
        ranked = rank(row[None])[0]
        assert ranked.tolist() == sorted(range(len(row)), key=lambda i: (-row[i], i))


def test_zero_and_minus_zero_are_a_tie():
    rows = np.array([[-0.0, 0.0, -0.0, -1.0, 1.0]], dtype=np.float32)
    assert rank(rows)[0].tolist() == [4, 0, 1, 2, 3]


@pytest.mark.parametrize(("empty", "woman"), [("clip", math.log(0.5 / 0.5)), ("neg_inf", -math.inf)])
def test_an_empty_group_follows_the_convention(empty, woman):
    found = retrieval_scores([[0.9, 0.8, 0.1, 0.0]], ["man", "man", "woman", "woman"], k=2, empty=empty)
    assert found.values("skew_woman@2").item() == woman
    assert found.values("max_skew@2").item() == pytest.approx(LN2)
    assert found.options["empty"] == empty
    assert [score.sd for score in found.summary()] == [None] * 5


def test_draws_are_averaged_and_ranked_within():
    rng = np.random.default_rng(1)
    rows, genders = rng.normal(size=(4, 30)), np.array(["woman"] * 10 + ["man"] * 20)
    draws = balanced_draws(genders, draws=3)
    found = retrieval_scores(rows, genders, k=[4], draws=draws)
    for number, draw in enumerate(draws):
        alone = retrieval_scores(rows[:, draw], genders[draw], k=[4])
        for metric in found.metrics:
            np.testing.assert_allclose(found.values(metric)[number], alone.values(metric)[0], atol=1e-12)
    score = next(each for each in found.summary() if each.metric == "bias@4")
    assert score.value == pytest.approx(found.values("bias@4").mean())
    assert score.sd == pytest.approx(np.std(found.values("bias@4").mean(axis=0), ddof=1))
    assert score.sd_draws == pytest.approx(np.std(found.values("bias@4").mean(axis=1), ddof=1))


def test_three_groups_have_everything_but_bias():
    genders = ["dark", "medium", "light"] * 4
    found = retrieval_scores([list(range(12))], genders, k=[3, 12], groups=("dark", "medium", "light"))
    assert found.values("max_skew@3").item() == pytest.approx(0)
    assert found.values("max_skew@12").item() == pytest.approx(0)
    assert "bias@3" not in found.metrics
    assert found.values("ndkl").item() == pytest.approx(
        sum(
            stats.entropy([sum((2 - j % 3) == g for j in range(i)) / i for g in range(3)], [1 / 3] * 3)
            / math.log2(i + 1)
            for i in range(1, 13)
        )
        / sum(1 / math.log2(i + 1) for i in range(1, 13))
    )
    with pytest.raises(ScoreError, match="'bias@3' was not measured"):
        found.values("bias@3")


@pytest.mark.parametrize(("women", "men", "k"), [(50, 50, 10), (1568, 1568, 1000), (30, 70, 5), (3, 40, 20)])
@pytest.mark.parametrize("target", ["uniform", "dataset"])
def test_the_null_agrees_with_scipy(women, men, k, target):
    share = np.array([0.5, 0.5] if target == "uniform" else [women, men] / np.sum([women, men]))
    count = np.arange(k + 1)
    chance = stats.hypergeom(women + men, women, k).pmf(count)
    skew = np.maximum(np.log(np.maximum(count, 1) / k / share[0]), np.log(np.maximum(k - count, 1) / k / share[1]))
    assert expected_max_skew([women, men], k, share) == pytest.approx(float(chance @ skew), abs=1e-11)


def test_the_null_is_the_mean_over_all_rankings():
    genders = ["woman"] * 3 + ["man"] * 3
    rows = np.array(list(itertools.permutations(range(6))), dtype=float)
    found = retrieval_scores(rows, genders, k=[2, 3])
    for number, k in enumerate((2, 3)):
        assert found.null[0, number] == pytest.approx(found.values(f"max_skew@{k}").mean(), abs=1e-12)


def test_the_null_of_three_groups_is_near_the_mean_over_rankings():
    rng = np.random.default_rng(0)
    genders = ["a"] * 10 + ["b"] * 10 + ["c"] * 10
    found = retrieval_scores(rng.normal(size=(4000, 30)), genders, k=6, groups=("a", "b", "c"))
    assert found.null.item() == pytest.approx(found.values("max_skew@6").mean(), abs=0.01)


def test_balanced_draws_depend_on_ids_alone():
    rng = np.random.default_rng(0)
    genders, ids = np.array(["woman"] * 20 + ["man"] * 50), np.array([f"{i:012d}" for i in range(70)])
    order = rng.permutation(70)
    before = balanced_draws(genders, draws=3, seed=7, ids=ids)
    after = balanced_draws(genders[order], draws=3, seed=7, ids=ids[order])
    for one, other in zip(before, after, strict=True):
        assert set(ids[one]) == set(ids[order][other])
        assert (np.diff(one) > 0).all()
        assert (np.diff(other) > 0).all()
        assert np.unique(genders[one], return_counts=True)[1].tolist() == [20, 20]
        assert set(range(20)) <= set(one.tolist())
    assert len({tuple(draw) for draw in before}) == 3
    assert balanced_draws(genders, draws=3, seed=8, ids=ids)[0].tolist() != before[0].tolist()


def test_balanced_draws_are_fixed_for_ever():
    # Given the same ids, when the code or NumPy changes, then draws that were published must not
    genders, ids = [0] * 4 + [1] * 12, [f"{i:012d}" for i in range(16)]
    draws = balanced_draws(genders, draws=2, seed=0, ids=ids)
    assert [draw.tolist() for draw in draws] == [[0, 1, 2, 3, 6, 7, 12, 13], [0, 1, 2, 3, 4, 9, 11, 12]]


def test_balanced_draws_sample_fairly():
    genders = ["woman"] * 5 + ["man"] * 10
    drawn = np.concatenate(balanced_draws(genders, draws=2000))
    counts = np.bincount(drawn, minlength=15)
    assert (counts[:5] == 2000).all()
    assert stats.chisquare(counts[5:]).pvalue > 1e-4


@pytest.mark.parametrize(("n", "k"), [(28785, 1000), (2000, 1000), (1999, 199), (100, 10), (3, 1)])
def test_default_k(n, k):
    assert default_k(n) == k


@pytest.mark.parametrize(
    ("queries", "images", "shares", "k"),
    [
        pytest.param(3, 200, (0.3, 0.7), [7, 40], id="unbalanced"),
        pytest.param(3, 90, (0.2, 0.5, 0.3), [30, 7], id="three groups"),
        pytest.param(260, 40, (0.5, 0.5), [5], id="many queries"),
        pytest.param(2, 120, None, [60, 120], id="balanced: the same draw every time"),
    ],
)
def test_resampled_counts_are_those_of_gathered_images(queries, images, shares, k):
    # Given resamples as lists of images, when each is gathered, ranked and counted again, then nothing differs
    rng = np.random.default_rng(3)
    groups = len(shares or (1, 1))
    rows = rng.normal(size=(queries, images))
    gender = rng.choice(groups, images, p=shares) if shares else np.arange(images) % 2
    names = ["a", "b", "c"][:groups]
    draws = balanced_draws([names[code] for code in gender], draws=2, groups=names)
    counts = resampled_counts(rank(rows), gender, draws, k, groups, n_resamples=5, seed=11)
    drawn = next(resampled_images(gender, 5, 11))
    for r, d, q in itertools.product(range(5), range(2), range(queries)):
        chosen = drawn[r][draws[d]]
        ranked = gender[chosen][np.argsort(-rows[q][chosen], kind="stable")]
        for number, each in enumerate(k):
            assert counts[r, d, q, number].tolist() == np.bincount(ranked[:each], minlength=groups).tolist()


def test_resampled_counts_above_16_bits():
    # given a k that 16 bits do not hold, and a ranking that shows one group first
    gender = np.repeat([0, 1], 40_000)
    order = np.arange(80_000)[None]
    counts = resampled_counts(order, gender, [np.arange(80_000)], [50_000], 2, n_resamples=2, seed=0)
    assert counts.reshape(2, 2).tolist() == [[40_000, 10_000]] * 2


@pytest.mark.parametrize("empty", ["clip", "neg_inf"])
@pytest.mark.parametrize("chosen", [None, range(3, 40)])
def test_skews_are_those_of_the_formula_to_the_last_bit(empty, chosen):
    # given counts on resamples, of which some queries may be chosen, and draws with shares of their own
    rng = np.random.default_rng(8)
    counts = rng.integers(0, 8, (30, 3, 50, 2, 2)).astype(np.int32)
    top = TopCounts((7, 9), ("a", "b"), counts, rng.dirichlet([1, 1], 3), empty)
    top = top.select(chosen) if chosen else top
    for place, k in enumerate(top.k):
        part = top.counts[..., place, :]
        floor = np.maximum(part, 1) if empty == "clip" else part
        with np.errstate(divide="ignore"):
            expected = np.log(floor / k / top.target[:, None])
        found = [top.values(f"skew_{name}@{k}") for name in top.groups]
        for code, each in enumerate(found):
            assert each.mean(axis=2).tobytes() == expected[..., code].mean(axis=2).tobytes()
            assert each.tobytes() == expected[..., code].tobytes()
        assert top.values(f"max_skew@{k}").tobytes() == expected.max(axis=-1).tobytes()


def test_resampled_counts_reach_k_even_at_the_end_of_the_ranking():
    gender = np.array([0] * 5 + [1] * 40)
    rows = np.arange(45.0)[None]
    counts = resampled_counts(rank(rows), gender, [np.r_[0:5, 10:15]], [10], 2, n_resamples=300, seed=0)
    assert (counts.sum(axis=-1) == 10).all()
    assert (counts == 5).all()


def measured(seed=0, images=300, effect=0.3, **options):
    rng = np.random.default_rng(seed)
    gender = np.arange(images) % 3 > 0
    rows = rng.normal(size=(6, images)) + effect * gender
    options = {"k": [30], "draws": balanced_draws(gender.astype(int), draws=2), "n_resamples": 400} | options
    return rows, gender.astype(int), options


def test_intervals_hold_the_score_and_max_skew_is_moved_to_it():
    rows, gender, options = measured()
    for score in retrieval_scores(rows, gender, **options).summary():
        if score.metric == "ndkl":
            assert score.ci_low is None
        else:
            assert score.ci_low < score.value < score.ci_high
        # Bias@k alone is expected to be 0 where the images are balanced
        assert (score.null is None) == score.metric.startswith("bias")


def test_the_lower_end_of_max_skew_is_moved_to_the_score():
    # Given rankings without bias, where resampling adds noise to a maximum that is noise already
    _, gender, options = measured()
    found = retrieval_scores(np.random.default_rng(0).normal(size=(60, 300)), gender, **options)
    values = found.resampled.values("max_skew@30").mean(axis=(1, 2))
    score = next(each for each in found.summary() if each.metric == "max_skew@30")
    assert values.mean() > score.value + 0.01
    low, high = np.quantile(values, [0.025, 0.975])
    # then the lower end, which a bias is judged by, is moved, and the upper end is not pulled down
    assert (score.ci_low, score.ci_high) == pytest.approx((low - values.mean() + score.value, high))


def test_bias_interval_agrees_with_scipy():
    # Given one query and all images, when scipy resamples the images within gender, then the intervals agree
    rng = np.random.default_rng(5)
    gender = np.repeat([0, 1], [80, 80])
    row = rng.normal(size=160) + 0.5 * gender
    found = retrieval_scores([row], gender, k=40, n_resamples=4000)

    def bias(women, men):
        order = np.argsort(-np.r_[women, men], kind="stable")[:40]
        return 2 * np.mean(order >= len(women)) - 1

    reference = stats.bootstrap(
        (row[:80], row[80:]), bias, vectorized=False, n_resamples=4000, method="percentile", random_state=0
    ).confidence_interval
    score = found.summary()[0]
    assert score.ci_low == pytest.approx(reference.low, abs=0.051)
    assert score.ci_high == pytest.approx(reference.high, abs=0.051)


def test_changes_are_paired():
    rows, gender, options = measured()
    before = retrieval_scores(rows, gender, **options)
    same = retrieval_changes(before, retrieval_scores(rows.copy(), gender, **options))
    for change in same:
        assert (change.delta, change.signed_change, change.abs_change) == (0, 0, 0)
        if change.metric != "ndkl":
            assert (change.signed_low, change.signed_high, change.delta_low, change.delta_high) == (0, 0, 0, 0)
    # Given a small change of every similarity, then the paired interval is narrower than that of either score
    rng = np.random.default_rng(9)
    after = retrieval_scores(rows + 0.02 * rng.normal(size=rows.shape), gender, **options)
    change = retrieval_changes(before, after, metrics=["bias@30"])[0]
    score = before.summary()[0]
    assert change.signed_high - change.signed_low < 0.5 * (score.ci_high - score.ci_low)
    assert change.signed_low <= change.signed_change <= change.signed_high


def test_a_clear_change_has_an_interval_off_0_and_an_unclear_one_starts_at_0():
    rows, gender, options = measured(effect=1.0)
    before = retrieval_scores(rows, gender, **options)
    cleared = retrieval_changes(
        before, retrieval_scores(rows - 1.0 * gender, gender, **options), metrics=["max_skew@30"]
    )[0]
    assert cleared.signed_high < 0
    assert 0 < cleared.delta_low <= cleared.delta <= cleared.delta_high
    rng = np.random.default_rng(2)
    noisy = retrieval_scores(rows + 0.3 * rng.normal(size=rows.shape), gender, **options)
    unclear = retrieval_changes(before, noisy, metrics=["skew_man@30"])[0]
    assert unclear.signed_low <= 0 <= unclear.signed_high
    ratios = 100 * np.abs(
        noisy.resampled.values("skew_man@30").mean(2) / before.resampled.values("skew_man@30").mean(2) - 1
    )
    assert np.quantile(ratios.mean(axis=1), 0.025) > 0.01
    assert unclear.delta_low == 0


def test_draws_too_near_0_are_excluded_from_delta():
    gender = ["man", "woman"] * 2
    before = retrieval_scores([[4.0, 3, 2, 1]], gender, k=2)
    after = retrieval_scores([[4.0, 1, 2, 3]], gender, k=2)
    change = retrieval_changes(before, after, metrics=["bias@2"])[0]
    assert (change.delta, change.excluded) == (None, 1)
    assert change.reason == "every row's original score is too near 0"


def test_select_gives_a_prompt_set():
    rows, gender, options = measured()
    whole = retrieval_scores(rows, gender, **options)
    part = retrieval_scores(rows[[4, 1]], gender, **options)
    for one, other in zip(whole.select([4, 1]).summary(), part.summary(), strict=True):
        for name in ("value", "sd", "null", "ci_low", "ci_high"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-12)
        assert (one.metric, one.ties) == (other.metric, other.ties)


def test_one_image_of_a_group_has_no_interval():
    found = retrieval_scores([[3.0, 2, 1]], ["man", "man", "woman"], k=1, n_resamples=50)
    assert found.resampled is None


def test_unlike_measurements_are_not_compared():
    rows, gender, options = measured()
    before = retrieval_scores(rows, gender, **options)
    with pytest.raises(ScoreError, match="differ; score both on the same images"):
        retrieval_changes(before, retrieval_scores(rows, gender, **(options | {"seed": 1})))


MAN_WOMAN = ["man", "woman"]


@pytest.mark.parametrize(
    ("rows", "genders", "options", "message"),
    [
        ([[1, 2], [1]], MAN_WOMAN, {}, "similarities: row 1 has 1 values, row 0 has 2"),
        ([[1, 2], [1, float("nan")]], MAN_WOMAN, {}, "similarities: row 1, column 1 is nan"),
        ([1, 2], MAN_WOMAN, {}, "1 dimensions where two were expected"),
        ([[1, 2]], ["man", "man"], {}, "genders: nobody is labelled 'woman'"),
        ([[1, 2]], ["man", "x"], {}, "genders: row 1 is 'x'"),
        ([[1, 2]], ["man"], {}, "genders: 1 rows, but a row of similarities has 2"),
        ([[1, 2]], MAN_WOMAN, {"k": 3}, "k=3 is above the 2 images"),
        ([[1, 2]], MAN_WOMAN, {"k": 0}, "k=0; a ranking is cut"),
        ([[1, 2]], MAN_WOMAN, {"k": [1, 1]}, "none twice"),
        ([[1, 2]], MAN_WOMAN, {"k": []}, "at least one"),
        ([[1, 2]], MAN_WOMAN, {"draws": []}, "no draws"),
        ([[1, 2]], MAN_WOMAN, {"draws": [[0, 0]]}, "draw 0: not a set of places"),
        ([[1, 2]], MAN_WOMAN, {"draws": [[0, 2]]}, "draw 0: not a set of places"),
        ([[1, 2, 3]], [*MAN_WOMAN, "man"], {"draws": [[0, 2]]}, "draw 0: nobody is labelled 'woman'"),
        ([[1, 2]], MAN_WOMAN, {"target": "half"}, "target='half' is unknown; use 'uniform' or 'dataset'"),
        ([[1, 2]], MAN_WOMAN, {"empty": "zero"}, "empty='zero' is unknown"),
    ],
)
def test_bad_input_names_the_row_and_the_remedy(rows, genders, options, message):
    with pytest.raises(ScoreError, match=message):
        retrieval_scores(rows, genders, **({"k": 1} | options))


def test_bad_draws():
    with pytest.raises(ScoreError, match="ids: row 2: 'a' occurs twice"):
        balanced_draws([0, 1, 1], ids=["a", "b", "a"])
    with pytest.raises(ScoreError, match="draws=0"):
        balanced_draws([0, 1], draws=0)
    with pytest.raises(ScoreError, match="ids: 1 rows, but genders has 2"):
        balanced_draws([0, 1], ids=["a"])


def test_plain_call_averages_queries():
    rng = np.random.default_rng(0)
    rows, genders = rng.normal(size=(5, 40)), ["woman", "man"] * 20
    found = retrieval_bias(rows, genders=genders)
    for metric in ("bias@5", "max_skew@10", "skew_woman@5", "ndkl"):
        values = [plain(row, genders, int(metric.partition("@")[2] or 5))[metric] for row in rows]
        assert found.scores[metric] == pytest.approx(np.mean(values), abs=1e-12)
        assert found.scores[f"{metric}_sd"] == pytest.approx(np.std(values, ddof=1), abs=1e-12)
        assert [query[metric] for query in found.per_query] == pytest.approx(values)
    assert found.ci_low < found.scores["bias@5"] < found.ci_high
    assert found.options["k"] == [5, 10]
    assert found.counts["images_man"] == 20


def test_plain_call_with_own_images_has_null_for_short_queries_and_no_interval():
    rows = [list(range(10)), list(range(4))]
    genders = [["woman", "man"] * 5, ["woman", "man"] * 2]
    found = retrieval_bias(rows, genders=genders, k=[4, 5])
    assert found.per_query[1]["bias@5"] is None
    assert found.per_query[1]["ndkl"] == pytest.approx(plain(rows[1], genders[1], 4)["ndkl"])
    assert found.scores["bias@5"] == pytest.approx(plain(rows[0], genders[0], 5)["bias@5"])
    assert (found.counts["null@4"], found.counts["null@5"]) == (0, 1)
    assert (found.ci_low, found.ci_high) == (None, None)
    with pytest.raises(ScoreError, match="k=11 is above the number of images of every query"):
        retrieval_bias(rows, genders=genders, k=11)
    with pytest.raises(ScoreError, match="query 1: genders: nobody is labelled 'man'"):
        retrieval_bias(rows, genders=[genders[0], ["woman"] * 4], k=2)
    with pytest.raises(ScoreError, match="genders: 1 rows, but predictions has 2"):
        retrieval_bias(rows, genders=genders[:1], k=2)

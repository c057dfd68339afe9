"""Scores of a ranking, and what a random ranking gives."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from checks import Checks, Pair, mean
from scipy import stats

from truegap import scores

CHECKS = Checks()


def rankings(rng: np.random.Generator) -> tuple[np.ndarray, list[str], list[int]]:
    """Similarities, coarse ones with ties among them, genders, and cuts."""
    queries, images = int(rng.integers(1, 5)), int(rng.integers(6, 40))
    similarities = rng.normal(size=(queries, images))
    if rng.random() < 0.5:
        similarities = np.round(similarities, 1)
    genders = [str(each) for each in rng.permutation(["woman", "man", *rng.choice(["woman", "man"], images - 2)])]
    return similarities, genders, sorted(int(k) for k in rng.choice(np.arange(1, images + 1), 3, replace=False))


def loop(row: Sequence[float], genders: Sequence[str], k: int) -> dict[str, float]:
    """The definitions, one image after the other."""
    top = sorted(range(len(row)), key=lambda image: (-row[image], image))[:k]
    counts = {gender: sum(genders[image] == gender for image in top) for gender in ("woman", "man")}
    skew = {f"skew_{gender}": math.log(max(count, 1) / k / 0.5) for gender, count in counts.items()}
    return {"bias": (counts["man"] - counts["woman"]) / k, "max_skew": max(skew.values()), **skew}


@CHECKS.add("Bias@k, Skew@k, MaxSkew@k: mean, sd", "sorted list, loop; statistics.stdev")
def top(rng: np.random.Generator) -> Pair:
    similarities, genders, cuts = rankings(rng)
    found = scores.retrieval_bias(similarities, genders=genders, k=cuts, n_resamples=0).scores
    ours, theirs = [], []
    for k in cuts:
        values = [loop(row, genders, k) for row in similarities]
        for name in values[0]:
            column = [each[name] for each in values]
            ours += [found[f"{name}@{k}"], found[f"{name}@{k}_sd"]]
            theirs += [mean(column), statistics.stdev(column) if len(column) > 1 else None]
    return ours, theirs


def divergence_of(ranked: Sequence[str], share: Sequence[float]) -> float:
    """NDKL of the genders in ranked order."""
    places = range(1, len(ranked) + 1)
    weights = [1 / math.log2(place + 1) for place in places]
    counts = [[list(ranked[:place]).count(gender) for gender in ("woman", "man")] for place in places]
    parts = [float(stats.entropy(each, share)) for each in counts]
    return math.fsum(w * part for w, part in zip(weights, parts, strict=True)) / math.fsum(weights)


@CHECKS.add("NDKL", "scipy entropy at every rank")
def ndkl(rng: np.random.Generator) -> Pair:
    similarities, genders, cuts = rankings(rng)
    target = str(rng.choice(["uniform", "dataset"]))
    found = scores.retrieval_bias(similarities, genders=genders, k=cuts, target=target, n_resamples=0)
    share = [genders.count(each) / len(genders) if target == "dataset" else 0.5 for each in ("woman", "man")]
    theirs: list[float | None] = []
    for row in similarities:
        ranked = [genders[image] for image in sorted(range(len(row)), key=lambda image: (-row[image], image))]
        theirs.append(divergence_of(ranked, share))
    return [each["ndkl"] for each in found.per_query], theirs


@CHECKS.add("top-k scores on bootstrap resamples", "the resample's images, copied and sorted")
def resampled_top(rng: np.random.Generator) -> Pair:
    similarities, genders, cuts = rankings(rng)
    genders[:4] = ["woman", "woman", "man", "man"]
    found = scores.retrieval_scores(similarities, genders, k=cuts, n_resamples=10)
    assert found.resampled is not None
    weights = next(scores.bootstrap_weights([g == "man" for g in genders], n_resamples=10)).astype(int)
    ours: list[float | None] = []
    theirs: list[float | None] = []
    for resample, query, (place, k) in itertools.product(range(10), range(len(similarities)), enumerate(cuts)):
        row = [
            (s, g) for s, g, w in zip(similarities[query], genders, weights[resample], strict=True) for _ in range(w)
        ]
        value = loop([s for s, _ in row], [g for _, g in row], k)
        ours += [float(found.resampled.values(f"{name}@{k}")[resample, 0, query]) for name in value]
        theirs += value.values()
        assert int(found.resampled.counts[resample, 0, query, place].sum()) == k
    return ours, theirs


@CHECKS.add("delta, signed and absolute change of top-k scores", "loop over draws, exact fractions for Bias@k")
def top_change(rng: np.random.Generator) -> Pair:
    similarities, genders, cuts = rankings(rng)
    after = similarities + rng.normal(0, 0.5, similarities.shape)
    draws = scores.balanced_draws(genders, draws=3)
    k = min(cuts[0], len(draws[0]))
    both = [scores.retrieval_scores(each, genders, k=k, draws=draws) for each in (similarities, after)]
    (found,) = scores.retrieval_changes(*both, metrics=[f"bias@{k}"])
    values = [
        [
            sum(Fraction(round(k * loop(row[draw], [genders[i] for i in draw], k)["bias"]), k) for row in each)
            / len(each)
            for draw in draws
        ]
        for each in (similarities, after)
    ]
    pairs = list(zip(*values, strict=True))
    ratios = [100 * abs((new - old) / old) for old, new in pairs if old]
    theirs = [sum(new - old for old, new in pairs) / 3, sum(abs(new - old) for old, new in pairs) / 3]
    delta = float(sum(ratios) / len(ratios)) if ratios else None
    return [found.delta, found.signed_change, found.abs_change], [delta, *map(float, theirs)]


@CHECKS.add("MaxSkew@k under a random ranking", "scipy hypergeom, expectation")
def null(rng: np.random.Generator) -> Pair:
    women, men = (int(each) for each in rng.integers(1, 3000, 2))
    k = int(rng.integers(1, women + men + 1))
    chance = stats.hypergeom(women + men, women, k)

    def skew(count: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(np.maximum(np.maximum(count, k - count), 1) / k / 0.5))

    support = np.arange(max(0, k - men), min(k, women) + 1)
    return [scores.expected_max_skew([women, men], k, [0.5, 0.5])], [math.fsum(chance.pmf(support) * skew(support))]


@CHECKS.add("MaxSkew@k, Skew@k, NDKL under a random ranking, few images", "all placings of the women")
def null_enumerated(rng: np.random.Generator) -> Pair:
    n = int(rng.integers(3, 11))
    women, k, share = int(rng.integers(1, n)), int(rng.integers(1, n + 1)), [0.5, 0.5]
    placed = [
        ["woman" if p in chosen else "man" for p in range(n)] for chosen in itertools.combinations(range(n), women)
    ]
    tops = [loop(range(0, -n, -1), genders, k) for genders in placed]
    sizes = [women, n - women]
    ours = [scores.expected_max_skew(sizes, k, share), *scores.expected_skew(sizes, k, share)]
    theirs = [mean([top[name] for top in tops]) for name in ("max_skew", "skew_woman", "skew_man")]
    divergence = mean([divergence_of(genders, share) for genders in placed])
    return [*ours, scores.expected_ndkl(sizes, share)], [*theirs, divergence]


@CHECKS.add("MaxSkew@k under a random ranking, three groups", "scipy, every count (ours draws 20,000)", tolerance=0.01)
def null_of_three(rng: np.random.Generator) -> Pair:
    sizes = rng.integers(3, 20, 3)
    k = int(rng.integers(2, sizes.sum()))
    share = (sizes / sizes.sum()).tolist()
    expected = 0.0
    for one, two in itertools.product(range(min(k, sizes[0]) + 1), range(min(k, sizes[1]) + 1)):
        counts = (one, two, k - one - two)
        if 0 <= counts[2] <= sizes[2]:
            skew = max(math.log(max(c, 1) / k / t) for c, t in zip(counts, share, strict=True))
            expected += skew * float(stats.multivariate_hypergeom.pmf(counts, sizes, k))
    return [scores.expected_max_skew(sizes.tolist(), k, share)], [expected]

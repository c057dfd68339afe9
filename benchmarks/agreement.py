"""Do the scores agree with independent references? Prints a Markdown table of the largest differences.

    python benchmarks/agreement.py [--inputs 200]

Every score is computed on many random inputs, small and awkward ones among them (ties, single queries, questions that
were not asked on every image), and beside it by something that shares no code with it: scipy, fairlearn, a closed form,
or the definition written out as a loop, an enumeration of all cases, or a list of copied rows. Some are held against
printed tables too. Differences are relative where values are above 1 (deltas are in percent). Exits with 1 where one is
above its tolerance.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import fairlearn
import numpy as np
import scipy
from fairlearn.metrics import MetricFrame
from scipy import stats

from truegap import scores
from truegap.results.published import rows

EXACT = 1e-12
"""Sums of float64 in another order differ by less than this."""

Pair = tuple[Sequence[float | None], Sequence[float | None]]
Measure = Callable[[np.random.Generator], Pair]


@dataclass(frozen=True)
class Check:
    """One row of the table; without `inputs` it holds for one input alone, such as a printed table."""

    score: str
    reference: str
    measure: Measure
    tolerance: float
    inputs: int | None


CHECKS: list[Check] = []


def check(
    score: str, reference: str, *, tolerance: float = EXACT, inputs: int | None = 1
) -> Callable[[Measure], Measure]:
    """Registers a comparison; `inputs` is a share of what the command line asks for, None for a single one."""

    def register(measure: Measure) -> Measure:
        CHECKS.append(Check(score, reference, measure, tolerance, inputs))
        return measure

    return register


def mean(values: Sequence[float] | np.ndarray) -> float:
    """As a reference takes it: exactly rounded."""
    return math.fsum(values) / len(values)


# ---- YGap


def answers(rng: np.random.Generator) -> dict[str, Any]:
    """Answers of which some are missing, on images of which each gender has at least two."""
    images, asked = int(rng.integers(6, 30)), int(rng.integers(1, 6))
    gender = ["woman", "man", "woman", "man", *rng.choice(["woman", "man"], images - 4)]
    given = [(i, q) for i in range(images) for q in range(asked) if i < 4 or rng.random() < 0.8]
    given = [given[place] for place in rng.permutation(len(given))]
    yes = rng.random(len(given)) if rng.random() < 0.7 else rng.integers(0, 2, len(given)).astype(float)
    return {
        "predictions": yes.tolist(),
        "genders": [str(gender[i]) for i, _ in given],
        "images": [f"i{i:02}" for i, _ in given],
        "questions": [f"q{q}" for _, q in given],
    }


def mean_of(truth: Sequence[float], predictions: Sequence[float]) -> float:  # noqa: ARG001  fairlearn's signature
    """A metric for `MetricFrame`."""
    return float(np.mean(predictions))


def by_fairlearn(values: Sequence[float], genders: Sequence[str], questions: Sequence[str]) -> dict[str, float]:
    frame = MetricFrame(
        metrics=mean_of, y_true=values, y_pred=values, sensitive_features=genders, control_features=questions
    ).by_group
    return {q: frame[q, "man"] - frame[q, "woman"] for q in dict.fromkeys(questions)}


@check("YGap: per question, mean, mean absolute", "fairlearn MetricFrame")
def ygap(rng: np.random.Generator) -> Pair:
    given = answers(rng)
    found = scores.ygap(**given, n_resamples=0, n_permutations=0)
    gaps = list(by_fairlearn(given["predictions"], given["genders"], given["questions"]).values())
    ours = [*(each.ygap for each in found.per_question), found.ygap, found.mean_abs_ygap]
    return ours, [*gaps, mean(gaps), mean([abs(gap) for gap in gaps])]


def copied(images: Sequence[str], weights: np.ndarray) -> list[int]:
    """Places of the rows of a resample, each as often as its image was drawn; images in the order of their ids."""
    count = dict(zip(sorted(set(images)), weights.astype(int), strict=True))
    return [row for row, image in enumerate(images) for _ in range(count[image])]


@check("YGap on bootstrap resamples", "the resample's rows, copied; plain means")
def resampled(rng: np.random.Generator) -> Pair:
    given = answers(rng)
    names = sorted(set(given["images"]))
    label = [given["genders"][given["images"].index(name)] == "man" for name in names]
    ours = scores.resampled_ygap(**given, n_resamples=20)
    theirs = []
    for weights in next(scores.bootstrap_weights(np.array(label, dtype=int), n_resamples=20)):
        cells: dict[str, tuple[list[float], list[float]]] = {}
        for row in copied(given["images"], weights):
            both = cells.setdefault(given["questions"][row], ([], []))
            both[given["genders"][row] == "man"].append(given["predictions"][row])
        known = len(cells) == len(set(given["questions"])) and all(w and m for w, m in cells.values())
        theirs.append(mean([mean(m) - mean(w) for w, m in cells.values()]) if known else None)
    return [float(value) if np.isfinite(value) else None for value in ours], theirs


@check("permutation p-value", "scipy permutation_test, all relabellings")
def permutation(rng: np.random.Generator) -> Pair:
    women, men = rng.random(3), rng.random(int(rng.integers(2, 5)))
    test = stats.permutation_test((men, women), lambda a, b: a.mean() - b.mean(), n_resamples=np.inf, vectorized=False)
    n = len(test.null_distribution)
    # Ours counts the observed labelling once more; scipy's two-sided p-value doubles a tail, ours takes both.
    both = np.sum(np.abs(test.null_distribution) >= abs(test.statistic) - 1e-14)
    return [scores.p_value(float(men.mean() - women.mean()), test.null_distribution)], [(1 + both) / (1 + n)]


@check("Holm", "closed testing: Bonferroni on every subset")
def holm(rng: np.random.Generator) -> Pair:
    p = np.round(rng.random(int(rng.integers(1, 8))) ** 3, 2)
    subsets = [s for size in range(1, len(p) + 1) for s in itertools.combinations(range(len(p)), size)]
    closed = [max(min(1.0, len(s) * min(p[list(s)])) for s in subsets if i in s) for i in range(len(p))]
    return scores.holm(p), closed


@check("interval, percentile", "statistics.quantiles")
def percentile(rng: np.random.Generator) -> Pair:
    values = rng.normal(size=int(rng.integers(5, 300))).tolist()
    cuts = statistics.quantiles(values, n=40, method="inclusive")
    return scores.interval(values, 0.0), [cuts[0], cuts[-1]]


@check("interval, BCa", "scipy bootstrap on the same resamples")
def bca(rng: np.random.Generator) -> Pair:
    data = rng.exponential(size=int(rng.integers(8, 40)))
    drawn = rng.choice(data, size=(400, len(data))).mean(axis=1)
    left_out = [np.delete(data, place).mean() for place in range(len(data))]
    earlier = stats.bootstrap((data,), np.mean, n_resamples=9, method="percentile", rng=0)
    earlier.bootstrap_distribution = drawn
    found = stats.bootstrap((data,), np.mean, n_resamples=0, bootstrap_result=earlier, method="BCa")
    ours = scores.interval(drawn, float(data.mean()), method="bca", jackknife=left_out)
    return ours, [found.confidence_interval.low, found.confidence_interval.high]


@check("minimal detectable gap, images needed", "power of a z-test, scipy norm")
def power(rng: np.random.Generator) -> Pair:
    sd, n = rng.uniform(0.05, 0.5, 2), rng.integers(5, 5000, 2)
    gap = scores.minimal_detectable_gap(*sd, *n)

    def reached(gap: float, variance: float) -> float:
        return float(stats.norm.sf(stats.norm.isf(0.025) - gap / math.sqrt(variance)))

    needed = scores.images_needed(gap, *sd)
    enough = [reached(gap, 2 * (sd**2).sum() / count) >= 0.8 for count in (needed, needed - 1)]
    return [reached(gap, float((sd**2 / n).sum())), *map(float, enough)], [0.8, 1.0, 0.0]


# ---- Retrieval


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


@check("Bias@k, Skew@k, MaxSkew@k: mean, sd", "sorted list, loop; statistics.stdev")
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


@check("NDKL", "scipy entropy at every rank")
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


@check("top-k scores on bootstrap resamples", "the resample's images, copied and sorted")
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


@check("delta, signed and absolute change of top-k scores", "loop over draws, exact fractions for Bias@k")
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


@check("MaxSkew@k under a random ranking", "scipy hypergeom, expectation")
def null(rng: np.random.Generator) -> Pair:
    women, men = (int(each) for each in rng.integers(1, 3000, 2))
    k = int(rng.integers(1, women + men + 1))
    chance = stats.hypergeom(women + men, women, k)

    def skew(count: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(np.maximum(np.maximum(count, k - count), 1) / k / 0.5))

    support = np.arange(max(0, k - men), min(k, women) + 1)
    return [scores.expected_max_skew([women, men], k, [0.5, 0.5])], [math.fsum(chance.pmf(support) * skew(support))]


@check("MaxSkew@k, Skew@k, NDKL under a random ranking, few images", "all placings of the women")
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


@check("MaxSkew@k under a random ranking, three groups", "scipy, every count (ours draws 20,000)", tolerance=0.01)
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


# ---- Resolution


def pronouns(rng: np.random.Generator) -> tuple[np.ndarray, list[str], list[str | None]]:
    """Scores with ties among them, who is meant, and who else is there; every combination at least once."""
    n = int(rng.integers(12, 60))
    values = np.round(rng.normal(size=(n, 3)), 1 if rng.random() < 0.5 else 6)
    sides = ["masculine", "feminine"]
    every = list(itertools.product(sides, [None, *sides]))
    pairs = [*every, *(every[int(place)] for place in rng.integers(0, len(every), n - len(every)))]
    return values, [meant for meant, _ in pairs], [other for _, other in pairs]


def resolved(values: np.ndarray, ties: str) -> list[str]:
    names = ("masculine", "feminine", "neutral")
    best = [[names[place] for place, value in enumerate(row) if value == max(row)] for row in values.tolist()]
    return [each[0] if ties == "first" or len(each) == 1 else "tied" for each in best]


def share_right(truth: Sequence[str], found: Sequence[str]) -> float:
    return mean([one == other for one, other in zip(truth, found, strict=True)])


def share_neutral(truth: Sequence[str], found: Sequence[str]) -> float:  # noqa: ARG001  fairlearn's signature
    return mean([each == "neutral" for each in found])


@check("RA per gender, gap, neutral rate and gap; splits", "fairlearn MetricFrame")
def resolution(rng: np.random.Generator) -> Pair:
    values, meant, others = pronouns(rng)
    ties, width = str(rng.choice(["wrong", "first"])), int(rng.choice([2, 3]))
    candidates = "two" if width == 2 else "three"
    found = resolved(values[:, :width], ties)
    metrics = {"right": share_right, "neutral": share_neutral}
    frame = MetricFrame(metrics=metrics, y_true=np.array(meant), y_pred=np.array(found), sensitive_features=meant)
    right, neutral = (frame.by_group[name] for name in metrics)
    ours = scores.resolution_bias(values, meant, candidates=candidates, ties=ties).overall
    kinds = [f"{m[0].upper()}{o[0].upper()}" if o else "single" for m, o in zip(meant, others, strict=True)]
    pairs = MetricFrame(metrics=share_right, y_true=np.array(meant), y_pred=np.array(found), sensitive_features=kinds)
    splits = scores.resolution_splits(values, meant, others, candidates=candidates, ties=ties).splits
    three = width == 3
    return [
        *(ours.ra_m, ours.ra_f, ours.ra_avg, ours.gap, ours.neutral_rate, ours.neutral_gap),
        *((splits[name].ra_m if name[0] == "M" else splits[name].ra_f) for name in ("MM", "MF", "FF", "FM")),
    ], [
        *(right["masculine"], right["feminine"], (right["masculine"] + right["feminine"]) / 2),
        right["masculine"] - right["feminine"],
        frame.overall["neutral"] if three else None,
        neutral["masculine"] - neutral["feminine"] if three else None,
        *(pairs.by_group[name] for name in ("MM", "MF", "FF", "FM")),
    ]


# ---- Counterfactuals


@dataclass(frozen=True)
class Item:
    """One item of one pair, in one order."""

    pair: str
    occupation: str
    male: bool
    order: int
    base: Fraction
    counterfactual: Fraction


def items(rng: np.random.Generator) -> list[Item]:
    """Two to four pairs that share an occupation; probabilities are hundredths, so that one half occurs."""
    found = []
    pairs = [("a", "b"), ("a", "c"), ("d", "c"), ("d", "e")][: int(rng.integers(2, 5))]
    for pair, order in itertools.product(pairs, (0, 1)):
        for occupation in pair:
            for male in (True, False):
                for _ in range(int(rng.integers(1, 4))):
                    values = [Fraction(int(each), 100) for each in rng.integers(0, 101, 2)]
                    found.append(Item("|".join(pair), occupation, male, order, *values))
    return found


def columns(given: Sequence[Item]) -> dict[str, Any]:
    return {
        "base": [float(each.base) for each in given],
        "counterfactual": [float(each.counterfactual) for each in given],
        "occupations": [each.occupation for each in given],
        "pairs": [each.pair for each in given],
        "genders": ["male" if each.male else "female" for each in given],
        "orders": [each.order for each in given],
    }


def right(value: Fraction) -> Fraction:
    return Fraction(1, 2) if value == Fraction(1, 2) else Fraction(value > Fraction(1, 2))


def mean_exact(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def occupation_bias(given: Sequence[Item]) -> Fraction:
    return mean_exact([(each.base - each.counterfactual) * (1 if each.male else -1) for each in given])


def outcome_bias(m: Sequence[Item], f: Sequence[Item]) -> Fraction:
    """From the eight counts of the authors' code: right then wrong (TF) and wrong then right (FT)."""
    half = Fraction(1, 2)

    def tf(given: Sequence[Item], male: bool) -> int:
        return sum(e.base > half >= e.counterfactual for e in given if e.male is male)

    def ft(given: Sequence[Item], male: bool) -> int:
        return sum(e.counterfactual > half >= e.base for e in given if e.male is male)

    total = tf(m, True) + ft(f, True) - (tf(m, False) + ft(f, False))
    total += -(tf(f, True) + ft(m, True)) + (tf(f, False) + ft(m, False))
    return Fraction(total, len(m) + len(f))


def pair_scores(given: Sequence[Item], *, outcome: bool, merged: bool) -> dict[str, list[Fraction]]:
    """Acc, B_pair, Ipss and delta Acc of every pair, as the definitions read."""
    found: dict[str, list[Fraction]] = {"acc": [], "bias": [], "ipss": [], "delta_acc": []}
    for pair in dict.fromkeys(each.pair for each in given):
        acc: list[Fraction] = []
        bias: list[Fraction] = []
        for order in (0, 1):
            sides = [
                [e for e in given if (e.pair, e.occupation, e.order) == (pair, occupation, order)]
                for occupation in pair.split("|")
            ]
            acc.append(mean_exact([mean_exact([right(e.base) for e in side]) for side in sides]))
            m, f = sides
            bias.append(outcome_bias(m, f) if outcome else (occupation_bias(m) - occupation_bias(f)) / 2)
        each = [a * (1 - abs(b)) for a, b in zip(acc, bias, strict=True)]
        found["acc"].append(mean_exact(acc))
        found["bias"].append(mean_exact(bias))
        found["ipss"].append(mean_exact(acc) * (1 - abs(mean_exact(bias))) if merged else mean_exact(each))
        found["delta_acc"].append(abs(acc[0] - acc[1]))
    return found


@check("Acc, B_pair, B_ovl, B_max, Ipss, delta Acc; both differences", "loop over items, exact fractions")
def counterfactual(rng: np.random.Generator) -> Pair:
    given = items(rng)
    ours: list[float | None] = []
    theirs: list[float | None] = []
    for outcome, merged, signed in itertools.product((False, True), repeat=3):
        found = scores.counterfactual_bias(
            **columns(given),
            difference="outcome" if outcome else "probability",
            ipss="merged" if merged else "per_order",
            b_max="signed" if signed else "abs",
        )
        exact = pair_scores(given, outcome=outcome, merged=merged)
        sizes = [abs(each) for each in exact["bias"]]
        ours += [found.acc, found.b_ovl, found.b_max, found.ipss, found.delta_acc]
        ours += [each.bias for each in found.per_pair]
        theirs += [float(mean_exact(values)) for values in (exact["acc"], sizes)]
        theirs.append(float(max(exact["bias"]) if signed else max(sizes)))
        theirs += [float(mean_exact(exact[name])) for name in ("ipss", "delta_acc")]
        theirs += [float(each) for each in exact["bias"]]
    return ours, theirs


@check("B_micro", "loop over items, exact fractions")
def micro(rng: np.random.Generator) -> Pair:
    given = items(rng)
    found = scores.counterfactual_bias(**columns(given)).b_micro
    theirs = []
    for occupation in found:
        groups: dict[str, dict[int, list[Item]]] = {}
        for each in given:
            if each.occupation == occupation:
                groups.setdefault(each.pair, {}).setdefault(each.order, []).append(each)
        per_pair = [mean_exact([occupation_bias(each) for each in orders.values()]) for orders in groups.values()]
        theirs.append(float(mean_exact(per_pair)))
    return list(found.values()), theirs


# ---- Sensitivity and association


@check("delta, signed and absolute change; both rules", "exact fractions")
def sensitivity(rng: np.random.Generator) -> Pair:
    pairs = [(Fraction(int(a), 1000), Fraction(int(b), 1000)) for a, b in rng.integers(-30, 31, (8, 2))]
    kept = [(a, b) for a, b in pairs if abs(a) >= Fraction(5, 1000)]
    ours: list[float | None] = []
    theirs: list[float | None] = []
    for rule in ("mean_of_ratios", "ratio_of_means"):
        columns_ = ([float(each[side]) for each in pairs] for side in (0, 1))
        found = scores.feature_sensitivity(*columns_, aggregate=rule)
        ours += [found.delta, found.signed_change, found.abs_change]
        before, after = (sum((each[side] for each in kept), Fraction(0)) for side in (0, 1))
        if not kept or (rule == "ratio_of_means" and abs(before) < Fraction(1, 10**6)):
            ours[-3] = value = None  # the sum of floats is not exactly 0 where that of fractions is
        elif rule == "mean_of_ratios":
            value = float(sum(100 * abs((b - a) / a) for a, b in kept) / len(kept))
        else:
            value = float(100 * abs((after - before) / before))
        changes = [b - a for a, b in pairs]
        theirs += [value, float(sum(changes) / len(pairs)), float(sum(map(abs, changes)) / len(pairs))]
    return ours, theirs


@check("Pearson r, Spearman rho, Kendall tau-b, ranks", "scipy")
def association(rng: np.random.Generator) -> Pair:
    n = int(rng.integers(3, 60))
    x, y = np.round(rng.normal(size=(2, n)), int(rng.integers(0, 4)))
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return [scores.pearson(x, y), scores.kendall(x, y)], [None, None]
    theirs = [float(each(x, y).statistic) for each in (stats.pearsonr, stats.spearmanr, stats.kendalltau)]
    ours = [scores.pearson(x, y), scores.spearman(x, y), scores.kendall(x, y)]
    return [*ours, *scores.ranks(x)], [*theirs, *stats.rankdata(x)]


@check("paired difference: p-value", "loop over resamples")
def paired(rng: np.random.Generator) -> Pair:
    one, two = np.round(rng.normal([[0.3], [0.0]], 0.5, (2, 99)), 1)
    found = scores.paired_difference(float(one.mean()), float(two.mean()), one, two)
    differences = [a - b for a, b in zip(one, two, strict=True)]
    tail = min(sum(each <= 0 for each in differences), sum(each >= 0 for each in differences))
    return [found.p_value], [min(1.0, 2 * (tail + 1) / 100)]


# ---- Printed tables


@check("Pearson r of Acc_b and delta, dual encoders", "Hirota et al.: 0.54", tolerance=0.01, inputs=None)
def published_r(rng: np.random.Generator) -> Pair:  # noqa: ARG001
    accuracy = {
        (r["benchmark"], r["feature"]): float(r["accuracy_percent"])
        for r in rows("spurious_accuracy")
        if r["backbone"] == "convnext_base"
    }
    table = rows("delta_maxskew")
    x = [accuracy[r["benchmark"], r["feature"]] for r in table]
    return [scores.pearson(x, [float(r["delta_percent"]) for r in table])], [0.54]


@check(
    "MaxSkew@5, @10 under a random ranking, 10 + 10 images",
    "Hall et al., 3,000 relabellings",
    tolerance=0.0025,  # four standard errors: 0.0307 and 0.0260 over the root of 3,000
    inputs=None,
)
def published_null(rng: np.random.Generator) -> Pair:  # noqa: ARG001
    printed = rows("visogender_random_split")[0]
    theirs = [float(printed[f"maxskew_at_{k}"]) for k in (5, 10)]
    return [scores.expected_max_skew([10, 10], k, [0.5, 0.5]) for k in (5, 10)], theirs


def differences(pair: Pair) -> Iterator[float]:
    """Of aligned values, relative where they are above 1; infinite where only one side has a value."""
    for ours, theirs in zip(*pair, strict=True):
        if ours is None or theirs is None:
            yield 0.0 if ours is theirs else math.inf
        else:
            yield abs(ours - theirs) / max(1.0, abs(theirs))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=200, help="random inputs for every score")
    inputs = parser.parse_args().inputs
    print(f"NumPy {np.__version__}, scipy {scipy.__version__}, fairlearn {fairlearn.__version__}\n")
    print("| score | reference | inputs | numbers | largest difference | tolerance |")
    print("|---|---|---|---|---|---|")
    failed = 0
    for number, each in enumerate(CHECKS):
        count = 1 if each.inputs is None else each.inputs * inputs
        found = [list(differences(each.measure(np.random.default_rng([number, i])))) for i in range(count)]
        largest, numbers = max(map(max, found)), sum(map(len, found))
        failed += largest > each.tolerance
        bad = " **above**" if largest > each.tolerance else ""
        print(f"| {each.score} | {each.reference} | {count} | {numbers} | {largest:.1e}{bad} | {each.tolerance:.0e} |")
    print(f"\n{len(CHECKS)} comparisons, {failed} above their tolerance")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Sensitivity, association, and the difference of two models."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from checks import Checks, Pair
from scipy import stats

from truegap import scores

CHECKS = Checks()


@CHECKS.add("delta, signed and absolute change; both rules", "exact fractions")
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


@CHECKS.add("Pearson r, Spearman rho, Kendall tau-b, ranks", "scipy")
def association(rng: np.random.Generator) -> Pair:
    n = int(rng.integers(3, 60))
    x, y = np.round(rng.normal(size=(2, n)), int(rng.integers(0, 4)))
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return [scores.pearson(x, y), scores.kendall(x, y)], [None, None]
    theirs = [float(each(x, y).statistic) for each in (stats.pearsonr, stats.spearmanr, stats.kendalltau)]
    ours = [scores.pearson(x, y), scores.spearman(x, y), scores.kendall(x, y)]
    return [*ours, *scores.ranks(x)], [*theirs, *stats.rankdata(x)]


@CHECKS.add("paired difference: p-value", "loop over resamples")
def paired(rng: np.random.Generator) -> Pair:
    one, two = np.round(rng.normal([[0.3], [0.0]], 0.5, (2, 99)), 1)
    found = scores.paired_difference(float(one.mean()), float(two.mean()), one, two)
    differences = [a - b for a, b in zip(one, two, strict=True)]
    tail = min(sum(each <= 0 for each in differences), sum(each >= 0 for each in differences))
    return [found.p_value], [min(1.0, 2 * (tail + 1) / 100)]

"""Tests, intervals and power: what turns scores into statements."""

from __future__ import annotations

import itertools
import math
import statistics

import numpy as np
from checks import Checks, Pair
from scipy import stats

from truegap import scores

CHECKS = Checks()


@CHECKS.add("permutation p-value", "scipy permutation_test, all relabellings")
def permutation(rng: np.random.Generator) -> Pair:
    women, men = rng.random(3), rng.random(int(rng.integers(2, 5)))
    test = stats.permutation_test((men, women), lambda a, b: a.mean() - b.mean(), n_resamples=np.inf, vectorized=False)
    n = len(test.null_distribution)
    # Ours counts the observed labelling once more; scipy's two-sided p-value doubles a tail, ours takes both.
    both = np.sum(np.abs(test.null_distribution) >= abs(test.statistic) - 1e-14)
    return [scores.p_value(float(men.mean() - women.mean()), test.null_distribution)], [(1 + both) / (1 + n)]


@CHECKS.add("Holm", "closed testing: Bonferroni on every subset")
def holm(rng: np.random.Generator) -> Pair:
    p = np.round(rng.random(int(rng.integers(1, 8))) ** 3, 2)
    subsets = [s for size in range(1, len(p) + 1) for s in itertools.combinations(range(len(p)), size)]
    closed = [max(min(1.0, len(s) * min(p[list(s)])) for s in subsets if i in s) for i in range(len(p))]
    return scores.holm(p), closed


@CHECKS.add("interval, percentile", "statistics.quantiles")
def percentile(rng: np.random.Generator) -> Pair:
    values = rng.normal(size=int(rng.integers(5, 300))).tolist()
    cuts = statistics.quantiles(values, n=40, method="inclusive")
    return scores.interval(values, 0.0), [cuts[0], cuts[-1]]


@CHECKS.add("interval, BCa", "scipy bootstrap on the same resamples")
def bca(rng: np.random.Generator) -> Pair:
    data = rng.exponential(size=int(rng.integers(8, 40)))
    drawn = rng.choice(data, size=(400, len(data))).mean(axis=1)
    left_out = [np.delete(data, place).mean() for place in range(len(data))]
    earlier = stats.bootstrap((data,), np.mean, n_resamples=9, method="percentile", rng=0)
    earlier.bootstrap_distribution = drawn
    found = stats.bootstrap((data,), np.mean, n_resamples=0, bootstrap_result=earlier, method="BCa")
    ours = scores.interval(drawn, float(data.mean()), method="bca", jackknife=left_out)
    return ours, [found.confidence_interval.low, found.confidence_interval.high]


@CHECKS.add("minimal detectable gap, images needed", "power of a z-test, scipy norm")
def power(rng: np.random.Generator) -> Pair:
    sd, n = rng.uniform(0.05, 0.5, 2), rng.integers(5, 5000, 2)
    gap = scores.minimal_detectable_gap(*sd, *n)

    def reached(gap: float, variance: float) -> float:
        return float(stats.norm.sf(stats.norm.isf(0.025) - gap / math.sqrt(variance)))

    needed = scores.images_needed(gap, *sd)
    enough = [reached(gap, 2 * (sd**2).sum() / count) >= 0.8 for count in (needed, needed - 1)]
    return [reached(gap, float((sd**2 / n).sum())), *map(float, enough)], [0.8, 1.0, 0.0]

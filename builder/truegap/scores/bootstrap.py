"""Bootstrap over images within group: how sure is a score?

A resample draws, within every group, as many images as there are, with replacement. It is kept as a weight per image
(how often it was drawn), so that a score is recomputed by weighted sums and nothing is gathered. The same seed draws
the same images: two scores on the same images are compared in pairs by giving both the same seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from ._check import Floats, Ints, ScoreError, confident, factor, one_of, same_length, seeded, whole

METHODS = ("percentile", "bca")
CHUNK = 256
"""Resamples that are drawn at a time; a constant, so that what is drawn depends on the seed alone."""

_NORMAL = NormalDist()


def resampled_images(groups: Ints, n_resamples: int, seed: int) -> Iterator[Ints]:
    """Which image stands in each place of each resample, in chunks of at most 256 resamples.

    Args:
        groups: `(images,)` code of each image's group (or stratum).
        n_resamples: How many resamples.
        seed: The same seed gives the same images.

    Yields:
        `(resamples, images)` indices; the image in a place is always of that place's group.

    Raises:
        ScoreError: A number of resamples or a seed that is negative, absurd or not whole.
    """
    whole(n_resamples, "n_resamples")
    seeded(seed)
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    for start in range(0, n_resamples, CHUNK):
        generator = np.random.default_rng([seed, start])
        rows = min(CHUNK, n_resamples - start)
        drawn = np.empty((rows, len(groups)), dtype=np.int64)
        for member in members:
            drawn[:, member] = member.take(generator.integers(len(member), size=(rows, len(member))))
        yield drawn


def bootstrap_weights(
    groups: npt.ArrayLike,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
    clusters: Sequence[Any] | npt.NDArray[Any] | None = None,
) -> Iterator[Floats]:
    """How often each image was drawn, in chunks of at most 256 resamples.

    Args:
        groups: `(images,)` integer code of each image's group; the weights of a group always sum to its size.
        n_resamples: How many resamples.
        seed: The same seed gives the same weights.
        clusters: `(images,)` what the image belongs to, such as its photographer: all images of a cluster are drawn
            together, among the clusters whose images are of the same groups. Then only the number of clusters is kept,
            not that of images.

    Yields:
        `(resamples, images)` weights, whole numbers as float64, ready for a matrix product.

    Raises:
        ScoreError: A number of resamples or a seed that is negative, absurd or not whole; clusters not aligned.

    >>> weights = next(bootstrap_weights([0, 0, 1, 1, 1], n_resamples=4))
    >>> weights[:, :2].sum(axis=1).tolist(), weights[:, 2:].sum(axis=1).tolist()
    ([2.0, 2.0, 2.0, 2.0], [3.0, 3.0, 3.0, 3.0])
    """
    coded = np.asarray(groups, dtype=np.int64)
    if clusters is not None:
        same_length(len(coded), clusters, "clusters", "groups")
        of, names = factor(clusters, "clusters")
        for weights in bootstrap_weights(cluster_strata(coded, of, len(names)), n_resamples=n_resamples, seed=seed):
            yield weights[:, of]
        return
    images = len(coded)
    for drawn in resampled_images(coded, n_resamples, seed):
        flat = (drawn + np.arange(len(drawn))[:, None] * images).ravel()
        yield np.bincount(flat, minlength=drawn.size).reshape(drawn.shape).astype(np.float64)


def cluster_strata(groups: Ints, clusters: Ints, n: int) -> Ints:
    """`(n,)` code of each cluster's stratum: which groups its images are of."""
    holds = np.zeros((n, int(groups.max(initial=0)) + 1), dtype=bool)
    holds[clusters, groups] = True
    # Turned round, so that clusters of the first group come first, as its images do without clusters.
    return np.unique(~holds, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def interval(
    resampled: npt.ArrayLike,
    observed: float,
    *,
    confidence: float = 0.95,
    method: str = "percentile",
    jackknife: npt.ArrayLike | None = None,
) -> tuple[float, float]:
    """A bootstrap interval for one score.

    Args:
        resampled: `(resamples,)` the score on every resample.
        observed: The score on the data.
        confidence: Nominal coverage, in (0, 1).
        method: `percentile`, or `bca` (bias-corrected and accelerated; Efron 1987, equation 2.3).
        jackknife: The score with each image left out in turn, from which `bca` takes its acceleration
            `a = sum (m - j)^3 / (6 (sum (m - j)^2)^(3/2))`, m the mean of all j, over the images of all groups. Without
            it the acceleration is 0 and only the bias is corrected.

    Returns:
        Lower and upper end, in the score's own unit.

    Raises:
        ScoreError: No resample, one that is not finite, an unknown method, or a confidence outside (0, 1).

    >>> interval(range(101), 50.0, confidence=0.5)
    (25.0, 75.0)
    """
    one_of(method, "method", METHODS)
    confident(confidence)
    values = np.sort(np.asarray(resampled, dtype=np.float64))
    if len(values) == 0:
        raise ScoreError("n_resamples=0 gives no interval; use 1000")
    # NaN is sorted to the end.
    if not (math.isfinite(values[0]) and math.isfinite(values[-1])):
        raise ScoreError("resampled: a resample's score is not finite; leave out resamples without a score")
    tails = ((1 - confidence) / 2, (1 + confidence) / 2)
    if method == "bca" and values[0] < values[-1]:
        tails = _adjusted(tails, values, observed, jackknife)
    low, high = np.quantile(values, tails)
    return float(low), float(high)


def _adjusted(
    tails: tuple[float, float], values: Floats, observed: float, jackknife: npt.ArrayLike | None
) -> tuple[float, float]:
    """The percentiles that correct the bias (share of resamples below the score) and the skew (acceleration)."""
    below = (np.sum(values < observed) + np.sum(values <= observed)) / (2 * len(values))
    # A score outside all of its resamples has no finite correction: half a resample is the least that can be seen.
    edge = 0.5 / len(values)
    bias = _NORMAL.inv_cdf(min(max(float(below), edge), 1 - edge))
    acceleration = 0.0
    if jackknife is not None:
        left_out = np.asarray(jackknife, dtype=np.float64)
        spread = left_out.mean() - left_out
        square = float(np.sum(spread**2))
        acceleration = float(np.sum(spread**3)) / (6 * square**1.5) if square > 0 else 0.0

    def move(tail: float) -> float:
        shifted = bias + _NORMAL.inv_cdf(tail)
        return _NORMAL.cdf(bias + shifted / (1 - acceleration * shifted))

    low, high = (move(tail) for tail in tails)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else tails

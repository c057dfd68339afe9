"""Top-k counts on bootstrap resamples, without ranking again.

The ranking of a query does not change when images are drawn more or less often, so a resample is a weight for every
image, and its top k ends where the cumulative weight in rank order reaches k. All queries and resamples go down their
rankings together, one rank at a time, each taking what its image weighs until it has k. Weights stand image by image,
resample beside resample, so that a query's image gives a whole row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._check import Ints
from .bootstrap import resampled_images

RANKS = 32
"""Ranks that are taken before it is asked whether every query has its k."""
QUERIES = 256
"""Queries that go together: enough to share the calls, few enough to stay in the processor's cache."""

Weights = npt.NDArray[Any]


def resampled_counts(
    order: Ints, group: Ints, draws: Sequence[Ints], k: Sequence[int], groups: int, n_resamples: int, seed: int
) -> Ints:
    """`(resamples, draws, queries, k, groups)` counts in the top k.

    A resample fills every image's place with an image of the same group; a draw is the images in its places. So all
    draws of a resample share what they share in the data, and each holds as many images of every group as before.
    """
    queries, images = order.shape
    counts = np.empty((n_resamples, len(draws), queries, len(k), groups), dtype=np.int32)
    small = max(k) <= np.iinfo(np.int16).max
    start = 0
    for drawn in resampled_images(group, n_resamples, seed):
        rows = slice(start, start + len(drawn))
        first: dict[bytes, int] = {}
        for number, draw in enumerate(draws):
            same = first.setdefault(draw.tobytes(), number)
            if same < number:  # balanced groups give the same draw every time
                counts[rows, number] = counts[rows, same]
                continue
            weights = _weights(drawn[:, draw], images, np.int16 if small else np.int32)
            for begin in range(0, queries, QUERIES):
                some = slice(begin, begin + QUERIES)
                for place, cut in enumerate(k):
                    counts[rows, number, some, place] = _cut(order[some], weights, group, groups, cut)
        start = rows.stop
    return counts  # type: ignore[return-value]


def _weights(drawn: Ints, images: int, dtype: npt.DTypeLike) -> Weights:
    """`(images, resamples)` how often each image was drawn."""
    weights = np.empty((len(drawn), images), dtype=dtype)
    for resample, places in enumerate(drawn):
        weights[resample] = np.bincount(places, minlength=images)
    return np.ascontiguousarray(weights.T)


def _cut(ranked: Ints, weights: Weights, group: Ints, groups: int, k: int) -> Weights:
    """`(resamples, queries, groups)` weight of each group up to where the cumulative weight reaches k."""
    missing = np.full((len(ranked), weights.shape[1]), k, dtype=weights.dtype)
    found = np.zeros((groups, *missing.shape), dtype=weights.dtype)
    taken, own = np.empty_like(missing), np.empty_like(missing)
    for start in range(0, ranked.shape[1], RANKS):
        if not missing.any():
            break
        ranks = np.ascontiguousarray(ranked[:, start : start + RANKS].T)
        belongs = [(group[ranks] == code).astype(weights.dtype)[..., None] for code in range(1, groups)]
        for rank, images in enumerate(ranks):
            # Every mode but the usual one, which checks the indices, writes straight into `out`.
            weights.take(images, axis=0, out=taken, mode="clip")
            np.minimum(taken, missing, out=taken)
            missing -= taken
            for code, of in enumerate(belongs, 1):
                found[code] += np.multiply(taken, of[rank], out=own)
    found[0] = k - found[1:].sum(axis=0)
    return found.T

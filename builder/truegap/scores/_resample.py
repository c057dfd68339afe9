"""Top-k counts on bootstrap resamples, without ranking again.

The ranking of a query does not change when images are drawn more or less often, so a resample is a weight for every
image, and its top k ends where the cumulative weight in rank order reaches k. Weights stand image by image, resample
beside resample: bringing them into rank order copies whole rows, and their sums run over contiguous memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ._check import Floats, Ints
from .bootstrap import resampled_images

BLOCK = 32
"""Ranks that are summed before the exact place of the cut is sought."""

Weights = npt.NDArray[np.int16]
Running = npt.NDArray[np.float32]


def resampled_counts(
    order: Ints, group: Ints, draws: Sequence[Ints], k: Sequence[int], groups: int, n_resamples: int, seed: int
) -> Ints:
    """`(resamples, draws, queries, k, groups)` counts in the top k.

    A resample fills every image's place with an image of the same group; a draw is the images in its places. So all
    draws of a resample share what they share in the data, and each holds as many images of every group as before.
    """
    queries, images = order.shape
    counts = np.empty((n_resamples, len(draws), queries, len(k), groups), dtype=np.int32)
    start = 0
    for drawn in resampled_images(group, n_resamples, seed):
        rows = slice(start, start + len(drawn))
        for number, draw in enumerate(draws):
            weights = _weights(drawn[:, draw], images)
            by_group = [weights * (group == code)[:, None].astype(np.int16) for code in range(groups)]
            expected = _expected_weight(group, draw)
            for query in range(queries):
                counts[rows, number, query] = _cut(order[query], by_group, expected, k)
        start = rows.stop
    return counts  # type: ignore[return-value]


def _weights(drawn: Ints, images: int) -> Weights:
    """`(images, resamples)` how often each image was drawn."""
    weights = np.empty((len(drawn), images), dtype=np.int16)
    for resample, places in enumerate(drawn):
        weights[resample] = np.bincount(places, minlength=images)
    return np.ascontiguousarray(weights.T)


def _expected_weight(group: Ints, draw: Ints) -> Floats:
    """Each image's mean weight: its group's share that the draw holds."""
    sizes = np.bincount(group)
    return np.asarray((np.bincount(group[draw], minlength=len(sizes)) / np.maximum(sizes, 1))[group])


def _cut(ranked: Ints, by_group: Sequence[Weights], expected: Floats, k: Sequence[int]) -> Ints:
    """`(resamples, k, groups)` weight of each group before the cumulative weight passes k."""
    # Six standard deviations beyond the expected place nearly always suffice; else all ranks are taken.
    reached = int(np.searchsorted(np.cumsum(expected[ranked]), max(k) + 6 * max(k) ** 0.5 + BLOCK))
    for ranks in (min(reached + 1, len(ranked)), len(ranked)):
        padded = -(-ranks // BLOCK) * BLOCK
        rows = [_ranked_rows(weights, ranked[:ranks], padded) for weights in by_group]
        blocks = [_running(row.reshape(-1, BLOCK, row.shape[1]).sum(axis=1, dtype=np.int16)) for row in rows]
        total = sum(blocks[1:], blocks[0])
        if total[-1].min() >= max(k):
            break
    return np.stack([_at(rows, blocks, total, each) for each in k], axis=1)


def _ranked_rows(weights: Weights, ranked: Ints, padded: int) -> Weights:
    rows = np.zeros((padded, weights.shape[1]), dtype=np.int16)
    np.take(weights, ranked, axis=0, out=rows[: len(ranked)])
    return rows


def _running(values: Weights) -> Running:
    """Cumulative sums down the first axis: for few rows a matrix product is quicker, and exact below 2^24."""
    return np.tri(len(values), dtype=np.float32) @ values.astype(np.float32)


def _at(rows: Sequence[Weights], blocks: Sequence[Running], total: Running, k: int) -> Ints:
    """`(resamples, groups)` counts at one k: the blocks before the cut, and the part of its own block."""
    resample = np.arange(total.shape[1])
    block = (total < k).sum(axis=0)
    before = np.maximum(block - 1, 0)
    whole = [np.where(block > 0, each[before, resample], 0) for each in blocks]
    missing = k - sum(whole[1:], whole[0])
    inside = block * BLOCK + np.arange(BLOCK)[:, None]
    weights = [row[inside, resample] for row in rows]
    weight = sum(weights[1:], weights[0])
    taken = np.clip(missing - _running(weight) + weight, 0, weight)
    # An image has one group: what is taken of it counts for that one.
    return np.stack([each + (taken * (of > 0)).sum(axis=0) for each, of in zip(whole, weights, strict=True)], axis=-1)

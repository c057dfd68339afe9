"""Sums over the items of pairs of occupations, what follows from them, and both on resampled images."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ._check import Floats, Ints
from .bootstrap import bootstrap_weights, cluster_strata, interval

Sums = tuple[Floats, Floats, Floats]

LONE = 0.01
"""Share of images that may be the only one of their occupation and gender, and so cannot be resampled."""


@dataclass(frozen=True, slots=True)
class Conventions:
    """The options that decide how a pair's scores are made; see `counterfactual_bias`."""

    ipss: str
    difference: str
    delta_acc: str


@dataclass(frozen=True, slots=True)
class PairScores:
    """Scores of every pair, `(..., pairs)`; a leading axis holds resamples."""

    acc: Floats
    bias: Floats
    ipss: Floats
    delta_acc: Floats | None

    def means(self) -> dict[str, Floats]:
        """`(...)` means over the pairs; a pair that a resample leaves without items counts in none of them."""
        columns = {"acc": self.acc, "b_ovl": np.abs(self.bias), "ipss": self.ipss}
        if self.delta_acc is not None:
            columns["delta_acc"] = self.delta_acc
        return {name: _mean(column) for name, column in columns.items()}


def _sum(place: Ints, values: Floats, size: int) -> Floats:
    return np.asarray(np.bincount(place, weights=values, minlength=size), dtype=np.float64)


def _mean(column: Floats) -> Floats:
    known = np.isfinite(column)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, column, 0.0).sum(axis=-1) / known.sum(axis=-1))


@dataclass(frozen=True, slots=True)
class Items:
    """What is summed over the items of every cell: a pair, an order, and a side (0: its first occupation).

    Attributes:
        cell: `(rows,)` code of each row's cell, in the order of `shape`.
        signed: `(rows,)` gap of an item of a man, minus the gap of an item of a woman.
        right: `(rows,)` whether the base answer is right.
        shape: Pairs, orders and sides.
    """

    cell: Ints
    signed: Floats
    right: Floats
    shape: tuple[int, int, int]

    def sums(self) -> Sums:
        """`(pairs, orders, sides)` number of items, sum of signed gaps, and number right."""
        size = math.prod(self.shape)
        columns = (np.ones_like(self.signed), self.signed, self.right)
        n, signed, right = (_sum(self.cell, each, size).reshape(self.shape) for each in columns)
        return n, signed, right

    def resampled(self, weights: Floats, images: Ints, occupations: Ints) -> Sums:
        """`(resamples, pairs, orders, sides)` of the same.

        Args:
            weights: `(resamples, images)` how often each image was drawn.
            images: `(rows,)` code of each row's image.
            occupations: `(rows,)` code of each row's occupation, of which each cell has one: its images and cells meet
                in one small matrix product.
        """
        size = math.prod(self.shape)
        found = np.zeros((3, len(weights), size))
        order = np.argsort(occupations, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(occupations[order])) + 1):
            shown, image = np.unique(images[rows], return_inverse=True)
            cells, cell = np.unique(self.cell[rows], return_inverse=True)
            drawn = weights[:, shown]
            place = image * len(cells) + cell
            columns = (np.ones(len(rows)), self.signed[rows], self.right[rows])
            for total, column in zip(found, columns, strict=True):
                table = _sum(place, column, len(shown) * len(cells))
                total[:, cells] = drawn @ table.reshape(len(shown), len(cells))
        n, signed, right = found.reshape(3, len(weights), *self.shape)
        return n, signed, right


def pair_scores(n: Floats, signed: Floats, right: Floats, conventions: Conventions) -> PairScores:
    """The scores of every pair from the sums over its items; NaN where a cell has none."""
    with np.errstate(invalid="ignore", divide="ignore"):
        bias, each_acc = signed / n, right / n
        if conventions.difference == "probability":
            b = (bias[..., 0] - bias[..., 1]) / 2
        else:
            b = (signed[..., 0] - signed[..., 1]) / n.sum(axis=-1)
            b = np.where((n == 0).any(axis=-1), np.nan, b)
    acc = each_acc.mean(axis=-1)
    merged_acc, merged_b = acc.mean(axis=-1), b.mean(axis=-1)
    if conventions.ipss == "per_order":
        ipss = (acc * (1 - np.abs(b))).mean(axis=-1)
    else:
        ipss = merged_acc * (1 - np.abs(merged_b))
    change = None
    if acc.shape[-1] == 2:  # noqa: PLR2004  both orders of the options
        by_occupation = np.abs(each_acc[..., 0, :] - each_acc[..., 1, :]).mean(axis=-1)
        change = np.abs(acc[..., 0] - acc[..., 1]) if conventions.delta_acc == "pair" else by_occupation
    return PairScores(merged_acc, merged_b, ipss, change)


def resampled_means(
    items: Items,
    conventions: Conventions,
    *,
    images: Ints,
    occupations: Ints,
    men: npt.NDArray[np.bool_],
    n_resamples: int,
    seed: int,
) -> Mapping[str, Floats] | None:
    """`(resamples,)` means over pairs on resampled images.

    Absolute values grow with noise, in a resample once more than in the data: as for MaxSkew, the resamples are moved
    so that their mean is the observed value.

    Args:
        items: What is summed.
        conventions: How scores are made of it.
        images: `(rows,)` code of each row's image; all rows of an image are drawn together, among the images of the
            same occupation and base gender.
        occupations: `(rows,)` code of each row's occupation.
        men: `(rows,)` whether the base image shows a man.
        n_resamples: How many.
        seed: Of the resamples.

    Returns:
        None where more than one image in a hundred is alone in its group, or no resample has items of a whole pair; NaN
        where a resample has none.
    """
    strata = cluster_strata(occupations * 2 + men, images, int(images.max()) + 1)
    if (np.bincount(strata) == 1).sum() > LONE * len(strata):
        return None
    resampled: dict[str, list[Floats]] = {}
    for weights in bootstrap_weights(strata, n_resamples=n_resamples, seed=seed):
        means = pair_scores(*items.resampled(weights, images, occupations), conventions).means()
        for name, values in means.items():
            resampled.setdefault(name, []).append(values)
    observed = pair_scores(*items.sums(), conventions).means()
    found = {}
    for name, parts in resampled.items():
        values = np.concatenate(parts)
        if not np.isfinite(values).any():
            return None
        found[name] = np.asarray(values + (float(observed[name]) - np.nanmean(values)))
    return found


def intervals(
    resampled: Mapping[str, Floats], observed: Mapping[str, Floats], confidence: float
) -> Mapping[str, tuple[float, float]]:
    """Percentile intervals of the means over pairs.

    Args:
        resampled: As `resampled_means` gives them.
        observed: The means.
        confidence: Nominal coverage.
    """
    found = {}
    for name, values in resampled.items():
        low, high = interval(values[np.isfinite(values)], float(observed[name]), confidence=confidence)
        found[name] = (max(low, 0.0), min(high, 1.0))
    return found

"""Ranking once, then counting: what every retrieval score is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._check import Floats, Ints, ScoreError, shown


def rank(similarities: npt.NDArray[Any]) -> Ints:
    """`(queries, images)` indices of the images from the most similar to the least; ties by image order."""
    order = np.empty(similarities.shape, dtype=np.int64)
    # Most similarities come from float32 models: then value and place fit one integer, whose sort is fast and stable.
    narrow = similarities.astype(np.float32)
    exact = similarities.dtype == np.float32 or bool((narrow == similarities).all())
    places = np.arange(similarities.shape[1])
    for query, row in enumerate(similarities):
        if exact:
            keys = _descending(narrow[query])
            keys |= places
            keys.sort()
            np.bitwise_and(keys, 0xFFFFFFFF, out=order[query])
        else:
            order[query] = _argsort(-row)
    return order


def _descending(row: npt.NDArray[np.float32]) -> Ints:
    """Integers whose upper half falls where the floats rise: their bits, those of negative floats turned round."""
    bits = (row + np.float32(0)).view(np.int32)  # adding 0 makes -0 the same as 0
    rising = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    return (~rising).astype(np.int64) << 32


def _argsort(values: Floats) -> Ints:
    order = np.argsort(values)
    ranked = values[order]
    # The quick sort leaves equal values in any order; it is redone only where there are some.
    return np.argsort(values, kind="stable") if (ranked[1:] == ranked[:-1]).any() else order


def check_k(k: int | Sequence[int]) -> tuple[int, ...]:
    """The cuts as a tuple.

    Raises:
        ScoreError: None, or one that is no positive whole number.
    """
    cuts = tuple(k) if hasattr(k, "__iter__") else (k,)
    for cut in cuts:
        if not isinstance(cut, int | np.integer) or isinstance(cut, bool) or cut < 1:
            raise ScoreError(f"k={shown(cut)}; a ranking is cut after a whole number of images, at least 1")
    if not cuts or len(set(cuts)) < len(cuts):
        raise ScoreError(f"k={list(cuts)}; give at least one and none twice")
    return tuple(int(cut) for cut in cuts)


def check_draws(draws: Sequence[npt.ArrayLike] | None, images: int, k: Sequence[int]) -> list[Ints]:
    """The draws as ascending index arrays; one draw of everything where none are given.

    Raises:
        ScoreError: A draw is no set of places among the images, or smaller than a k.
    """
    if draws is None:
        checked = [np.arange(images, dtype=np.int64)]
    else:
        checked = [np.unique(np.asarray(draw, dtype=np.int64)) for draw in draws]
        for number, (draw, found) in enumerate(zip(draws, checked, strict=True)):
            if len(found) == 0 or len(found) != np.asarray(draw).size or found[0] < 0 or found[-1] >= images:
                raise ScoreError(f"draw {number}: not a set of places among {images} images; use balanced_draws")
    if not checked:
        raise ScoreError("no draws; give at least one, or None to rank every image")
    smallest = min(len(draw) for draw in checked)
    above = [cut for cut in k if cut > smallest]
    if above:
        raise ScoreError(f"k={above[0]} is above the {smallest} images that are ranked; use a smaller k")
    return checked


class DivergenceTable:
    """NDKL of rankings of one length by weighted sums of tabulated `c ln c`.

    NDKL = sum_i KL(D_i || D) / log2(i + 1) / sum_i 1 / log2(i + 1) (Geyik et al. 2019, equation 4), where
    KL(D_i || D) = sum_g c_g ln c_g / i - ln i - sum_g c_g ln t_g / i for counts c_g in the first i and shares t_g.
    """

    def __init__(self, length: int, target: Floats) -> None:
        places = np.arange(1, length + 1, dtype=np.float64)
        discount = 1 / np.log2(places + 1)
        self._table = np.zeros(length + 1)
        self._table[1:] = places * np.log(places)
        self._per_place = discount / places
        self._constant = float(discount @ np.log(places))
        self._total = float(discount.sum())
        self._log_target = np.log(target)
        if (self._log_target == self._log_target[0]).all():
            self._constant += float(self._log_target[0]) * self._total
            self._log_target = np.zeros_like(self._log_target)

    def __call__(self, cumulative: Sequence[Ints]) -> Floats:
        """`(queries,)` NDKL from each group's `(queries, places)` counts in the first 1, 2, ... places."""
        tabulated = self._table.take(cumulative[0])
        for counts in cumulative[1:]:
            tabulated += self._table.take(counts)
        value = tabulated @ self._per_place - self._constant
        for counts, log_target in zip(cumulative, self._log_target, strict=True):
            if log_target:
                value -= log_target * (counts @ self._per_place)
        return np.asarray(np.maximum(value / self._total, 0.0))

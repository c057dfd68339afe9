"""Counts of every group in the top k, and the scores that are functions of them alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from ._check import Floats, Ints, ScoreError

EMPTY = ("clip", "neg_inf")


@dataclass(frozen=True, slots=True)
class TopCounts:
    """How many images of every group the top k holds.

    Attributes:
        k: The cuts.
        groups: The groups, in the order of the last axis.
        counts: `(..., draws, queries, k, groups)`; a leading axis holds resamples.
        target: `(draws, groups)` desired shares.
        empty: What the skew of a group without an image in the top k is: `clip` (as if it had one) or `neg_inf`.
    """

    k: tuple[int, ...]
    groups: tuple[str, ...]
    counts: Ints
    target: Floats
    empty: str

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names that `values` knows."""
        kinds = [*(["bias"] if len(self.groups) == 2 else []), "max_skew", *(f"skew_{g}" for g in self.groups)]  # noqa: PLR2004
        return tuple(f"{kind}@{k}" for k in self.k for kind in kinds)

    def values(self, metric: str) -> Floats:
        """`(..., draws, queries)` values of `bias@k`, `max_skew@k` or `skew_<group>@k`.

        Raises:
            ScoreError: The metric is not one of `metrics`.
        """
        if metric not in self.metrics:
            raise ScoreError(f"{metric!r} was not measured; there are {', '.join(self.metrics)}")
        kind, k = metric.split("@")
        place = self.k.index(int(k))
        counts = self.counts[..., place, :]
        if kind == "bias":
            return np.asarray((counts[..., 1] - counts[..., 0]) / int(k))
        own = self.groups if kind == "max_skew" else (kind.removeprefix("skew_"),)
        skews = [self._skew(counts[..., code], int(k), self.target[:, code]) for code in map(self.groups.index, own)]
        return reduce(np.maximum, skews)

    def _skew(self, counts: Ints, k: int, target: Floats) -> Floats:
        """Skew of one group, looked up: resamples repeat the few counts that there can be."""
        known = log_ratio(np.arange(k + 1)[:, None], k, target, self.empty).ravel()
        # Indexing keeps the counts' layout in memory, as `take` does not: the last bit of a sum depends on it.
        return np.asarray(known[counts * len(target) + np.arange(len(target))[:, None]])

    def select(self, queries: Sequence[int]) -> TopCounts:
        """The same for some of the queries."""
        return replace(self, counts=self.counts[..., np.asarray(queries), :, :])


def log_ratio(counts: Ints, k: int, target: Floats, empty: str) -> Floats:
    """Skew: `ln(counts / k / target)`, with the convention for empty groups."""
    if empty == "clip":
        return np.asarray(np.log(np.maximum(counts, 1) / k / target))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(counts / k / target))

"""Do two lists go together? Pearson's r, Spearman's rho, Kendall's tau, and who moved between two rankings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ._check import Floats, ScoreError, same_length, vector


def _pair(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Two aligned lists.

    Raises:
        ScoreError: NaN, or lists that are not aligned.
    """
    x, y = vector(first, "first"), vector(second, "second")
    same_length(len(x), y, "second", "first")
    return x, y


def pearson(first: npt.ArrayLike, second: npt.ArrayLike) -> float | None:
    """Pearson's correlation, such as of Acc_b and delta over the cells of a table.

    Args:
        first: `(n,)` numbers.
        second: `(n,)` numbers.

    Returns:
        In [-1, 1]; None where either list is constant.

    Raises:
        ScoreError: NaN, or lists that are not aligned.

    >>> round(pearson([1, 2, 3], [1, 3, 2]), 6)
    0.5
    """
    x, y = _pair(first, second)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    x, y = x - x.mean(), y - y.mean()
    # Each is brought to length 1 before the product, which could otherwise fall below the smallest number.
    return float(np.clip((x / np.linalg.norm(x)) @ (y / np.linalg.norm(y)), -1.0, 1.0))


def ranks(values: npt.ArrayLike) -> Floats:
    """Ranks from 1 for the smallest; equal values share the mean of their ranks.

    >>> ranks([0.3, 0.1, 0.3]).tolist()
    [2.5, 1.0, 2.5]
    """
    array = vector(values, "values")
    _, place, sizes = np.unique(array, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    return np.asarray((last - (sizes - 1) / 2)[place])


def spearman(first: npt.ArrayLike, second: npt.ArrayLike) -> float | None:
    """Spearman's rho, in [-1, 1]: Pearson's correlation of the ranks; None where either list is constant.

    >>> round(spearman([1, 2, 3], [1, 8, 27]), 6)
    1.0
    """
    x, y = _pair(first, second)
    return pearson(ranks(x), ranks(y))


def kendall(first: npt.ArrayLike, second: npt.ArrayLike) -> float | None:
    """Kendall's tau-b, in [-1, 1]: concordant less discordant pairs, corrected for ties; None as for `pearson`.

    All pairs are compared: it is meant for lists of up to some thousands.

    >>> kendall([1, 2, 3, 4], [1, 3, 2, 4])
    0.6666666666666666
    """
    x, y = _pair(first, second)
    agreement, one, other = 0.0, 0.0, 0.0
    for place in range(1, len(x)):
        a, b = np.sign(x[:place] - x[place]), np.sign(y[:place] - y[place])
        agreement += float(a @ b)
        one += float(a @ a)
        other += float(b @ b)
    return agreement / (one * other) ** 0.5 if one and other else None


@dataclass(frozen=True, slots=True)
class Move:
    """One model's place before and after.

    Attributes:
        name: The model.
        before: Its rank on the original images, 1 for the smallest score; equal scores share a mean rank.
        after: Its rank on the perturbed images.
        moved: `after` - `before`.
    """

    name: str
    before: float
    after: float
    moved: float


@dataclass(frozen=True, slots=True)
class RankChange:
    """How a perturbation reorders models.

    Attributes:
        spearman: In [-1, 1], 1 where the order stays; None where all scores are equal.
        kendall: Likewise.
        moves: Every model, those that moved farthest first.
    """

    spearman: float | None
    kendall: float | None
    moves: tuple[Move, ...]


def rank_change(names: Sequence[str], original: npt.ArrayLike, perturbed: npt.ArrayLike) -> RankChange:
    """Rank correlation of the models' order on original and on perturbed images, and who moved.

    Args:
        names: `(models,)` names.
        original: `(models,)` absolute bias on the original images.
        perturbed: `(models,)` absolute bias on the perturbed images.

    Returns:
        A `RankChange`.

    Raises:
        ScoreError: NaN, or lists that are not aligned.

    >>> change = rank_change(["a", "b", "c"], [0.1, 0.2, 0.3], [0.1, 0.4, 0.3])
    >>> [(move.name, move.moved) for move in change.moves]
    [('b', 1.0), ('c', -1.0), ('a', 0.0)]
    """
    before, after = _pair(original, perturbed)
    same_length(len(before), names, "names", "original")
    if len(set(names)) < len(names):
        raise ScoreError("names: a model occurs twice; give every model its own name")
    places = zip(names, ranks(before), ranks(after), strict=True)
    moves = [Move(name, float(old), float(new), float(new - old)) for name, old, new in places]
    moves.sort(key=lambda move: -abs(move.moved))
    return RankChange(spearman(before, after), kendall(before, after), tuple(moves))

"""How far a perturbation that has nothing to do with gender moves a score (Hirota et al. 2025, section 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ._check import Floats, ScoreError, one_of, same_length, vector

AGGREGATES = ("mean_of_ratios", "ratio_of_means")


@dataclass(frozen=True, slots=True)
class Excluded:
    """A row that has no ratio, and why.

    Attributes:
        row: Its place in the input.
        original: Its original score.
        perturbed: Its perturbed score.
        reason: Why it was dropped from `delta`.
    """

    row: int
    original: float
    perturbed: float
    reason: str


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The change of a score.

    Attributes:
        delta: 100 x |original - perturbed| / |original|, in percent, at least 0, lower is better; None where no row
            can be divided.
        signed_change: Mean of perturbed - original over all rows, in the score's unit.
        abs_change: Mean of |perturbed - original| over all rows, in the score's unit; lower is better.
        reason: Why `delta` is None.
        per_row: The rows' own deltas in percent, None where excluded.
        excluded: Every row without a delta, with its reason.
        options: Every convention and its value.
        counts: Rows, rows kept, rows excluded.
    """

    delta: float | None
    signed_change: float
    abs_change: float
    reason: str | None
    per_row: tuple[float | None, ...]
    excluded: tuple[Excluded, ...]
    options: Mapping[str, Any]
    counts: Mapping[str, int]


def feature_sensitivity(
    references: npt.ArrayLike,
    predictions: npt.ArrayLike,
    *,
    aggregate: str = "mean_of_ratios",
    threshold: float | None = 0.005,
) -> Sensitivity:
    """Relative, signed and absolute change from original to perturbed scores.

    A row is one draw, or one cell of a table. Rows whose original score is nearer to 0 than `threshold` have no
    meaningful ratio: they are left out of `delta` and listed, and stay in the signed and the absolute change.

    Args:
        references: `(rows,)` scores on the original images.
        predictions: `(rows,)` scores on the perturbed images.
        aggregate: `mean_of_ratios` (mean over rows of each row's ratio) or `ratio_of_means` (ratio of the means over
            the kept rows).
        threshold: A row is left out where |original| is below it; 0.005 is what the published YGap tables follow (the
            smallest value kept is 0.0057, the largest dropped 0.0021). None or 0: only an original of 0 is left out,
            as for MaxSkew.

    Returns:
        A `Sensitivity`.

    Raises:
        ScoreError: A score is NaN, columns are not aligned, or an option is unknown.

    >>> result = feature_sensitivity([0.10, 0.20, 0.001], [0.11, 0.18, 0.003])
    >>> round(result.delta, 6), result.excluded[0].row, result.excluded[0].reason
    (10.0, 2, '|original| = 0.001 is below the threshold 0.005')
    """
    one_of(aggregate, "aggregate", AGGREGATES)
    original = vector(references, "references")
    perturbed = vector(predictions, "predictions")
    same_length(len(original), perturbed, "predictions", "references")
    limit = 0.0 if threshold is None else float(threshold)
    if not (math.isfinite(limit) and limit >= 0):
        raise ScoreError(f"threshold={threshold} is negative or not finite; use None for no threshold")

    small = (np.abs(original) < limit) | (original == 0)
    excluded = tuple(
        Excluded(int(row), float(original[row]), float(perturbed[row]), _reason(original[row], limit))
        for row in np.flatnonzero(small)
    )
    change = perturbed - original
    ratios = 100 * np.abs(change[~small]) / np.abs(original[~small])
    value, reason = _aggregate(original[~small], perturbed[~small], ratios, aggregate)
    per_row: list[float | None] = [None] * len(original)
    for row, ratio in zip(np.flatnonzero(~small), ratios, strict=True):
        per_row[row] = float(ratio)
    return Sensitivity(
        delta=value,
        signed_change=float(change.mean()),
        abs_change=float(np.abs(change).mean()),
        reason=reason,
        per_row=tuple(per_row),
        excluded=excluded,
        options={"aggregate": aggregate, "threshold": threshold},
        counts={"rows": len(original), "kept": int(np.sum(~small)), "excluded": len(excluded)},
    )


def _reason(original: float, threshold: float) -> str:
    return (
        "original is 0" if original == 0 else f"|original| = {abs(original):.3g} is below the threshold {threshold:g}"
    )


def _aggregate(original: Floats, perturbed: Floats, ratios: Floats, rule: str) -> tuple[float | None, str | None]:
    if len(original) == 0:
        return None, "every row's original score is too near 0"
    if rule == "mean_of_ratios":
        return float(ratios.mean()), None
    before, after = float(original.mean()), float(perturbed.mean())
    if before == 0:
        return None, "the mean of the original scores is 0"
    return 100 * abs(before - after) / abs(before), None


def composite(bias: float, delta: float, *, alpha: float = 0.01) -> float:
    """Hirota et al.'s composite of bias and sensitivity: `bias * (1 + alpha * delta)`.

    It hides which of the two is large: never show it without its parts.

    Args:
        bias: Absolute bias.
        delta: Mean sensitivity in percent.
        alpha: Weight of one percent, chosen by the user.

    Returns:
        At least `bias`; lower is better.

    Raises:
        ScoreError: One of them is negative or not finite.

    >>> composite(0.25, 100.0)
    0.5
    """
    for name, value in (("bias", bias), ("delta", delta), ("alpha", alpha)):
        if not (math.isfinite(value) and value >= 0):
            raise ScoreError(f"{name}={value}; give the absolute bias, a delta in percent, and a weight of at least 0")
    return bias * (1 + alpha * delta)


@dataclass(frozen=True, slots=True)
class WorstCase:
    """The largest absolute score over perturbations.

    Attributes:
        value: The largest |score|, at least that of the original; lower is better.
        config: Where it is: `original`, or a perturbation.
        increase: `value` less |original|, at least 0: how much a perturbation can add.
    """

    value: float
    config: str
    increase: float


def worst_case(original: float, perturbed: Mapping[str, float]) -> WorstCase:
    """The worst a score gets on images that differ in nothing that should matter, the original among them.

    It is a maximum, which noise makes larger the more perturbations there are: compare models on the same ones.

    Args:
        original: Score on the original images.
        perturbed: Score by perturbation.

    Returns:
        A `WorstCase`; of equal scores the first, the original before all others.

    Raises:
        ScoreError: A score is not a finite number.

    >>> worst_case(-0.2, {"color-weak": 0.1, "background-strong": 0.5})
    WorstCase(value=0.5, config='background-strong', increase=0.3)
    """
    scores = {"original": original} | {name: value for name, value in perturbed.items() if name != "original"}
    for name, value in scores.items():
        if not math.isfinite(value):
            raise ScoreError(f"perturbed: {name} is {value}; leave out what has no score")
    config = max(scores, key=lambda name: abs(scores[name]))
    return WorstCase(abs(scores[config]), config, abs(scores[config]) - abs(original))

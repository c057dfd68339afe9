"""Two scores on the same images: how far apart are they, and is that clear?

All of these take a score and its resamples (from the same seed on the same images), so that they serve every score.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ._check import Floats, ScoreError
from .bootstrap import interval
from .sensitivity import feature_sensitivity


@dataclass(frozen=True, slots=True)
class Difference:
    """A paired difference.

    Attributes:
        value: First score less the second, in their unit.
        ci_low: Lower end of its interval.
        ci_high: Upper end.
        p_value: Two-sided bootstrap p-value of no difference: twice the smaller share of resamples on one side of 0.
        clear: Whether the interval leaves out 0.
    """

    value: float
    ci_low: float
    ci_high: float
    p_value: float
    clear: bool


def paired_difference(
    first: float,
    second: float,
    first_resampled: npt.ArrayLike,
    second_resampled: npt.ArrayLike,
    *,
    confidence: float = 0.95,
) -> Difference:
    """Difference of two scores on the same resampled images.

    It compares two models, the two arms of a background swap (M with the other gender's background less M with the same
    gender's), or a delta with its placebo (what masking objects does beyond masking as much anywhere).

    Args:
        first: A score.
        second: Another, on the same images.
        first_resampled: `(resamples,)` the first score on every resample.
        second_resampled: `(resamples,)` the second score on the same resamples.
        confidence: Nominal coverage of the interval.

    Returns:
        A `Difference`.

    Raises:
        ScoreError: The resamples are not aligned, or none has both scores (NaN where one has none).

    >>> paired_difference(0.5, 0.2, [0.5, 0.6, 0.4], [0.2, 0.2, 0.2]).clear
    True
    """
    ones, others = _pairs(first_resampled, second_resampled)
    differences = ones - others
    low, high = interval(differences, first - second, confidence=confidence)
    smaller = min(int(np.sum(differences <= 0)), int(np.sum(differences >= 0)))
    probability = min(1.0, 2 * (1 + smaller) / (1 + len(differences)))
    return Difference(first - second, low, high, probability, not low <= 0 <= high)


@dataclass(frozen=True, slots=True)
class ScoreChange:
    """The change of one score from original to perturbed images.

    Attributes:
        delta: 100 x |original - perturbed| / |original|, in percent; None where the original is too near 0.
        delta_low: Lower end of its interval; 0 where the interval of the signed change holds 0.
        delta_high: Upper end.
        signed_change: perturbed - original, in the score's unit.
        signed_low: Lower end of its interval.
        signed_high: Upper end.
        abs_change: |perturbed - original|.
        reason: Why `delta` is None.
    """

    delta: float | None
    delta_low: float | None
    delta_high: float | None
    signed_change: float
    signed_low: float
    signed_high: float
    abs_change: float
    reason: str | None


def score_change(
    original: float,
    perturbed: float,
    original_resampled: npt.ArrayLike,
    perturbed_resampled: npt.ArrayLike,
    *,
    threshold: float | None = 0.005,
    confidence: float = 0.95,
) -> ScoreChange:
    """Sensitivity of one score with paired intervals, such as of YGap with `resampled_ygap`.

    Args:
        original: Score on the original images.
        perturbed: Score on the perturbed images.
        original_resampled: `(resamples,)` the first on every resample.
        perturbed_resampled: `(resamples,)` the second on the same resamples.
        threshold: Where |original| is below it there is no delta; None for only an original of 0.
        confidence: Nominal coverage of the intervals.

    Returns:
        A `ScoreChange`.

    Raises:
        ScoreError: The resamples are not aligned, or none has both scores (NaN where one has none).

    >>> change = score_change(0.4, 0.3, [0.4, 0.5], [0.3, 0.4])
    >>> round(change.delta, 6), round(change.signed_low, 6)
    (25.0, -0.1)
    """
    before, after = _pairs(original_resampled, perturbed_resampled)
    low, high = interval(after - before, perturbed - original, confidence=confidence)
    found = feature_sensitivity([original], [perturbed], threshold=threshold)
    delta_low = delta_high = None
    if found.delta is not None:
        ratios = 100 * _ratio(np.abs(after - before), np.abs(before))
        delta_low, delta_high = interval(ratios, found.delta, confidence=confidence)
        # A ratio of absolute values is never below 0: only the signed change says whether there is one.
        delta_low = 0.0 if low <= 0 <= high else delta_low
    reason = found.excluded[0].reason if found.excluded else None
    change = perturbed - original
    return ScoreChange(found.delta, delta_low, delta_high, change, low, high, abs(change), reason)


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Quotients; 0 of nothing is 0, something of nothing is as large as a number can be."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = part / whole
    largest = np.finfo(np.float64).max / 1000
    return np.asarray(np.clip(np.where(np.isnan(ratio), 0.0, ratio), -largest, largest))


@dataclass(frozen=True, slots=True)
class ContextGap:
    """What of a gap stays when nobody is in the picture.

    Attributes:
        gap: The score on images with the person removed, in the score's unit: 0 where the person makes the gap.
        gap_low: Lower end of its interval.
        gap_high: Upper end.
        share: `gap` / original score: 0 the person's, 1 the context's; None where the original is too near 0.
        share_low: Lower end of its interval.
        share_high: Upper end.
        reason: Why `share` is None.
    """

    gap: float
    gap_low: float
    gap_high: float
    share: float | None
    share_low: float | None
    share_high: float | None
    reason: str | None


def context_gap(
    original: float,
    removed: float,
    original_resampled: npt.ArrayLike,
    removed_resampled: npt.ArrayLike,
    *,
    threshold: float | None = 0.005,
    confidence: float = 0.95,
) -> ContextGap:
    """The gap that the context makes alone, and its share of the whole, with paired intervals.

    Args:
        original: Score on the original images.
        removed: Score on the same images with the person removed.
        original_resampled: `(resamples,)` the first on every resample.
        removed_resampled: `(resamples,)` the second on the same resamples.
        threshold: Where |original| is below it there is no share, as for delta; None for only an original of 0.
        confidence: Nominal coverage of the intervals.

    Returns:
        A `ContextGap`.

    Raises:
        ScoreError: The resamples are not aligned, or none has both scores (NaN where one has none).

    >>> context_gap(0.4, 0.1, [0.4, 0.4], [0.1, 0.1]).share
    0.25
    """
    whole, context = _pairs(original_resampled, removed_resampled)
    low, high = interval(context, removed, confidence=confidence)
    limit = threshold or 0.0
    if original == 0 or abs(original) < limit:
        reason = "original is 0" if original == 0 else f"|original| = {abs(original):.3g} is below {limit:g}"
        return ContextGap(removed, low, high, None, None, None, reason)
    share_low, share_high = interval(_ratio(context, whole), removed / original, confidence=confidence)
    return ContextGap(removed, low, high, removed / original, share_low, share_high, None)


def _pairs(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Aligned resamples on which both have a score: one that drew no answer to a question has none."""
    one = _aligned(first)
    other = _aligned(second, len(one))
    known = ~(np.isnan(one) | np.isnan(other))
    if not known.any():
        raise ScoreError("resampled: no resample has both scores; give more resamples, or more images per question")
    return one[known], other[known]


def _aligned(values: npt.ArrayLike, length: int | None = None) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or (length is not None and len(array) != length):
        raise ScoreError(f"resamples of shape {array.shape}; give one score per resample, as many on both sides")
    return array

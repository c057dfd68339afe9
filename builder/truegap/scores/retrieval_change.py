"""How far a perturbation moves retrieval scores, on the same resampled images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ._check import Floats, ScoreError
from .bootstrap import interval
from .retrieval import RetrievalScores
from .sensitivity import feature_sensitivity


@dataclass(frozen=True, slots=True)
class RetrievalChange:
    """The change of one score from original to perturbed images.

    Attributes:
        metric: Such as `max_skew@1000`.
        original: Mean over queries and draws on the original images.
        perturbed: The same on the perturbed ones.
        delta: 100 x |original - perturbed| / |original| over draws, in percent; None where it cannot be divided.
        reason: Why `delta` is None.
        delta_low: Lower end of the interval of `delta`; 0 where the interval of the signed change holds 0; None where
            there is none.
        delta_high: Upper end.
        signed_change: perturbed - original; None where either is infinite.
        signed_low: Lower end of its interval, from the same resampled images on both sides.
        signed_high: Upper end.
        abs_change: Mean over draws of |perturbed - original|; None where either is infinite.
        excluded: Draws left out of `delta` because their original score is too near 0.
    """

    metric: str
    original: float
    perturbed: float
    delta: float | None
    reason: str | None
    delta_low: float | None
    delta_high: float | None
    signed_change: float | None
    signed_low: float | None
    signed_high: float | None
    abs_change: float | None
    excluded: int


def retrieval_changes(
    original: RetrievalScores,
    perturbed: RetrievalScores,
    *,
    metrics: Sequence[str] | None = None,
    aggregate: str = "mean_of_ratios",
    threshold: float | None = None,
    confidence: float = 0.95,
) -> tuple[RetrievalChange, ...]:
    """Relative, signed and absolute change of every score, with paired intervals where both were resampled.

    A draw's score is the mean over queries; ratios are taken per draw or of the means over draws (`aggregate`).

    Args:
        original: Scores on the original images.
        perturbed: Scores on the perturbed images: same images, queries, draws, resamples and seed.
        metrics: Which scores; all where None. NDKL has no interval.
        aggregate: `mean_of_ratios` or `ratio_of_means` over draws.
        threshold: Draws whose |original| is below it have no ratio; None for MaxSkew.
        confidence: Nominal coverage of the intervals.

    Returns:
        One `RetrievalChange` per score.

    Raises:
        ScoreError: The two were not measured in the same way.

    >>> from truegap.scores import retrieval_scores
    >>> genders = ["man", "man", "woman", "woman"]
    >>> before = retrieval_scores([[0.9, 0.8, 0.3, 0.1]], genders, k=2)
    >>> after = retrieval_scores([[0.9, 0.2, 0.3, 0.1]], genders, k=2)
    >>> change = retrieval_changes(before, after, metrics=["bias@2"])[0]
    >>> change.delta, change.signed_change
    (100.0, -1.0)
    """
    check_paired(original, perturbed)
    names = original.metrics if metrics is None else metrics
    return tuple(_change(original, perturbed, name, aggregate, threshold, confidence) for name in names)


def check_paired(original: RetrievalScores, perturbed: RetrievalScores) -> None:
    """Whether two sets of scores can be compared in pairs.

    Raises:
        ScoreError: The two were not measured in the same way.
    """
    if original.options != perturbed.options or original.counts != perturbed.counts:
        raise ScoreError(
            f"original ({dict(original.counts)}, {dict(original.options)}) and perturbed ({dict(perturbed.counts)}, "
            f"{dict(perturbed.options)}) differ; score both on the same images with the same options"
        )


def _change(
    original: RetrievalScores,
    perturbed: RetrievalScores,
    metric: str,
    aggregate: str,
    threshold: float | None,
    confidence: float,
) -> RetrievalChange:
    before, after = original.values(metric).mean(axis=1), perturbed.values(metric).mean(axis=1)
    if not (np.isfinite(before).all() and np.isfinite(after).all()):
        return _infinite(metric, float(before.mean()), float(after.mean()))
    found = feature_sensitivity(before, after, aggregate=aggregate, threshold=threshold)
    low = high = delta_low = delta_high = None
    befores, afters = original.resampled_by_draw(metric), perturbed.resampled_by_draw(metric)
    if befores is not None and afters is not None:
        signed = (afters - befores).mean(axis=1)
        if np.isfinite(signed).all():
            # The mean of the resamples is a smoother estimate than the change itself (the cut falls elsewhere in each),
            # and noise shifts it where the score is a maximum: percentiles around it hold the truth nearly always.
            moved = signed + (found.signed_change - signed.mean())
            low, high = interval(moved, found.signed_change, confidence=confidence)
        if low is not None and high is not None and found.delta is not None:
            kept = [place for place, ratio in enumerate(found.per_row) if ratio is not None]
            ratios = draw_ratios(befores[:, kept], afters[:, kept], aggregate)
            delta_low, delta_high = delta_interval(ratios, found.delta, confidence)
            if delta_low is not None and low <= 0 <= high:
                # A ratio of absolute values is never below 0: only the signed change says whether there is one.
                delta_low = 0.0
    return RetrievalChange(
        metric=metric,
        original=float(before.mean()),
        perturbed=float(after.mean()),
        delta=found.delta,
        reason=found.reason,
        delta_low=delta_low,
        delta_high=delta_high,
        signed_change=found.signed_change,
        signed_low=low,
        signed_high=high,
        abs_change=found.abs_change,
        excluded=found.counts["excluded"],
    )


def _infinite(metric: str, before: float, after: float) -> RetrievalChange:
    """The change of a skew that is minus infinity somewhere (`empty="neg_inf"`): there is none."""
    reason = 'infinite: a query has an empty group; use empty="clip"'
    return RetrievalChange(metric, before, after, None, reason, None, None, None, None, None, None, 0)


def draw_ratios(before: Floats, after: Floats, aggregate: str) -> Floats:
    """`(resamples,)` deltas in percent; no change of nothing is 0, a change of nothing is infinite."""
    if aggregate == "ratio_of_means":
        before, after = before.mean(axis=1, keepdims=True), after.mean(axis=1, keepdims=True)
    change, size = np.abs(after - before), np.abs(before)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(change == 0, 0.0, 100 * change / size)
    return np.asarray(ratios.mean(axis=1))


def delta_interval(ratios: Floats, delta: float, confidence: float) -> tuple[float | None, float | None]:
    """The interval of a delta from its resamples; none where one of them divides a change by nothing.

    A ratio of noisy absolute values is off in a resample, as it is in the data: upwards by its numerator, downwards by
    its denominator. The resamples are moved so that their median is the observed value, and cut at 0.
    """
    if not np.isfinite(ratios).all():
        return None, None
    return interval(np.maximum(ratios + (delta - np.median(ratios)), 0.0), delta, confidence=confidence)

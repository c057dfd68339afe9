"""Two sets of images of the same people, compared in pairs: a perturbation and its control, the arms of a swap.

The control does all that the perturbation does except the perturbation itself, and both are scored on the same
resampled images: what handling the file and drawing these images do to both takes nothing from the comparison. It is
sharper than two intervals side by side, and it keeps its level where those do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ._check import Floats
from .bootstrap import interval
from .change import ContextGap, Difference, context_gap, paired_difference
from .retrieval import RetrievalScores
from .retrieval_change import check_paired, draw_ratios
from .sensitivity import feature_sensitivity


@dataclass(frozen=True, slots=True)
class RetrievalContrast:
    """How one score differs between two configs.

    Attributes:
        metric: Such as `max_skew@1000`.
        difference: Score of the first config less that of the second, in the score's unit: the effect of what they
            differ in, 0 for none.
        delta_beyond: Delta of the first less delta of the second, in percent: how much further it moves the score;
            above 0 where it does, None where one of the deltas is None.
        delta_beyond_low: Lower end of its interval, not above 0 where the interval of `difference` holds 0; None where
            a resample has no ratio.
        delta_beyond_high: Upper end.
    """

    metric: str
    difference: Difference
    delta_beyond: float | None
    delta_beyond_low: float | None
    delta_beyond_high: float | None


def retrieval_contrasts(
    original: RetrievalScores,
    perturbed: RetrievalScores,
    control: RetrievalScores,
    *,
    metrics: Sequence[str] | None = None,
    aggregate: str = "mean_of_ratios",
    confidence: float = 0.95,
) -> tuple[RetrievalContrast, ...]:
    """What a perturbation does to every score beyond what its control does.

    Args:
        original: Scores on the original images.
        perturbed: Scores on the perturbed images: same images, queries, draws, resamples and seed.
        control: Scores on the control, measured in the same way.
        metrics: Which scores; all where None.
        aggregate: Delta over draws: `mean_of_ratios` or `ratio_of_means`.
        confidence: Nominal coverage of the intervals.

    Returns:
        One `RetrievalContrast` per score that has resamples and is finite: NDKL has none.

    Raises:
        ScoreError: The three were not measured in the same way.

    >>> from truegap.scores import retrieval_scores
    >>> genders = ["man", "woman"] * 20
    >>> lean = [[1.0, 0.0] * 20]
    >>> options = {"k": 20, "n_resamples": 100}
    >>> before = retrieval_scores(lean, genders, **options)
    >>> after = retrieval_scores([[0.0, 1.0] * 20], genders, **options)
    >>> (contrast,) = retrieval_contrasts(before, after, before, metrics=["bias@20"])
    >>> contrast.difference.value, contrast.difference.clear, contrast.delta_beyond
    (-2.0, True, 200.0)
    """
    check_paired(original, perturbed)
    check_paired(original, control)
    names = original.metrics if metrics is None else metrics
    found = (_contrast(original, perturbed, control, name, aggregate, confidence) for name in names)
    return tuple(each for each in found if each)


def _contrast(
    original: RetrievalScores,
    perturbed: RetrievalScores,
    control: RetrievalScores,
    metric: str,
    aggregate: str,
    confidence: float,
) -> RetrievalContrast | None:
    first, second = resampled_means(perturbed, metric), resampled_means(control, metric)
    if first is None or second is None:
        return None
    values = [each.values(metric).mean(axis=1) for each in (original, perturbed, control)]
    before, after, other = values
    # Each is moved onto its score, as the resamples of a change are (`retrieval_changes`).
    first, second = (part + (float(of.mean()) - part.mean()) for part, of in ((first, after), (second, other)))
    difference = paired_difference(float(after.mean()), float(other.mean()), first, second, confidence=confidence)
    deltas = [feature_sensitivity(before, each, aggregate=aggregate, threshold=None) for each in (after, other)]
    if deltas[0].delta is None or deltas[1].delta is None:
        return RetrievalContrast(metric, difference, None, None, None)
    beyond = deltas[0].delta - deltas[1].delta
    # Both leave out the same draws: those whose original score is 0.
    kept = [place for place, ratio in enumerate(deltas[0].per_row) if ratio is not None]
    parts = [each.resampled_by_draw(metric) for each in (original, perturbed, control)]
    befores, afters, others = (part[:, kept] for part in parts if part is not None)
    first, second = draw_ratios(befores, afters, aggregate), draw_ratios(befores, others, aggregate)
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return RetrievalContrast(metric, difference, beyond, None, None)
    ratios = first - second
    # As for one delta: the median of the resamples is moved onto the observed value.
    low, high = interval(ratios + (beyond - np.median(ratios)), beyond, confidence=confidence)
    # Absolute values differ by noise alone: only the signed difference says whether there is one.
    return RetrievalContrast(metric, difference, beyond, low if difference.clear else min(low, 0.0), high)


def retrieval_contexts(
    original: RetrievalScores,
    removed: RetrievalScores,
    *,
    threshold: float | None = 0.005,
    confidence: float = 0.95,
) -> Iterator[tuple[str, ContextGap]]:
    """What of every score stays when nobody is in the picture, and its share of the whole (`context_gap`).

    What a ranking that knows nothing of gender is expected to get (`RetrievalScore.null`; 0 for Bias@k on balanced
    images) is nobody's gap: the gap and the whole are both the excess over it.

    Args:
        original: Scores on the original images.
        removed: Scores on the same images with the person removed, measured in the same way.
        threshold: Where the whole is smaller there is no share; None for only a whole of 0.
        confidence: Nominal coverage of the intervals.

    Yields:
        Name and context gap of each score that has resamples and is finite.

    Raises:
        ScoreError: The two were not measured in the same way.

    >>> from truegap.scores import retrieval_scores
    >>> genders, options = ["man", "woman"] * 20, {"k": 20, "n_resamples": 100}
    >>> before = retrieval_scores([[1.0, 0.0] * 20], genders, **options)
    >>> dict(retrieval_contexts(before, before, threshold=None))["bias@20"].share  # nothing changes: all is context
    1.0
    """
    check_paired(original, removed)
    nulls = {each.metric: each.null or 0.0 for each in original.summary(confidence=confidence)}
    for metric, null in nulls.items():
        whole, context = resampled_means(original, metric), resampled_means(removed, metric)
        if whole is not None and context is not None:
            before, after = (float(each.values(metric).mean()) - null for each in (original, removed))
            yield (
                metric,
                context_gap(before, after, whole - null, context - null, threshold=threshold, confidence=confidence),
            )


def resampled_means(scores: RetrievalScores, metric: str) -> Floats | None:
    """`(resamples,)` mean over queries and draws of one score on every resample; None where there is none.

    MaxSkew is a maximum, which noise inflates in a resample as it does in the data: its resamples are moved so that
    their mean is the observed value, as in `RetrievalScores.summary`.

    >>> from truegap.scores import retrieval_scores
    >>> found = retrieval_scores([[1.0, 0.0] * 20], ["man", "woman"] * 20, k=20, n_resamples=3)
    >>> resampled_means(found, "bias@20").tolist()
    [1.0, 1.0, 1.0]
    """
    by_draw = scores.resampled_by_draw(metric)
    if by_draw is None or not np.isfinite(by_draw).all():
        return None
    means = by_draw.mean(axis=1)
    if metric.startswith("max_skew"):
        means = means + (float(scores.values(metric).mean()) - means.mean())
    return np.asarray(means)

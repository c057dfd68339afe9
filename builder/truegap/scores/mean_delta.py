"""Mean sensitivity over several perturbations, with an interval that knows they share their images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .retrieval import RetrievalScores
from .retrieval_change import delta_interval, draw_ratios, retrieval_changes


@dataclass(frozen=True, slots=True)
class MeanDelta:
    """A mean of deltas.

    Attributes:
        delta: In percent, at least 0; None where one of the deltas is None, or there are none.
        delta_low: Lower end of its interval; None without resamples.
        delta_high: Upper end.
    """

    delta: float | None
    delta_low: float | None = None
    delta_high: float | None = None


def retrieval_mean_delta(
    original: RetrievalScores,
    perturbed: Sequence[RetrievalScores],
    metric: str,
    *,
    aggregate: str = "mean_of_ratios",
    confidence: float = 0.95,
) -> MeanDelta:
    """Mean over perturbations of a score's delta (`retrieval_changes`).

    A resample holds the same images for the original and for every perturbation, so the interval is of the mean
    itself. A delta is an absolute value, which noise can only make larger: read it beside the controls' delta.

    Args:
        original: Scores on the original images.
        perturbed: Scores on each perturbation of them.
        metric: Such as `max_skew@1000`.
        aggregate: `mean_of_ratios` or `ratio_of_means` over draws.
        confidence: Nominal coverage of the interval.

    Returns:
        A `MeanDelta`.

    Raises:
        ScoreError: The scores were not measured in the same way.

    >>> from truegap.scores import retrieval_scores
    >>> genders = ["man", "man", "woman", "woman"]
    >>> rows = [[0.9, 0.8, 0.3, 0.1]], [[0.9, 0.2, 0.3, 0.1]], [[0.9, 0.8, 0.3, 0.1]]
    >>> before, blurred, control = (retrieval_scores(row, genders, k=2) for row in rows)
    >>> retrieval_mean_delta(before, [blurred, control], "bias@2").delta
    50.0
    """
    changes = [
        retrieval_changes(original, each, metrics=[metric], aggregate=aggregate, confidence=confidence)[0]
        for each in perturbed
    ]
    deltas = [each.delta for each in changes if each.delta is not None]
    if not changes or len(deltas) < len(changes):
        return MeanDelta(None)
    mean = float(np.mean(deltas))
    before = original.resampled_by_draw(metric)
    if before is None or any(each.delta_low is None for each in changes):
        return MeanDelta(mean)
    ratios = []
    for each in perturbed:
        after = each.resampled_by_draw(metric)
        assert after is not None  # measured with the same options
        ratios.append(draw_ratios(before, after, aggregate))
    return MeanDelta(mean, *delta_interval(np.mean(ratios, axis=0), mean, confidence))

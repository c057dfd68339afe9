"""Differences of means between men and women, of many questions at once, on the same resampled images.

The same numbers as `truegap.scores.ygap` gives question by question; here the images of a resample are drawn once for
all questions, and what is compared in pairs is drawn alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truegap.scores import bootstrap_weights, interval, p_value, permuted_labels

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Gap:
    """One gap with its resamples.

    Attributes:
        value: Mean over men less mean over women.
        resampled: `(resamples,)` the same on every resample; None where there are none.
        permuted: `(permutations,)` the same with relabelled images; None where there are none.
    """

    value: float
    resampled: Floats | None
    permuted: Floats | None

    def ends(self, confidence: float) -> tuple[float | None, float | None]:
        """Both ends of the interval; two None without resamples."""
        return (None, None) if self.resampled is None else interval(self.resampled, self.value, confidence=confidence)

    @property
    def p_value(self) -> float | None:
        """Of no gap, from relabelling whole images."""
        return None if self.permuted is None else p_value(self.value, self.permuted)


@dataclass(frozen=True, slots=True)
class Gaps:
    """The gaps of every question on one config.

    Attributes:
        values: `(questions,)`.
        resampled: `(resamples, questions)`; None where none were asked for, or a gender has a single image.
        permuted: `(permutations, questions)`; None where none were asked for.
    """

    values: Floats
    resampled: Floats | None
    permuted: Floats | None

    def over(self, questions: Sequence[int]) -> Gap:
        """The mean of some questions' gaps."""
        chosen = list(questions)
        resampled, permuted = (
            None if each is None else np.asarray(each[:, chosen].mean(axis=1))
            for each in (self.resampled, self.permuted)
        )
        return Gap(float(self.values[chosen].mean()), resampled, permuted)

    def absolute(self, questions: Sequence[int]) -> float:
        """The mean of some questions' absolute gaps: opposite ones do not cancel, and noise keeps it above 0."""
        return float(np.abs(self.values[list(questions)]).mean())


def gaps(
    table: NDArray[np.floating], men: NDArray[np.bool_], *, n_resamples: int, n_permutations: int = 0, seed: int = 0
) -> Gaps:
    """Gaps of every question.

    Args:
        table: `(questions, images)` such as p(Yes); images in the order of their ids.
        men: `(images,)` whether the image shows a man; there must be some of both.
        n_resamples: Bootstrap resamples of images within gender.
        n_permutations: Relabellings of images.
        seed: The same seed draws the same images.
    """
    scores, label = np.asarray(table, np.float64).T, men.astype(np.int64)

    def gap(weights: Floats, of_men: Floats) -> Floats:
        men_, women = weights * of_men, weights * (1 - of_men)
        means = [each @ scores / each.sum(axis=1, keepdims=True) for each in (men_, women)]
        return np.asarray(means[0] - means[1])

    ones = np.ones((1, len(label)))
    resampled = permuted = None
    # One image resamples to itself: an interval from it would claim to be sure.
    if n_resamples and np.bincount(label, minlength=2).min() > 1:
        drawn = bootstrap_weights(label, n_resamples=n_resamples, seed=seed)
        resampled = np.concatenate([gap(weights, men.astype(np.float64)) for weights in drawn])
    if n_permutations:
        orders = permuted_labels(label, n_permutations=n_permutations, seed=seed)
        permuted = np.concatenate([gap(np.ones(order.shape), order.astype(np.float64)) for order in orders])
    return Gaps(gap(ones, men.astype(np.float64))[0], resampled, permuted)

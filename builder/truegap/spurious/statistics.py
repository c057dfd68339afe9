"""Intervals and tests of accuracies and of correlations, in closed form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from truegap.scores import pearson

CONFIDENCE = 0.95
CHANCE = 0.5
"""Accuracy of a coin on balanced images."""

_LEAST_FOR_INTERVAL = 4
_LEAST_FOR_P = 3


def wilson(accuracy: float, n: float, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Wilson's score interval (1927) of a share, without continuity correction.

    Args:
        accuracy: The share, 0 to 1.
        n: How many independent images; need not be whole.
        confidence: Of the interval.

    Returns:
        Its ends, within 0 and 1.

    >>> [round(end, 4) for end in wilson(0.5, 100)]
    [0.4038, 0.5962]
    """
    from scipy.special import ndtri

    z = float(ndtri((1 + confidence) / 2))
    middle = accuracy + z**2 / (2 * n)
    half = z * math.sqrt(accuracy * (1 - accuracy) / n + z**2 / (4 * n**2))
    scale = 1 + z**2 / n
    return max((middle - half) / scale, 0.0), min((middle + half) / scale, 1.0)


def chance_p(accuracy: float, n: float) -> float:
    """Two-sided p-value of an accuracy of 50 %: the score test, below 0.05 just where `wilson` leaves 50 % out.

    >>> round(chance_p(0.5, 100), 3), round(chance_p(0.6, 100), 3)
    (1.0, 0.046)
    """
    return math.erfc(abs(accuracy - CHANCE) / math.sqrt(CHANCE**2 / n) / math.sqrt(2))


def effective_images(tested: Sequence[npt.ArrayLike]) -> float:
    """How many images several test sets are worth, by Kish's formula: one image tested twice is one image.

    Args:
        tested: The images of every test set, by any number that is theirs.

    Returns:
        From the size of one test set (all the same) to the number of all tests (no image twice).

    >>> effective_images([[0, 1], [0, 1]]), effective_images([[0, 1], [2, 3]])
    (2.0, 4.0)
    """
    _, times = np.unique(np.concatenate([np.asarray(each) for each in tested]), return_counts=True)
    return float(times.sum() ** 2 / (times.astype(np.float64) ** 2).sum())


@dataclass(frozen=True, slots=True)
class Correlation:
    """Pearson's r of two lists.

    Attributes:
        r: In [-1, 1]; None where either list is constant or there are fewer than two values.
        low: Lower end of Fisher's interval; None for fewer than four values or |r| = 1.
        high: Upper end.
        p_value: Two-sided, of no correlation, by Student's t; None for fewer than three values.
        n: How many values.
    """

    r: float | None
    low: float | None
    high: float | None
    p_value: float | None
    n: int


def correlation(first: npt.ArrayLike, second: npt.ArrayLike, confidence: float = CONFIDENCE) -> Correlation:
    """Pearson's r with Fisher's interval (z = artanh r, standard error 1 / sqrt(n - 3)) and its p-value.

    Interval and p-value take the pairs as independent.

    Args:
        first: `(n,)` numbers.
        second: `(n,)` numbers.
        confidence: Of the interval.

    >>> found = correlation([1, 2, 3, 4, 5], [1, 3, 2, 5, 4])
    >>> round(found.r, 3), round(found.low, 3), round(found.high, 3), round(found.p_value, 3)
    (0.8, -0.28, 0.986, 0.104)
    """
    from scipy.special import ndtri, stdtr

    n = len(np.asarray(first))
    r = pearson(first, second) if n > 1 else None
    if r is None:
        return Correlation(None, None, None, None, n)
    low = high = p_value = None
    if n >= _LEAST_FOR_INTERVAL and abs(r) < 1:
        half = float(ndtri((1 + confidence) / 2)) / math.sqrt(n - 3)
        low, high = math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)
    if n >= _LEAST_FOR_P:
        t = math.inf if abs(r) == 1 else abs(r) * math.sqrt((n - 2) / (1 - r * r))
        p_value = float(2 * stdtr(n - 2, -t))
    return Correlation(r, low, high, p_value, n)

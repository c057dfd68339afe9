"""Permutation tests, and Holm's correction for what is tested together."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ._check import Floats, Ints, ScoreError, seeded, whole

CHUNK = 256


def permuted_labels(labels: npt.ArrayLike, *, n_permutations: int = 1000, seed: int = 0) -> Iterator[Ints]:
    """The labels in random order, in chunks of at most 256 permutations.

    Args:
        labels: `(images,)` integer codes.
        n_permutations: How many orders.
        seed: The same seed gives the same orders.

    Yields:
        `(permutations, images)` codes.

    Raises:
        ScoreError: A number of permutations or a seed that is negative, absurd or not whole.

    >>> np.sort(next(permuted_labels([0, 1, 1], n_permutations=2)), axis=1).tolist()
    [[0, 1, 1], [0, 1, 1]]
    """
    whole(n_permutations, "n_permutations")
    seeded(seed)
    coded = np.asarray(labels, dtype=np.int64)
    for start in range(0, n_permutations, CHUNK):
        generator = np.random.default_rng([seed, start])
        rows = min(CHUNK, n_permutations - start)
        yield generator.permuted(np.broadcast_to(coded, (rows, len(coded))), axis=1)


def p_value(observed: float, permuted: npt.ArrayLike) -> float:
    """Two-sided p-value of a score that is 0 where the labels mean nothing.

    `(1 + number of permutations at least as far from 0) / (1 + number of permutations)`: never 0, and valid for any
    number of permutations (Phipson and Smyth 2010).

    Args:
        observed: The score with the true labels.
        permuted: `(permutations,)` the score with labels in random order.

    Returns:
        In (0, 1]; small values speak against "no difference".

    Raises:
        ScoreError: A score is NaN.

    >>> p_value(2.0, [0.5, -1.0, 2.5])
    0.5
    """
    values: Floats = np.abs(np.asarray(permuted, dtype=np.float64))
    if np.isnan(values).any() or math.isnan(observed):
        raise ScoreError("permuted: a score is NaN; leave out relabellings without a score")
    # Equal scores that were summed in another order must count as equal.
    reached = np.sum(values >= abs(observed) * (1 - 1e-12) - 1e-15)
    return float((1 + reached) / (1 + len(values)))


def holm(p_values: npt.ArrayLike) -> list[float]:
    """P-values adjusted by Holm's step-down method (1979): the chance of any false alarm stays at the level.

    Args:
        p_values: `(tests,)` in [0, 1].

    Returns:
        Adjusted p-values in the order given, each at least the one given and at most 1.

    Raises:
        ScoreError: A value is outside [0, 1] or NaN.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, dtype=np.float64)
    for row, value in enumerate(values):
        if not 0 <= value <= 1:
            raise ScoreError(f"p_values: row {row} is {value}, outside [0, 1]; leave out tests without a p-value")
    order = np.argsort(values, kind="stable")
    factors = len(values) - np.arange(len(values))
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(np.maximum.accumulate(values[order] * factors), 1.0)
    return [float(value) for value in adjusted]

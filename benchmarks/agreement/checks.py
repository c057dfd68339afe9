"""A comparison of a score with an independent reference, and the list of those of one kind of score."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

EXACT = 1e-12
"""Sums of float64 in another order differ by less than this."""

Pair = tuple[Sequence[float | None], Sequence[float | None]]
Measure = Callable[[np.random.Generator], Pair]


@dataclass(frozen=True)
class Check:
    """One row of the table; without `inputs` it holds for one input alone, such as a printed table."""

    score: str
    reference: str
    measure: Measure
    tolerance: float
    inputs: int | None


class Checks(list[Check]):
    """The comparisons of one kind of score."""

    def add(
        self, score: str, reference: str, *, tolerance: float = EXACT, inputs: int | None = 1
    ) -> Callable[[Measure], Measure]:
        """Adds a comparison; `inputs` is a share of what the command line asks for, None for a single one."""

        def register(measure: Measure) -> Measure:
            self.append(Check(score, reference, measure, tolerance, inputs))
            return measure

        return register


def mean(values: Sequence[float] | np.ndarray) -> float:
    """As a reference takes it: exactly rounded."""
    return math.fsum(values) / len(values)


def differences(pair: Pair) -> Iterator[float]:
    """Of aligned values, relative where they are above 1; infinite where only one side has a value."""
    for ours, theirs in zip(*pair, strict=True):
        if ours is None or theirs is None:
            yield 0.0 if ours is theirs else math.inf
        else:
            yield abs(ours - theirs) / max(1.0, abs(theirs))

"""What a printed number can have been: exact intervals, so that no tolerance has to be chosen.

A value printed with two decimals lies within half a hundredth of what was rounded. Sums, means and ratios of such
values lie in intervals that follow from theirs; a printed result follows from printed parts where the intervals meet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np


@dataclass(frozen=True, slots=True)
class Range:
    """All that a number can be, both ends included (whichever way a half was rounded)."""

    low: Fraction
    high: Fraction

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def __sub__(self, other: Range) -> Range:
        return Range(self.low - other.high, self.high - other.low)

    def __abs__(self) -> Range:
        ends = sorted((abs(self.low), abs(self.high)))
        return Range(Fraction(0) if self.low <= 0 <= self.high else ends[0], ends[1])

    @property
    def middle(self) -> float:
        """Halfway between the ends."""
        return float((self.low + self.high) / 2)

    def times(self, factor: Fraction | int) -> Range:
        """Multiplied by an exact number."""
        ends = sorted((self.low * factor, self.high * factor))
        return Range(ends[0], ends[1])

    def meets(self, other: Range) -> bool:
        """Whether one number can be both."""
        return self.low <= other.high and other.low <= self.high


def printed(text: str, decimals: int, *, roundings: int = 1) -> Range:
    """What a printed number can have been.

    Args:
        text: As printed, zeros at the end or not.
        decimals: Digits after the point that are printed.
        roundings: How often a value was rounded to so many digits on its way, itself included.

    >>> printed("0.5", 2) == Range(Fraction(99, 200), Fraction(101, 200))
    True
    """
    half = Fraction(roundings, 2 * 10**decimals)
    return Range(Fraction(text) - half, Fraction(text) + half)


def mean(ranges: Sequence[Range]) -> Range:
    """Of numbers that are rounded independently."""
    return Range(
        sum((each.low for each in ranges), Fraction(0)) / len(ranges),
        sum((each.high for each in ranges), Fraction(0)) / len(ranges),
    )


def change_percent(original: Range, perturbed: Range) -> Range | None:
    """`100 x |original - perturbed| / |original|`; None where the original may be 0.

    It is taken as `100 x |1 - perturbed / original|`, in which each number stands once, so the ends are reached.

    >>> found = change_percent(printed("0.65", 2), printed("1.2", 2))
    >>> round(float(found.low), 1), round(float(found.high), 1)
    (82.4, 86.8)
    """
    if original.low <= 0 <= original.high:
        return None
    ends = [over / under for over in (perturbed.low, perturbed.high) for under in (original.low, original.high)]
    return abs(Range(1 - max(ends), 1 - min(ends))).times(100)


def correlation(first: Sequence[Range], second: Sequence[Range]) -> Range:
    """An interval that holds Pearson's r of the unrounded numbers; it is safe, not the narrowest.

    With u, v the centred middles and a, b the largest half widths, the product of the centred true lists is within
    `b sum|u| + a sum|v| + n a b` of `u v`, and their lengths within `a sqrt(n)` and `b sqrt(n)` of those of u and v.
    """
    (u, a), (v, b) = _centred(first), _centred(second)
    n = len(u)
    slack = b * float(np.abs(u).sum()) + a * float(np.abs(v).sum()) + n * a * b
    product = float(u @ v)
    lengths = [(float(np.linalg.norm(each)), half * math.sqrt(n)) for each, half in ((u, a), (v, b))]
    short, long = (math.prod(max(length + sign * half, 0.0) for length, half in lengths) for sign in (-1, 1))
    if short == 0.0:
        return Range(Fraction(-1), Fraction(1))
    low, high = product - slack, product + slack
    r = (low / (long if low >= 0 else short), high / (short if high >= 0 else long))
    return Range(max(Fraction(r[0]), Fraction(-1)), min(Fraction(r[1]), Fraction(1)))


def _centred(ranges: Sequence[Range]) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], float]:
    middles = np.array([each.middle for each in ranges])
    return middles - middles.mean(), max(float(each.high - each.low) for each in ranges) / 2

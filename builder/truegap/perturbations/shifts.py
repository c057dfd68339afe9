"""Shifts on the 0-255 scale: which integers each strength allows, and the draw."""

from __future__ import annotations

from truegap.perturbations.keys import Key
from truegap.perturbations.options import Options
from truegap.schema import Strength


def allowed_shifts(strength: Strength, options: Options) -> list[int]:
    """The integers that may be drawn, ascending (Hirota et al. 2025, appendix).

    >>> allowed_shifts(Strength.MIDDLE, Options())[:3], len(allowed_shifts(Strength.STRONG, Options()))
    ([-20, -19, -18], 40)
    """
    largest = {Strength.WEAK: 10, Strength.MIDDLE: 20, Strength.STRONG: 30}[strength]
    excluded = {Strength.WEAK: -1, Strength.MIDDLE: 10, Strength.STRONG: options.strong_gap}[strength]
    return [shift for shift in range(-largest, largest + 1) if abs(shift) > excluded]


def draw_shift(key: Key, strength: Strength, options: Options) -> int:
    """One shift, uniform over the allowed integers.

    All strengths take the same quantile of their ascending integers, so a stronger shift keeps the weaker
    one's direction.
    """
    shifts = allowed_shifts(strength, options)
    return shifts[int(key.uniform("shift") * len(shifts))]

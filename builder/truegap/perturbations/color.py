"""Color: the hue of the whole picture, shifted."""

from __future__ import annotations

from functools import cache

import numpy as np

from truegap.perturbations.hsv import Change, Pixels


def hue_shift(shift: int) -> Change:
    """Shifts the hue; saturation and value are kept (Hirota et al. 2025, section 3).

    Args:
        shift: On the 0-255 scale; wraps round.

    Returns:
        A change for `in_hsv`.
    """

    @cache
    def row(width: int) -> Pixels:
        return np.tile(np.array([shift % 256, 0, 0], np.uint8), width)

    def change(hsv: Pixels, into: Pixels) -> None:
        height, width, _ = hsv.shape
        # One row of (shift, 0, 0) triples: contiguous 8-bit addition wraps by itself and is the fastest way.
        np.add(hsv.reshape(height, -1), row(width), out=into.reshape(height, -1))

    return change

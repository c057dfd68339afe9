"""Lighting: the brightness of the whole picture, shifted."""

from __future__ import annotations

import cv2

from truegap.perturbations.hsv import Change


def value_shift(shift: int) -> Change:
    """Shifts HSV value; hue and saturation are kept (Hirota et al. 2025, section 3).

    Args:
        shift: On the 0-255 scale; clipped.

    Returns:
        A change for `in_hsv`.
    """
    add_or_subtract = cv2.add if shift >= 0 else cv2.subtract
    return lambda hsv, into: add_or_subtract(hsv, (0, 0, abs(shift), 0), dst=into)

"""Lighting: the brightness of the whole picture, shifted."""

from __future__ import annotations

import cv2

from truegap.perturbations.hsv import Pixels, in_hsv


def shift_lighting(image: Pixels, shift: int) -> Pixels:
    """Shifts HSV value; hue and saturation are kept (Hirota et al. 2025, section 3).

    Args:
        image: RGB, (H, W, 3).
        shift: On the 0-255 scale; clipped.

    Returns:
        A new array of the same shape.
    """
    add_or_subtract = cv2.add if shift >= 0 else cv2.subtract
    return in_hsv(image, lambda hsv: add_or_subtract(hsv, (0, 0, abs(shift), 0), dst=hsv))

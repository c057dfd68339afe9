"""Color: the hue of the whole picture, shifted."""

from __future__ import annotations

import numpy as np

from truegap.perturbations.hsv import Pixels, in_hsv


def shift_color(image: Pixels, shift: int) -> Pixels:
    """Shifts the hue; saturation and value are kept (Hirota et al. 2025, section 3).

    Args:
        image: RGB, (H, W, 3).
        shift: On the 0-255 scale; wraps round.

    Returns:
        A new array of the same shape.
    """
    # One row of (shift, 0, 0) triples: contiguous 8-bit addition wraps by itself and is the fastest way.
    row = np.tile(np.array([shift % 256, 0, 0], np.uint8), image.shape[1])

    def add(hsv: Pixels) -> None:
        pixels = hsv.reshape(len(hsv), -1)
        np.add(pixels, row, out=pixels)

    return in_hsv(image, add)

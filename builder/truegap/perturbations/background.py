"""Background: everything outside the persons, blurred."""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from truegap.perturbations.blur import PASSES, gaussian_blur
from truegap.perturbations.pictures import Pixels
from truegap.schema import Strength

RADIUS = {Strength.WEAK: 10.0, Strength.MIDDLE: 25.0, Strength.STRONG: 40.0}
"""Blur radius, which is Pillow's word for the standard deviation in pixels (Hirota et al. 2025)."""


def blur_background(image: Pixels, radius: float, person: NDArray[np.bool_], *, bleed: str = "paste") -> Pixels:
    """Blurs everything but the persons.

    Args:
        image: RGB, (H, W, 3), or RGBX, (H, W, 4).
        radius: Standard deviation of the blur in pixels.
        person: (H, W), True where a person is; those pixels come back untouched.
        bleed: `paste` (the paper: blur all, paste the persons back) or `none` (normalised convolution over
            background pixels alone).

    Returns:
        A new array of the same shape.
    """
    mask = person.view(np.uint8)
    blurred = _blur_outside(image, radius, mask) if bleed == "none" else gaussian_blur(image, radius)
    # Through a mask, OpenCV copies in place: the persons go onto the blurred picture.
    cv2.copyTo(image, mask, blurred)
    return blurred


def box_widths(radius: float) -> list[int]:
    """Three odd widths w with sum of (w**2 - 1) / 12 closest to radius**2, for `bleed="none"`.

    >>> box_widths(10), box_widths(40)
    ([19, 19, 21], [79, 79, 81])
    """
    ideal = math.sqrt(12 * radius**2 / PASSES + 1)
    narrow = int((ideal - 1) // 2) * 2 + 1
    variance = {wide: sum(w * w - 1 for w in _mixed(narrow, wide)) / 12 for wide in range(PASSES + 1)}
    return _mixed(narrow, min(variance, key=lambda wide: abs(variance[wide] - radius**2)))


def _mixed(narrow: int, wide: int) -> list[int]:
    return [narrow] * (PASSES - wide) + [narrow + 2] * wide


def _blur_outside(image: Pixels, radius: float, person: NDArray[np.uint8]) -> Pixels:
    """Normalised convolution: the blur of background pixels over the blur of their indicator."""
    outside = (1 - person).astype(np.float32)
    weighted = image * outside[..., None]
    for width in box_widths(radius):
        size = (width, width)
        weighted = cv2.blur(weighted, size, borderType=cv2.BORDER_REPLICATE)
        outside = cv2.blur(outside, size, borderType=cv2.BORDER_REPLICATE)
    # Deep inside a person nothing is left to average; those pixels are pasted over.
    average = weighted / np.maximum(outside, np.float32(1e-6))[..., None]
    blurred: Pixels = np.clip(np.rint(average), 0, 255).astype(np.uint8)
    return blurred

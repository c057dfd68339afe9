"""Hue and value of 8-bit pixels on the 0-255 scale, as Pillow's `HSV` mode has it.

OpenCV's `_FULL` conversion is the engine: the same scale as Pillow, several times faster. Both round to
8 bits, in different places, so single pixels differ by some levels (the tests hold the mean).
"""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]

Change = Callable[[Pixels, Pixels], object]
"""Reads hue, saturation and value of some rows and writes them, changed, to a second array of the same shape."""

_STRIP = 1 << 17
"""Bytes of a strip of rows: small enough for the cache, so that the pixels travel to memory once (2 x faster)."""


def in_hsv(image: Pixels, change: Change) -> Pixels:
    """Applies a change of hue, saturation and value.

    A change that only copies is the 8-bit round trip: a mean error of about half a level.

    Args:
        image: RGB or RGBX, (H, W, 3 or 4), contiguous.
        change: What to do.

    Returns:
        A new RGB array of the same shape.
    """
    hsv = np.empty((_rows(image), image.shape[1], 3), np.uint8)

    def converted(strip: Pixels, into: Pixels) -> None:
        before = hsv[: len(strip)]
        cv2.cvtColor(strip, cv2.COLOR_RGB2HSV_FULL, dst=before)
        change(before, into)

    return from_hsv(image, converted, channels=image.shape[2])


def to_hsv(image: Pixels) -> Pixels:
    """Hue, saturation and value of RGB pixels, for several calls of `from_hsv`."""
    hsv: Pixels = cv2.cvtColor(image, cv2.COLOR_RGB2HSV_FULL)
    return hsv


def from_hsv(hsv: Pixels, change: Change, *, channels: int = 3) -> Pixels:
    """The same as `in_hsv`, from what `to_hsv` gave; with 4 channels the result is RGBX."""
    height, width, _ = hsv.shape
    rgb = np.empty((height, width, channels), np.uint8)
    rows = _rows(hsv)
    changed = np.empty((rows, width, 3), np.uint8)
    for top in range(0, height, rows):
        strip = hsv[top : top + rows]
        into = changed[: len(strip)]
        change(strip, into)
        cv2.cvtColor(into, cv2.COLOR_HSV2RGB_FULL, dst=rgb[top : top + rows], dstCn=channels)
    return rgb


def _rows(image: Pixels) -> int:
    return max(_STRIP // int(image[0].nbytes), 1)

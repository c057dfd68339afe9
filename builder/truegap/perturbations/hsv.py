"""Hue and value of 8-bit pixels on the 0-255 scale, as Pillow's `HSV` mode has it.

OpenCV's `_FULL` conversion is the engine: the same scale as Pillow, several times faster. Both round to
8 bits, in different places, so single pixels differ by some levels (the tests hold the mean).

OpenCV rounds on the way back only where Intel's library is part of it. Elsewhere (ARM, for one) it truncates: a third
of all values come out one level darker. There the way back is made of other operations, which round.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import cv2
import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]

Change = Callable[[Pixels, Pixels], object]
"""Reads hue, saturation and value of some rows and writes them, changed, to an array of the same shape, or the same."""

_STRIP = 1 << 18
"""Bytes of a strip of rows: small enough for the cache, so that the pixels travel to memory once (2 x faster)."""


def in_hsv(image: Pixels, change: Change) -> Pixels:
    """Applies a change of hue, saturation and value.

    A change that only copies is the 8-bit round trip: a mean error of about half a level.

    Args:
        image: RGB or RGBX, (H, W, 3 or 4), contiguous.
        change: What to do.

    Returns:
        A new array of the same shape.
    """

    def converted(strip: Pixels, into: Pixels) -> None:
        cv2.cvtColor(strip, cv2.COLOR_RGB2HSV_FULL, dst=into)
        change(into, into)

    return from_hsv(image, converted, channels=image.shape[2])


def to_hsv(image: Pixels) -> Pixels:
    """Hue, saturation and value of RGB or RGBX pixels, for several calls of `from_hsv`."""
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
        _to_rgb(into, rgb[top : top + rows])
    return rgb


def _to_rgb(hsv: Pixels, rgb: Pixels) -> None:
    if opencv_rounds():
        cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB_FULL, dst=rgb, dstCn=rgb.shape[2])
    else:
        rounded(hsv, rgb)


@cache
def opencv_rounds() -> bool:
    """Whether OpenCV's way back from HSV rounds on this machine."""
    # Nearly grey: all three channels are above one half. Long enough for the routine that takes many pixels at a time.
    grey = np.full((1, 256, 3), (0, 1, 1), np.uint8)
    return bool(cv2.cvtColor(grey, cv2.COLOR_HSV2RGB_FULL).all())


def rounded(hsv: Pixels, rgb: Pixels) -> None:
    """Writes the RGB pixels of HSV pixels, to the nearest level, to an array of three or four channels."""
    hue, saturation, value = cv2.split(hsv)
    chroma = cv2.multiply(saturation, value, dtype=cv2.CV_32F)
    red, green, blue = (
        cv2.subtract(value, cv2.multiply(chroma, cv2.LUT(hue, share)), dtype=cv2.CV_8U) for share in _shares()
    )
    cv2.merge([red, green, blue, value][: rgb.shape[2]], dst=rgb)


@cache
def _shares() -> list[NDArray[np.float32]]:
    """For red, green and blue, by hue, what the channel lacks of the value per saturation times value."""
    hue = np.arange(256)
    # 510 steps round the circle, 85 from one corner of the hexagon to the next.
    steps = [(85 * corner + 2 * hue) % 510 for corner in (5, 3, 1)]
    return [(np.minimum(step, 340 - step).clip(0, 85) / (85 * 255)).astype(np.float32) for step in steps]


def _rows(image: Pixels) -> int:
    return max(_STRIP // int(image[0].nbytes), 1)

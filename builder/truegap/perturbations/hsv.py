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

_STRIP = 1 << 17
"""Bytes of a strip of rows: small enough for the cache, so that the pixels travel to memory once (2 x faster)."""


def in_hsv(image: Pixels, change: Callable[[Pixels], object]) -> Pixels:
    """Applies a change of hue, saturation and value.

    With a change that does nothing this is the 8-bit round trip: a mean error of about half a level.

    Args:
        image: RGB, (H, W, 3), contiguous.
        change: Gets hue, saturation and value, each 0-255, of some rows, and changes them in place.

    Returns:
        A new RGB array of the same shape.
    """
    changed = np.empty_like(image)
    rows = max(_STRIP // image[0].nbytes, 1)
    buffer = np.empty_like(image[:rows])
    for top in range(0, len(image), rows):
        strip = image[top : top + rows]
        hsv = buffer[: len(strip)]
        cv2.cvtColor(strip, cv2.COLOR_RGB2HSV_FULL, dst=hsv)
        change(hsv)
        cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB_FULL, dst=changed[top : top + rows])
    return changed

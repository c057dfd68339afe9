"""Hue and value of 8-bit pixels on the 0-255 scale, as Pillow's `HSV` mode has it.

OpenCV's `_FULL` conversion is the engine: the same scale as Pillow, several times faster. Both round to
8 bits, in different places, so single pixels differ by some levels (the tests hold the mean).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]

Change = Callable[[Pixels, Pixels], object]
"""Reads hue, saturation and value of some rows and writes them, changed, to a second array of the same shape."""

_STRIP = 1 << 17
"""Bytes of a strip of rows: small enough for the cache, so that the pixels travel to memory once (2 x faster)."""


def in_hsv(image: Pixels, changes: Sequence[Change]) -> list[Pixels]:
    """Applies changes of hue, saturation and value, each to the image as it is.

    A change that only copies is the 8-bit round trip: a mean error of about half a level.

    Args:
        image: RGB, (H, W, 3), contiguous.
        changes: What to do; the conversion to HSV is shared.

    Returns:
        A new RGB array of the same shape per change.
    """
    changed = [np.empty_like(image) for _ in changes]
    rows = max(_STRIP // image[0].nbytes, 1)
    before, after = np.empty_like(image[:rows]), np.empty_like(image[:rows])
    for top in range(0, len(image), rows):
        strip = image[top : top + rows]
        hsv, into = before[: len(strip)], after[: len(strip)]
        cv2.cvtColor(strip, cv2.COLOR_RGB2HSV_FULL, dst=hsv)
        for change, rgb in zip(changes, changed, strict=True):
            change(hsv, into)
            cv2.cvtColor(into, cv2.COLOR_HSV2RGB_FULL, dst=rgb[top : top + rows])
    return changed

"""Pillow's Gaussian blur: three box blurs along the rows, then three along the columns, in whole numbers.

A process's first pictures are left to Pillow itself.
"""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import ImageFilter

from truegap.perturbations.compiled import compiled, pays_by_now
from truegap.perturbations.pictures import Pixels, picture_of, pixels_of

PASSES = 3
"""Box blurs in each direction."""

_ONE = 1 << 24
"""Weights are counted in this part of one, as Pillow counts them."""

_word, _level = np.uint32, np.uint8  # numba takes these for casts


def gaussian_blur(image: Pixels, radius: float) -> Pixels:
    """What `ImageFilter.GaussianBlur(radius)` of Pillow gives, level by level, some five times faster.

    Args:
        image: RGB (H, W, 3), or RGBX (H, W, 4).
        radius: Standard deviation in pixels.

    Returns:
        A new array of the same shape.
    """
    if not pays_by_now(image[..., 0].size):
        picture = picture_of(image).filter(ImageFilter.GaussianBlur(radius))
        return pixels_of(picture)[..., : image.shape[2]].copy()
    box = box_of(radius)
    turned = cv2.transpose(image)
    blurred = np.empty_like(turned)
    _blur_down(turned.reshape(len(turned), -1), blurred.reshape(len(turned), -1), box)
    # Each array serves twice: fresh memory would cost as much as a pass.
    upright = cv2.transpose(blurred, dst=turned.reshape(image.shape))
    result: Pixels = blurred.reshape(image.shape)
    _blur_down(upright.reshape(len(image), -1), result.reshape(len(image), -1), box)
    return result


def _blur_down(source: NDArray[np.uint8], blurred: NDArray[np.uint8], box: tuple[int, int, int]) -> None:
    """All passes, to and fro between two matrices of bytes; an odd number of them ends in the second."""
    for _ in range(PASSES):
        _average_down(source, blurred, *box)
        source, blurred = blurred, source


def box_of(radius: float) -> tuple[int, int, int]:
    """The box that Pillow takes for a Gaussian, with a fractional width, in Pillow's single precision.

    Returns:
        How many pixels on each side of the middle count whole; the weight of those; and of the one beyond on each side.

    >>> box_of(10), box_of(40)
    ((9, 840963, 399459), (39, 209747, 103601))
    """
    single = np.float32
    variance = single(radius) * single(radius) / single(PASSES)
    length = single(math.sqrt(12.0 * float(variance) + 1.0))
    inner = single(math.floor((float(length) - 1.0) / 2.0))
    outer = inner + 1
    beyond = (2 * inner + 1) * (inner * outer - 3 * variance) / (6 * (variance - outer * outer))
    reach = inner + beyond
    whole = int(reach)
    weight = int(single(_ONE) / (reach * 2 + 1))
    return whole, weight, (_ONE - (whole * 2 + 1) * weight) // 2


@compiled
def _average_down(before: NDArray[np.uint8], after: NDArray[np.uint8], reach: int, weight: int, edge: int) -> None:
    """One pass down every column of a matrix of bytes; beyond its ends it goes on as the last row."""
    rows, width = before.shape
    last = rows - 1
    whole, beyond, half = _word(weight), _word(edge), _word(_ONE // 2)
    inside = min(reach, last)
    total = np.empty(width, np.uint32)
    for x in range(width):
        total[x] = _word(before[0, x]) * _word(reach + 1) + _word(before[last, x]) * _word(reach - inside)
    for y in range(1, inside + 1):
        row = before[y]
        for x in range(width):
            total[x] = _word(total[x] + _word(row[x]))
    for y in range(rows):
        above, oldest = before[max(y - reach - 1, 0)], before[max(y - reach, 0)]
        below, out = before[min(y + reach + 1, last)], after[y]
        for x in range(width):
            # Cast at each step: what is not cast, numba widens to 64 bits, and half as many are done at a time.
            inner, ends = total[x], _word(_word(above[x]) + _word(below[x]))
            mean = _word(_word(inner * whole) + _word(ends * beyond) + half)
            out[x] = _level(mean >> _word(24))
            total[x] = _word(inner + _word(below[x]) - _word(oldest[x]))

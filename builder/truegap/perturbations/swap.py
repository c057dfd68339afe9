"""Background swap: the person in front of another picture's background (a control that no paper has).

Two arms do equal damage: the background of a picture of the same gender, and of the other. Their difference is what a
background that is typical of a gender does.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from truegap.perturbations.pictures import Pixels

_INPAINT_SIDE = 256
"""Long side at which persons are painted over: what is behind them is made up anyway."""

_MARGIN = 5
"""Pixels around a person that are painted over too, at that size."""


def swap_background(image: Pixels, person: NDArray[np.bool_], donor: Pixels, donor_person: NDArray[np.bool_]) -> Pixels:
    """Puts the persons of one image in front of the background of another.

    Args:
        image: RGB, (H, W, 3), or RGBX, (H, W, 4).
        person: (H, W), True where a person is; those pixels come back untouched.
        donor: RGB or RGBX of any size; its persons are painted over (OpenCV's inpainting), and it is scaled and cropped
            about its middle to the size of the image.
        donor_person: True where a person of the donor is.

    Returns:
        A new RGB array, (H, W, 3).
    """
    background = cover(without_person(_rgb(donor), donor_person), image.shape[:2])
    cv2.copyTo(_rgb(image), person.view(np.uint8), background)
    return background


def _rgb(image: Pixels) -> Pixels:
    """Without the fourth channel, which inpainting does not take."""
    return np.ascontiguousarray(image[..., :3])


def without_person(image: Pixels, person: NDArray[np.bool_]) -> Pixels:
    """The image with its persons painted over from around them."""
    height, width = image.shape[:2]
    scale = min(_INPAINT_SIDE / max(height, width), 1.0)
    # Of a picture one pixel high or wide, inpainting reads what lies beside it.
    size = (max(round(width * scale), 2), max(round(height * scale), 2))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    mask = cv2.resize(person.view(np.uint8), size, interpolation=cv2.INTER_AREA)
    mask = cv2.dilate(np.minimum(mask, 1), np.ones((_MARGIN, _MARGIN), np.uint8))
    painted = cv2.resize(cv2.inpaint(small, mask, 3, cv2.INPAINT_TELEA), (width, height))
    whole = cv2.resize(mask, (width, height), interpolation=cv2.INTER_NEAREST) | person.view(np.uint8)
    filled = image.copy()
    cv2.copyTo(painted, whole, filled)
    return filled


def cover(image: Pixels, size: tuple[int, int]) -> Pixels:
    """The image scaled to fill a size `(height, width)`, and cropped about its middle."""
    height, width = size
    scale = max(height / image.shape[0], width / image.shape[1])
    scaled = (max(round(image.shape[1] * scale), width), max(round(image.shape[0] * scale), height))
    resized = cv2.resize(image, scaled, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)
    left, top = (scaled[0] - width) // 2, (scaled[1] - height) // 2
    return np.ascontiguousarray(resized[top : top + height, left : left + width])

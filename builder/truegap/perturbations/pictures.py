"""Pillow's pictures as arrays and back.

Pillow keeps four bytes per RGB pixel, of which the last means nothing (RGBX). Taken as they are, they travel twice as
fast as three channels do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]
"""RGB (H, W, 3), or RGBX (H, W, 4)."""

_CHANNELS = 4


def pixels_of(picture: Image.Image) -> Pixels:
    """The pixels of a picture, converted to RGB if it is something else.

    Returns:
        RGBX (H, W, 4), not to be written to.
    """
    rgb = picture if picture.mode == "RGB" else picture.convert("RGB")
    pixels = np.frombuffer(rgb.tobytes("raw", "RGBX"), np.uint8)
    return pixels.reshape(rgb.height, rgb.width, _CHANNELS)


def picture_of(pixels: Pixels) -> Image.Image:
    """The picture of some pixels.

    Args:
        pixels: uint8, RGB (H, W, 3) or RGBX (H, W, 4).

    Returns:
        A picture of mode RGB with memory of its own; its fourth bytes, which mean nothing, are those given.

    Raises:
        TypeError: They are something else, of which Pillow would take bytes as they come.
    """
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] not in (3, _CHANNELS):  # noqa: PLR2004
        raise TypeError(f"pixels are {pixels.dtype} {pixels.shape}: give uint8 RGB or RGBX (height, width, 3 or 4)")
    height, width, channels = pixels.shape
    # Not filled beforehand, which would cost more than the copy.
    picture = Image.new("RGB", (width, height), None)
    picture.frombytes(np.ascontiguousarray(pixels).data, "raw", "RGBX" if channels == _CHANNELS else "RGB")
    return picture

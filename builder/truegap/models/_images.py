"""From arrays and pictures to upright RGB images."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

ImageLike = Image.Image | npt.NDArray[np.uint8]

CHANNELS = 3


def as_image(image: ImageLike) -> Image.Image:
    """An upright RGB image from a PIL image or a uint8 array `(height, width, 3)` in RGB.

    Raises:
        ValueError: It is neither.
    """
    if isinstance(image, Image.Image):
        return ImageOps.exif_transpose(image).convert("RGB")
    if isinstance(image, np.ndarray) and image.dtype == np.uint8 and image.ndim == CHANNELS:
        if image.shape[2] != CHANNELS or not image.size:
            raise ValueError(f"an image array has shape {image.shape}: (height, width, 3) is needed")
        return Image.fromarray(image)
    kind = f"an array of {image.dtype}" if isinstance(image, np.ndarray) else type(image).__name__
    raise ValueError(f"an image is {kind}: a PIL image or a uint8 array (height, width, 3) is needed")

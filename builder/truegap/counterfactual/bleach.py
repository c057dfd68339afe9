"""Gender bleaching: the person without colour, everything else as it was (Xiao et al. 2024)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from truegap.build.images import UnusableImageError, decode
from truegap.counterfactual.marks import read_mark, sha256, write_image
from truegap.counterfactual.persons import person_mask
from truegap.counterfactual.pictures import Picture
from truegap.regions.masks import MaskError
from truegap.schema import Region

_RGB = 3

ImageT = TypeVar("ImageT", NDArray[np.uint8], Image.Image)


def bleach(image: ImageT, person: NDArray[np.bool_]) -> ImageT:
    """Converts the person's pixels to grayscale (luma of ITU-R BT.601); all others stay.

    >>> red = np.full((1, 2, 3), (255, 0, 0), np.uint8)
    >>> bleach(red, np.array([[True, False]])).tolist()
    [[[76, 76, 76], [255, 0, 0]]]

    Args:
        image: RGB, uint8 (H, W, 3), or a PIL image of any mode, which is turned upright.
        person: (H, W), True where a person is.

    Returns:
        A new image of the same type and size, RGB.

    Raises:
        ValueError: The image is no such array, or the mask has another shape or type.
    """
    if isinstance(image, Image.Image):
        upright = ImageOps.exif_transpose(image).convert("RGB")
        return Image.fromarray(_bleach(np.asarray(upright), person))
    bleached: NDArray[np.uint8] = _bleach(image, person)
    return bleached


def bleach_pictures(
    folder: Path,
    pictures: Sequence[Picture],
    persons: Mapping[str, Sequence[Region]],
    advance: Callable[[int], None] = lambda _images: None,
) -> tuple[int, Counter[str]]:
    """Bleaches base images; one that was bleached with the same mask before is left as it is.

    Args:
        folder: Of the benchmark.
        pictures: What to bleach.
        persons: By image id of the base (its path from the folder); a person without a mask cannot be bleached.
        advance: Called with 1 after each image.

    Returns:
        How many were bleached now, and how many cannot be, by reason.
    """
    made = 0
    left_out: Counter[str] = Counter()
    for picture in pictures:
        base, path = folder / picture.path("base"), folder / picture.path("bleached")
        found = persons.get(picture.path("base"), ())
        advance(1)
        try:
            mark = {
                "base": sha256(base),
                "persons": [{"mask": each.mask, "origin": each.origin} for each in found],
            }
            if path.is_file() and read_mark(path) == mark:
                continue
            # What stands there belongs to another mask.
            path.unlink(missing_ok=True)
            pixels = decode(base.read_bytes())
            mask = person_mask(found, (pixels.shape[0], pixels.shape[1]))
        except OSError:
            left_out["no base image"] += 1
            continue
        except (UnusableImageError, MaskError) as problem:
            left_out[str(problem)] += 1
            continue
        if mask is None:
            left_out["nobody was detected" if not found else "a person has no mask"] += 1
            continue
        write_image(path, Image.fromarray(bleach(pixels, mask)), mark)
        made += 1
    return made, left_out


def _bleach(image: NDArray[np.uint8], person: NDArray[np.bool_]) -> Any:
    import cv2

    if image.dtype != np.uint8 or image.ndim != _RGB or image.shape[2] != _RGB:
        raise ValueError(f"image of {image.dtype}, shape {image.shape}: uint8 (height, width, 3) is needed")
    if person.dtype != np.bool_ or person.shape != image.shape[:2]:
        raise ValueError(f"mask of {person.dtype}, shape {person.shape}: bool {image.shape[:2]} is needed")
    source = np.ascontiguousarray(image)
    gray = cv2.cvtColor(cv2.cvtColor(source, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
    bleached = source.copy()
    cv2.copyTo(gray, np.ascontiguousarray(person).view(np.uint8), bleached)
    return bleached

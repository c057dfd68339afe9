"""Who is in the images, by the recipes of `truegap.regions`: a detections file or detectors, with masks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from truegap.counterfactual.pictures import Kind, Picture
from truegap.regions import masks
from truegap.schema import GENDERS, Example, FilterStep, ImageFile, Region, Selection


def as_selection(folder: Path, pictures: Sequence[Picture], kinds: Sequence[Kind]) -> Selection:
    """The images as a source would give them, so that a recipe can find persons; unreadable ones are left out.

    The image id is the path from the folder, such as `base/Pilot/female/female_Pilot_0.png`; a detections file names
    images so, since base and counterfactual have one file name.
    """
    found = ((each, kind, _size(folder / each.path(kind))) for each in pictures for kind in kinds)
    examples = [
        Example(
            each.path(kind), each.shown(kind), ImageFile(folder / each.path(kind)), size, (), source=each.path(kind)
        )
        for each, kind, size in found
        if size is not None
    ]
    counts = (sum(example.gender == gender for example in examples) for gender in GENDERS)
    return Selection(examples, [FilterStep("images", *counts)], [])


def persons_of(selection: Selection) -> dict[str, tuple[Region, ...]]:
    """The persons in each image, by image id; an image in which nobody was found is absent."""
    return {example.image_id: example.persons for example in selection.examples}


def person_mask(persons: Sequence[Region], size: tuple[int, int]) -> NDArray[np.bool_] | None:
    """All persons of an image as one mask; None if there is nobody, or somebody without a mask.

    Args:
        persons: Regions.
        size: `(height, width)` of the image.

    Raises:
        MaskError: A mask is not one of an image of this size.
    """
    found = [person.mask for person in persons if person.mask is not None]
    if not found or len(found) < len(persons):
        return None
    return masks.decode(masks.union(found, size), size)


def _size(path: Path) -> tuple[int, int] | None:
    try:
        with Image.open(path, formats=["PNG", "JPEG", "WEBP"]) as image:
            width, height = image.size
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    return height, width

"""Rows of a loaded dataset as the perturbations need them: those of a built benchmark, and a user's own.

A row has `image` and `image_id`. Persons are in `person_boxes` (and, if there are any, `person_masks`), or in
`persons` with a `box` each; other things in `objects`. Both are a list of records or, as `datasets` writes detections,
a record of lists. A box is `[x, y, width, height]` in pixels, called `box` or `bbox`; a mask is optional: COCO's run
lengths or polygons, an array, or a picture of the image's size. An object may have `id` and `label` (or `category`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from truegap.build.images import UnusableImageError, opened
from truegap.build.rows import Regions, regions_of
from truegap.errors import UserError, first_line
from truegap.perturbations.pictures import pixels_of
from truegap.regions import masks
from truegap.regions.boxes import around, four, segmentation
from truegap.regions.masks import MaskError
from truegap.schema import Box, Region, Size

PERSONS = ("persons", "person_boxes", "person_masks")
"""Any of these columns says who is a person."""

Row = Mapping[str, Any]


def row_id(row: Row) -> str:
    """The image's id, which is part of the random key.

    Raises:
        UserError: It has none.
    """
    image_id = row["image_id"]
    if not isinstance(image_id, str | int | np.integer) or image_id == "":
        raise UserError(f"image_id is {_kind(image_id)}: give every image a text or a number of its own")
    return str(image_id)


def row_pixels(image: Any) -> NDArray[np.uint8]:
    """RGB (H, W, 3), or RGBX (H, W, 4), of a decoded or encoded image.

    Raises:
        MaskError: It is none.
    """
    if isinstance(image, Image.Image):
        return pixels_of(image)
    if isinstance(image, Mapping) and isinstance(image.get("bytes"), bytes):
        try:
            return pixels_of(opened(image["bytes"]))
        except UnusableImageError as error:
            raise MaskError(str(error)) from None
    if isinstance(image, Mapping) and image.get("path"):
        return _filed(image)
    if isinstance(image, np.ndarray) and image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 3:  # noqa: PLR2004
        return image
    raise MaskError(f"image is {_kind(image)}; give a picture, or uint8 RGB (height, width, 3)")


def _filed(image: Mapping[str, Any]) -> NDArray[np.uint8]:
    """The pixels of an image of which the row has the place alone, read as `datasets` reads it."""
    from datasets import Image as ImageColumn

    try:
        return pixels_of(ImageColumn().decode_example(dict(image)))
    except (OSError, ValueError) as error:
        raise MaskError(f"{image['path']} cannot be read ({first_line(error)})") from None


def check_size(row: Row, size: Size) -> None:
    """That an image has the size for which it was annotated, where the row says so.

    Raises:
        MaskError: It has another one.
    """
    told = (row.get("height", size[0]), row.get("width", size[1]))
    if told != size:
        raise MaskError(f"image is {size[1]} x {size[0]}, its annotation for {told[1]} x {told[0]}")


def row_regions(row: Row, size: Size, *, with_masks: bool) -> Regions:
    """The persons and objects of a row.

    Args:
        row: The row.
        size: `(height, width)` of its image.
        with_masks: Whether objects' masks are decoded.

    Raises:
        MaskError: A box or a mask cannot be used, or two objects have one id.
    """
    persons = [_region(each, place, "person", size) for place, each in enumerate(_persons(row))]
    things = _records(row.get("objects"))
    objects = [_region(each, place, "object", size, with_mask=with_masks) for place, each in enumerate(things)]
    if len({each.id for each in objects}) < len(objects):
        raise MaskError("two objects have one id")
    return regions_of(tuple(persons), tuple(objects), size, with_masks=with_masks)


def _persons(row: Row) -> list[Row]:
    if row.get("persons") is not None:
        return _records(row["persons"])
    boxes, drawn = row.get("person_boxes"), row.get("person_masks")
    count = len(boxes if boxes is not None else drawn if drawn is not None else ())
    return [
        {"box": None if boxes is None else boxes[place], "mask": None if drawn is None else drawn[place]}
        for place in range(count)
    ]


def _records(value: Any) -> list[Row]:
    """A list of records, which may be written as a record of lists."""
    if value is None:
        return []
    if isinstance(value, Mapping):
        columns = {name: list(each) for name, each in value.items() if each is not None}
        if len({len(each) for each in columns.values()}) > 1:
            raise MaskError("columns of its persons or objects have several lengths")
        return [dict(zip(columns, each, strict=True)) for each in zip(*columns.values(), strict=True)]
    if isinstance(value, Sequence) and all(isinstance(each, Mapping) for each in value):
        return list(value)
    raise MaskError(f"persons or objects are {_kind(value)}; give a list of records with a box each")


def _region(record: Row, place: int, kind: str, size: Size, *, with_mask: bool = True) -> Region:
    box = record.get("box", record.get("bbox"))
    # Masks cost most of the time: those that play no part are not looked at.
    mask = _mask(record.get("mask", record.get("segmentation")), size) if with_mask or box is None else None
    number = record.get("id", place)
    label = record.get("label", record.get("category", kind))
    if not isinstance(number, int | np.integer):
        raise MaskError(f"id of a thing is {_kind(number)}; give whole numbers")
    return Region(int(number), str(label), _box(box, mask, size), mask)


def _box(value: Any, mask: str | None, size: Size) -> Box:
    if value is not None:
        return four(value.tolist() if isinstance(value, np.ndarray) else value)
    if mask is None:
        raise MaskError("a person or object has neither box nor mask")
    if not masks.area(mask, size):
        raise MaskError("mask is empty")
    return around(mask, size)


def _mask(value: Any, size: Size) -> str | None:
    if value is None or (isinstance(value, list) and not value):
        return None
    if isinstance(value, str):
        return value  # `regions_of` finds out what is wrong with it
    if isinstance(value, Mapping) and "bytes" in value:
        value = row_pixels(value)[..., :3].any(axis=2)
    if isinstance(value, Image.Image):
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        if value.shape != size:
            raise MaskError(f"mask has shape {value.shape}, the image {size}")
        return masks.encode(value)
    return segmentation(value, size)


def _kind(value: object) -> str:
    return f"an array of {value.dtype} {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__

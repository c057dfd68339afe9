"""Boxes and masks as archives write them, brought to pixels inside of the image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from truegap.files.values import number
from truegap.regions import masks
from truegap.regions.masks import MaskError
from truegap.schema import Box, Size

CUT = "box cut at the border of the image"

_MARGIN = 0.5
"""Pixels by which a box may pass the border before it counts as cut; COCO rounds to hundredths."""


class Unusable(Exception):  # noqa: N818  # a signal from here to the source
    """An image whose persons cannot be trusted; the message says why."""


def clipped(values: Any, size: Size) -> tuple[Box, bool]:
    """The part of a box inside of the image, and whether that is clearly less than the box.

    Args:
        values: `[x, y, width, height]` in pixels.
        size: `(height, width)` of the image.

    Raises:
        MaskError: These are not four numbers, or nothing of the box is inside.
    """
    x, y, width, height = four(values)
    if width <= 0 or height <= 0:
        raise MaskError("box has no area")
    left, top = max(x, 0.0), max(y, 0.0)
    right, bottom = min(x + width, float(size[1])), min(y + height, float(size[0]))
    if right <= left or bottom <= top:
        raise MaskError("box is outside of the image")
    beyond = max(left - x, top - y, x + width - right, y + height - bottom)
    # A box inside is kept to the last digit: x + width - x is not always width.
    box = (left, top, right - left, bottom - top) if beyond > 0 else (x, y, width, height)
    return box, beyond > _MARGIN


def from_corners(values: Any) -> Box:
    """`(x, y, width, height)` of `[x1, y1, x2, y2]`.

    Raises:
        MaskError: These are not four numbers.
    """
    left, top, right, bottom = four(values)
    return left, top, right - left, bottom - top


def scaled(box: Box, size: Size) -> Box:
    """A box in shares of the image, in pixels of an image of this size."""
    return box[0] * size[1], box[1] * size[0], box[2] * size[1], box[3] * size[0]


def overlap(one: Box, other: Box) -> float:
    """Intersection over union of two boxes, 0 to 1."""
    width = min(one[0] + one[2], other[0] + other[2]) - max(one[0], other[0])
    height = min(one[1] + one[3], other[1] + other[3]) - max(one[1], other[1])
    common = max(width, 0.0) * max(height, 0.0)
    union = one[2] * one[3] + other[2] * other[3] - common
    return common / union if union > 0 else 0.0


def four(values: Any) -> Box:
    """Four finite numbers.

    Raises:
        MaskError: It is anything else.
    """
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != 4:  # noqa: PLR2004
        raise MaskError("box is not four finite numbers")
    first, second, third, fourth = (None if isinstance(value, str) else number(value) for value in values)
    if first is None or second is None or third is None or fourth is None:
        raise MaskError("box is not four finite numbers")
    return first, second, third, fourth


def segmentation(value: Any, size: Size) -> str:
    """Polygons, runs as integers or compressed runs, as counts for an image of this size."""
    if isinstance(value, list) and value:
        return masks.from_polygons(value, size)
    if not isinstance(value, dict):
        raise MaskError("no segmentation")
    if value.get("size") != list(size):
        raise MaskError("mask has another size than the image")
    runs: Any = value.get("counts")
    counts = runs if isinstance(runs, str) else masks.from_uncompressed(runs, size)
    if masks.area(counts, size) == 0:
        raise MaskError("mask is empty")
    return counts


def around(counts: str, size: Size) -> Box:
    """The smallest box around a mask that is not empty."""
    inside = masks.decode(counts, size)
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    left, top = float(columns[0]), float(rows[0])
    return left, top, float(columns[-1]) + 1 - left, float(rows[-1]) + 1 - top

"""Object placebo: the same rectangles where nothing is, damage without meaning (a control that no paper has)."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from truegap.perturbations.keys import Key
from truegap.perturbations.objects import pixel_bounds
from truegap.schema import Box, Region

_TRIES = 64
"""Places that are tried for a rectangle; the first free one is taken, else the one that overlaps least."""


def place_rectangles(
    key: Key, drawn: Sequence[Region], objects: Sequence[Region], person: NDArray[np.bool_]
) -> tuple[tuple[Box, ...], int]:
    """Places one rectangle per drawn object, of its size, off objects, persons and one another.

    Args:
        key: Of the image and the feature `object`, so that the same objects are meant.
        drawn: The objects that the config of the same strength blacks out, in the order in which they were drawn.
        objects: All objects of the image.
        person: (H, W), True where a person is.

    Returns:
        The rectangles in whole pixels, and how many of them found no free place.
    """
    height, width = person.shape
    taken = person.astype(np.uint8)
    for each in objects:
        left, top, right, bottom = pixel_bounds(each.box)
        taken[top:bottom, left:right] = 1
    boxes: list[Box] = []
    overlapping = 0
    for each in drawn:
        left, top, right, bottom = pixel_bounds(each.box)
        wide, high = min(right, width) - min(left, width), min(bottom, height) - min(top, height)
        x, y, overlap = _place(key, each.id, (wide, high), taken)
        taken[y : y + high, x : x + wide] = 1
        boxes.append((float(x), float(y), float(wide), float(high)))
        overlapping += overlap > 0
    return tuple(boxes), overlapping


def _place(key: Key, object_id: int, size: tuple[int, int], taken: NDArray[np.uint8]) -> tuple[int, int, int]:
    """Left, top and how many taken pixels are covered."""
    (wide, high), (height, width) = size, taken.shape
    xs, ys = (
        np.array([int(key.uniform("placebo", object_id, axis, n) * (room + 1)) for n in range(_TRIES)])
        for axis, room in (("x", width - wide), ("y", height - high))
    )
    # Sums over any rectangle from four corners of the table of running sums.
    sums = cv2.integral(taken)
    covered = sums[ys + high, xs + wide] - sums[ys, xs + wide] - sums[ys + high, xs] + sums[ys, xs]
    best = int(covered.argmin())
    return int(xs[best]), int(ys[best]), int(covered[best])

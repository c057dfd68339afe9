"""Objects: a random share of them, blacked out; never a person."""

from __future__ import annotations

import math
from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from truegap.perturbations.keys import Key
from truegap.perturbations.options import Options
from truegap.perturbations.pictures import Pixels
from truegap.schema import Box, Strength

SHARE = {Strength.WEAK: 0.1, Strength.MIDDLE: 0.2, Strength.STRONG: 0.3}
"""Share of the objects that is blacked out (Hirota et al. 2025, section 3)."""


def draw_objects(key: Key, strength: Strength, ids: Sequence[int], options: Options) -> tuple[int, ...]:
    """Which objects are blacked out, in the order in which they are drawn.

    A stronger draw extends a weaker one: the order and the numbers that decide do not depend on the strength.

    Args:
        key: Of the image and the feature `object`.
        strength: Decides the share.
        ids: Ids of all the image's objects, unique.
        options: `count` says how share x n becomes a whole number.
    """
    share = SHARE[strength]
    order = key.order(ids)
    if options.count == "bernoulli":
        return tuple(each for each in order if key.uniform("bernoulli", each) < share)
    # 0.1 x 30 is a little more than 3 in floating point; nobody means that.
    exact = round(share * len(order), 9)
    count = math.ceil(exact) if options.count == "ceil" else math.floor(exact + key.uniform("count"))
    return tuple(order[:count])


def black_out(image: Pixels, shapes: Sequence[Box | NDArray[np.bool_]], person: NDArray[np.bool_] | None) -> Pixels:
    """Blacks out boxes and masks.

    Args:
        image: RGB, (H, W, 3), or RGBX, (H, W, 4).
        shapes: What to black out, each a box in pixels or a mask (H, W).
        person: (H, W), True where a person is; those pixels come back untouched. None protects nobody.

    Returns:
        A new array of the same shape.
    """
    blacked = image.copy()
    for shape in shapes:
        if isinstance(shape, np.ndarray):
            blacked[shape if person is None else shape & ~person] = 0
            continue
        left, top, right, bottom = pixel_bounds(shape)
        inside = slice(top, bottom), slice(left, right)
        blacked[inside] = 0
        if person is not None and blacked[inside].size:
            # Only there: the rest of the persons is as it was.
            cv2.copyTo(image[inside], person[inside].view(np.uint8), blacked[inside])
    return blacked


def remove_person(image: Pixels, person: NDArray[np.bool_], *, removal: str = "mask") -> Pixels:
    """Blacks out the persons: a gap that stays when nobody is in the picture is made by the context.

    Args:
        image: RGB, (H, W, 3), or RGBX, (H, W, 4).
        person: (H, W), True where a person is.
        removal: `mask` (the outline stays visible) or `box` (the rectangle around all persons).

    Returns:
        A new array of the same shape.
    """
    if removal == "mask" or not person.any():
        return black_out(image, [person], None)
    rows, columns = np.flatnonzero(person.any(axis=1)), np.flatnonzero(person.any(axis=0))
    box = (columns[0], rows[0], columns[-1] + 1 - columns[0], rows[-1] + 1 - rows[0])
    return black_out(image, [box], None)


def pixel_bounds(box: Box) -> tuple[int, int, int, int]:
    """Left, top, right, bottom of the pixels that a box touches, the last two exclusive.

    >>> pixel_bounds((1.5, 2.0, 3.0, 1.0))
    (1, 2, 5, 3)
    """
    x, y, width, height = box
    return max(math.floor(x), 0), max(math.floor(y), 0), max(math.ceil(x + width), 0), max(math.ceil(y + height), 0)

"""What people pass for masks, objects and options: converted where it is plain what is meant, else one clear line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from truegap.perturbations.options import Options
from truegap.schema import Region, Size

Mask = NDArray[np.bool_]

MaskLike = Mask | NDArray[np.uint8] | Image.Image
"""(H, W): booleans; uint8 of 0 and 1, or of 0 and 255; or a PIL image of mode `1` or `L` with such values."""

_MODES = ("1", "L")
_TOPS = (0, 1, 255)

_LARGEST_SHIFT = 255
_LARGEST_RADIUS = 10_000


def as_mask(mask: Any, what: str, size: Size) -> Mask:
    """A mask as booleans.

    >>> as_mask(np.array([[0, 255]], np.uint8), "person_mask", (1, 2)).tolist()
    [[False, True]]

    Args:
        mask: A `MaskLike`.
        what: Its name, for the message.
        size: `(height, width)` of its image.

    Returns:
        (H, W), True inside; `mask` itself where it holds booleans.

    Raises:
        TypeError: It is neither an array nor a PIL image.
        ValueError: Its mode, type, values or shape leave open what is meant, such as grey levels.
    """
    if isinstance(mask, Image.Image):
        if mask.mode not in _MODES:
            raise ValueError(f"{what} is a PIL image of mode {mask.mode}: give one of mode 1 or L")
        mask = np.asarray(mask)
    if not isinstance(mask, np.ndarray):
        raise TypeError(f"{what} is {kind(mask)}: give an array of booleans or a PIL image of mode 1 or L")
    if mask.dtype not in (np.bool_, np.uint8) or mask.shape != size:
        raise ValueError(f"{what} is {kind(mask)} {mask.shape}: give booleans of shape {size}")
    if mask.dtype == np.bool_:
        return mask
    inside, top = mask != 0, int(mask.max(initial=0))
    if top not in _TOPS or not np.array_equal(inside, mask == (top or 1)):
        raise ValueError(f"{what} holds other values than 0 and 1, or 0 and 255: for grey levels give `mask > 127`")
    return np.asarray(inside)


def as_shift(shift: Any) -> int:
    """A shift of hue or value; None is no shift.

    Raises:
        ValueError: It is no whole number, or one beyond the scale.
    """
    if shift is None:
        return 0
    if not isinstance(shift, Integral) or abs(int(shift)) > _LARGEST_SHIFT:
        raise ValueError(f"shift is {shift!r}: give a whole number from {-_LARGEST_SHIFT} to {_LARGEST_SHIFT}")
    return int(shift)


def as_radius(radius: Any) -> float:
    """The radius of a blur in pixels; None is no blur.

    Raises:
        ValueError: It is no number, negative, or beyond any picture.
    """
    if radius is None:
        return 0.0
    if not isinstance(radius, Real) or not 0 <= float(radius) <= _LARGEST_RADIUS:
        raise ValueError(f"radius is {radius!r}: give a number from 0 to {_LARGEST_RADIUS}")
    return float(radius)


def as_masks(masks: Any, size: Size) -> dict[int, Mask] | None:
    """Masks by object id as booleans; None stays None.

    Raises:
        TypeError: It is no mapping.
        ValueError: As for `as_mask`.
    """
    if masks is None:
        return None
    if not isinstance(masks, Mapping):
        raise TypeError(f"object_masks is {kind(masks)}: give a dict of masks by object id")
    return {each: as_mask(mask, f"mask of object {each}", size) for each, mask in masks.items()}


def as_regions(objects: Any) -> tuple[Region, ...]:
    """Objects, each looked at once, so that an iterator will do too.

    Raises:
        TypeError: They are no regions.
        ValueError: A box is not four finite numbers.
    """
    if isinstance(objects, str | bytes | Mapping | Region) or not isinstance(objects, Iterable):
        raise TypeError(f"objects is {kind(objects)}: give a list of truegap.schema.Region")
    regions = tuple(objects)
    for place, each in enumerate(regions):
        if not isinstance(each, Region):
            raise TypeError(f"objects[{place}] is {kind(each)}: give truegap.schema.Region(id, label, box)")
        if not _is_box(each.box):
            raise ValueError(f"objects[{place}]: box is {each.box!r}: give four finite numbers, x, y, width, height")
    return regions


def as_options(options: Any) -> Options:
    """The conventions; the defaults where None.

    Raises:
        TypeError: They are something else, such as a dict.
    """
    if options is None:
        return Options()
    if not isinstance(options, Options):
        example = "truegap.perturbations.Options, such as Options(shape='mask')"
        raise TypeError(f"options is {kind(options)}: give {example}")
    return options


def kind(value: object) -> str:
    """What something is, for a message."""
    return f"{type(value).__name__} of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__


def _is_box(box: Any) -> bool:
    try:
        return len(box) == 4 and all(math.isfinite(each) for each in box)  # noqa: PLR2004  x, y, width, height
    except TypeError:
        return False

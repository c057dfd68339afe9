"""Fine textures: what a background is made of, and the two patterns that a figure wears.

Every texture has mean 0 and the same spread, and nothing coarser than about a tenth of the picture: it says what
it is only through its fine structure, never through its colour or brightness, and a Gaussian blur of radius 10 (at
224 pixels) leaves none of it.
"""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from truegap.synthetic.draws import hashed

Plane = NDArray[np.float32]

TILE = 384
"""Side of a texture tile for pictures of 224 pixels; pictures are crops of it."""

ZOOMS = (0.85, 1.0, 1.15)
TILTS = (-15.0, 0.0, 15.0)
_OVER = 2
_LIMIT = 2.5


def _flat(raw: NDArray[np.uint8], side: int, coarsest: float) -> Plane:
    """Shrink, take away everything coarse, and scale to mean 0 and standard deviation 1."""
    plane = cv2.resize(raw, (side, side), interpolation=cv2.INTER_AREA).astype(np.float32)
    for _ in range(2):
        plane -= cv2.GaussianBlur(plane, (0, 0), coarsest)
        plane = np.clip((plane - plane.mean()) / plane.std(), -_LIMIT, _LIMIT)
    return np.asarray((plane - plane.mean()) / plane.std(), dtype=np.float32)


def _masonry(side: int, unit: float) -> NDArray[np.uint8]:
    """Courses of bricks of about 17 x 9 pixels, each shaded a little differently, with dark joints."""
    raw = np.full((side, side), 60, np.uint8)
    width, height, joint = 17 * unit, 9 * unit, 1.9 * unit
    for row in range(int(side / height) + 2):
        for column in range(int(side / width) + 2):
            x, y = (column - 0.5 * (row % 2)) * width, row * height
            tone = 150 + int(81 * hashed("brick", row, column))
            cv2.rectangle(raw, (round(x), round(y)), (round(x + width - joint), round(y + height - joint)), tone, -1)
    return raw


def _foliage(side: int, unit: float) -> NDArray[np.uint8]:
    """Leaves of about 13 x 6 pixels, lying in all directions on dark ground."""
    raw = np.full((side, side), 60, np.uint8)
    axes = (round(6.5 * unit), round(2.9 * unit))
    for leaf in range(int(2.6 * (side / (8 * unit)) ** 2)):
        x, y, angle, tone = (hashed("leaf", leaf, what) for what in ("x", "y", "angle", "tone"))
        at, degrees = (int(x * side), int(y * side)), int(360 * angle)
        cv2.ellipse(raw, at, axes, degrees, 0, 360, 130 + int(121 * tone), -1)
        cv2.ellipse(raw, at, axes, degrees, 0, 360, 60, max(1, round(0.8 * unit)))
    return raw


_FAMILIES = {"masonry": _masonry, "foliage": _foliage}


@lru_cache(maxsize=8)
def _raw(family: str, side: int, unit: float) -> NDArray[np.uint8]:
    return _FAMILIES[family](side, unit)


@lru_cache(maxsize=64)
def background_tile(family: str, zoom: float, tilt: float, size: int) -> Plane:
    """A tile of a background family.

    Args:
        family: `masonry` or `foliage`.
        zoom: Scale of the texture, one of `ZOOMS`.
        tilt: Degrees by which it is turned, one of `TILTS`.
        size: Side of the pictures that are cut from it, in pixels.

    Returns:
        Square plane with mean 0 and standard deviation 1; the same array on every call, not to be written to.
    """
    side = round(TILE * size / 224)
    unit = _OVER * zoom * size / 224
    raw = _raw(family, round(side * _OVER * 1.25), unit)
    turn = cv2.getRotationMatrix2D((raw.shape[1] / 2, raw.shape[0] / 2), tilt, 1.0)
    turned = cv2.warpAffine(raw, turn, (raw.shape[1], raw.shape[0]), flags=cv2.INTER_LINEAR)
    edge = (raw.shape[0] - side * _OVER) // 2
    plane = _flat(turned[edge : edge + side * _OVER, edge : edge + side * _OVER], side, 9 * size / 224)
    plane.flags.writeable = False
    return plane


@lru_cache(maxsize=8)
def garment_tile(pattern: str, size: int) -> Plane:
    """A tile of a garment's pattern: `zigzag` or `dots`, half of it -1 and half of it +1.

    Args:
        pattern: Which of the two designs.
        size: Side of the pictures, in pixels.

    Returns:
        Square plane of `size` pixels with mean 0, not to be written to.
    """
    scale = size / 224 * _OVER
    y, x = np.mgrid[0 : size * _OVER, 0 : size * _OVER].astype(np.float32) / scale
    period = 14.0
    if pattern == "zigzag":
        marks = ((y + np.abs((x % 20.0) - 10.0) * 0.9) % period) < period / 2
    else:
        row = np.floor(y / (period / 2))
        from_centre = np.hypot((x + (row % 2) * period / 2) % period - period / 2, 2 * (y % (period / 2) - period / 4))
        marks = from_centre < np.quantile(from_centre, 0.5)
    plane = cv2.resize(np.where(marks, 1.0, -1.0).astype(np.float32), (size, size), interpolation=cv2.INTER_AREA)
    plane = np.asarray(plane - plane.mean(), dtype=np.float32)
    plane.flags.writeable = False
    return plane

"""Masks as COCO's run-length counts, read with suspicion.

A mask is a string of counts for an image of a known size `(height, width)`: runs in column-major order, the first one
background. pycocotools writes outside its buffers when counts or polygons are malformed, so nothing reaches it here
before it has been checked. The reasons in `MaskError` hold no numbers: they can be counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truegap.schema import MAX_PIXELS, Size

_MAX_BOUNDARY = 4_000_000
"""Longest outline of a polygon in pixels; pycocotools allocates five points for each."""

_LONGEST_GROUP = 7
"""Characters of five bits that one run may take: 35 bits, more than `MAX_PIXELS` needs."""


class MaskError(ValueError):
    """A mask that cannot be used; the message is a short reason without numbers."""


def encode(mask: NDArray[Any]) -> str:
    """Compress a mask.

    Args:
        mask: Shape (height, width), bool or integer; everything but 0 is inside.

    Returns:
        COCO's compressed counts.

    Raises:
        MaskError: The mask is not two-dimensional, or empty, or too large.
    """
    from pycocotools import mask as coco

    if mask.ndim != 2:  # noqa: PLR2004
        raise MaskError("mask is not two-dimensional")
    _check_size((mask.shape[0], mask.shape[1]))
    return _text(coco.encode(np.asfortranarray(mask != 0, dtype=np.uint8)))


def decode(counts: str, size: Size) -> NDArray[np.bool_]:
    """Expand a mask.

    Args:
        counts: COCO's compressed counts.
        size: `(height, width)` in pixels.

    Returns:
        Shape (height, width), C-contiguous, true inside.

    Raises:
        MaskError: The counts do not describe a mask of this size.
    """
    import cv2

    height, width = _check_size(size)
    runs = _runs(counts, size)
    inside = (np.arange(len(runs)) & 1).astype(np.uint8)
    # NumPy transposes several times more slowly.
    mask: NDArray[np.uint8] = cv2.transpose(np.repeat(inside, runs).reshape(width, height))
    return mask.view(np.bool_)


def area(counts: str, size: Size) -> int:
    """Pixels inside a mask.

    Raises:
        MaskError: The counts do not describe a mask of this size.
    """
    return int(_runs(counts, size)[1::2].sum())


def union(masks: Sequence[str], size: Size) -> str:
    """The mask of everything that is inside at least one of `masks`; of none, the empty mask.

    Raises:
        MaskError: One of them does not describe a mask of this size.
    """
    from pycocotools import mask as coco

    height, width = _check_size(size)
    if not masks:
        return from_uncompressed([height * width], size)
    for counts in masks:
        _runs(counts, size)
    return _text(coco.merge([{"counts": counts.encode("ascii"), "size": [height, width]} for counts in masks]))


def from_uncompressed(counts: Sequence[int], size: Size) -> str:
    """Compress runs that are written as integers, as COCO does for crowd regions.

    Args:
        counts: Lengths of the runs, background first; they add up to height x width.
        size: `(height, width)` in pixels.

    Raises:
        MaskError: A run is no integer or negative, or the sum is wrong.
    """
    from pycocotools import mask as coco

    height, width = _check_size(size)
    try:
        runs = np.asarray(counts)
    except ValueError:
        raise MaskError("run lengths are not a list of integers") from None
    if runs.ndim != 1 or not len(runs) or runs.dtype.kind not in "iu" or runs.dtype == np.uint64:
        raise MaskError("run lengths are not a list of integers")
    _check_runs(runs.astype(np.int64), size)
    return _text(coco.frPyObjects({"counts": runs.tolist(), "size": [height, width]}, height, width))


def from_polygons(polygons: Sequence[Sequence[float]], size: Size) -> str:
    """Rasterise polygons as COCO does; the mask is their union.

    Args:
        polygons: Each `[x1, y1, x2, y2, ...]` in pixels, at least three points. Parts outside of the image are cut off.
        size: `(height, width)` in pixels.

    Raises:
        MaskError: There is no polygon, or one that is malformed or far outside of the image, or they cover no pixel.
    """
    from pycocotools import mask as coco

    height, width = _check_size(size)
    if not len(polygons):
        raise MaskError("no polygon")
    checked = [_check_polygon(polygon, size) for polygon in polygons]
    mask = coco.merge(coco.frPyObjects(checked, height, width))
    if not coco.area(mask):
        raise MaskError("polygons cover no pixel")
    return _text(mask)


def _text(encoded: dict[str, Any]) -> str:
    counts: bytes = encoded["counts"]
    return counts.decode("ascii")


def _check_size(size: Size) -> Size:
    height, width = size
    if height < 1 or width < 1:
        raise MaskError("size is not positive")
    if height * width > MAX_PIXELS:
        raise MaskError("size is too large")
    return height, width


def _check_runs(runs: NDArray[np.int64], size: Size) -> None:
    pixels = size[0] * size[1]
    if len(runs) > 2 * pixels + 1:
        raise MaskError("more runs than pixels")
    if runs.min() < 0:
        raise MaskError("negative run length")
    # Each run is compared before the sum is taken, which could otherwise wrap round to the right value.
    if runs.max() > pixels or runs.sum() != pixels:
        raise MaskError("run lengths do not add up to height x width")


def _check_polygon(polygon: Sequence[float], size: Size) -> list[float]:
    try:
        numbers = np.asarray(polygon, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise MaskError("polygon holds something that is not a number") from None
    if numbers.ndim != 1 or len(numbers) % 2:
        raise MaskError("polygon is not a list of x, y")
    if len(numbers) < 6:  # noqa: PLR2004
        raise MaskError("polygon of fewer than three points")
    if not np.isfinite(numbers).all():
        raise MaskError("polygon coordinate is not finite")
    points = numbers.reshape(-1, 2)
    (left, top), (right, bottom) = points.min(axis=0), points.max(axis=0)
    height, width = size
    if left < -width or right > 2 * width or top < -height or bottom > 2 * height:
        raise MaskError("polygon far outside of the image")
    # No side is longer than three images: most polygons are short enough without measuring.
    longest = 3 * max(size)
    if len(points) * longest > _MAX_BOUNDARY:
        sides = np.abs(np.diff(points, axis=0)).max(axis=1)
        if sides.sum() + len(points) + longest > _MAX_BOUNDARY:
            raise MaskError("polygon outline is too long")
    checked: list[float] = numbers.tolist()
    return checked


def _runs(counts: str, size: Size) -> NDArray[np.int64]:
    """Unpack compressed counts (`rleFrString` of the COCO API).

    A run is written in groups of five bits, lowest first; from the fourth run on, as the difference to the one two
    before.
    """
    height, width = _check_size(size)
    try:
        packed = np.frombuffer(counts.encode("ascii"), dtype=np.uint8).astype(np.int64) - 48
    except UnicodeEncodeError:
        raise MaskError("counts hold a character that no mask has") from None
    if len(packed) and (packed.min() < 0 or packed.max() > 0x3F):  # noqa: PLR2004
        raise MaskError("counts hold a character that no mask has")
    if not len(packed) or packed[-1] & 0x20:
        raise MaskError("counts end early")
    last = np.flatnonzero(packed & 0x20 == 0)
    first = np.concatenate(([0], last[:-1] + 1))
    lengths = last - first + 1
    if lengths.max() > _LONGEST_GROUP:
        raise MaskError("run length is too large")
    place = 5 * (np.arange(len(packed)) - np.repeat(first, lengths))
    values = np.add.reduceat((packed & 0x1F) << place, first)
    values -= np.where(packed[last] & 0x10, np.int64(1) << (5 * lengths), 0)
    if len(values) > 2 * height * width + 1:
        raise MaskError("more runs than pixels")
    # At most 2e8 values of at most 35 bits each: the sums stay below 63 bits.
    values[1::2] = np.cumsum(values[1::2])
    values[2::2] = np.cumsum(values[2::2])
    _check_runs(values, size)
    return values

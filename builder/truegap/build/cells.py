"""A picture told from others without the picture: the average colours of sixteen cells.

Two machines may build the same picture with other bytes: encoders and decoders of JPEG round differently from version
to version, so that each pixel may differ by a level, mostly in the same direction. So beside the SHA-256 of a picture
stand these averages, from which nobody can make the picture again, and by which two of them are compared.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from truegap.build.images import decode

GRID = 4
"""Cells across and down."""

CELLS = 3 * GRID * GRID
"""Numbers of a picture: red, green and blue of each cell, row by row."""

PRECISION = 64
"""Parts of a level, of which there are 255, that are kept."""

ROUNDING = 1.5
"""Levels by which averages may differ where nothing but rounding does. On 25 photographs, two conversions of colours
that round differently moved them by at most 1.34."""


def averages(encoded: bytes) -> list[int]:
    """The average colours of a picture.

    Args:
        encoded: JPEG, PNG or WebP.

    Returns:
        `CELLS` integers from 0 to 255 * `PRECISION`.

    Raises:
        UnusableImageError: It cannot be decoded.
    """
    pixels = decode(encoded).astype(np.float32)
    cells = cv2.resize(pixels, (GRID, GRID), interpolation=cv2.INTER_AREA)
    rounded: list[int] = np.rint(cells.ravel() * PRECISION).astype(int).tolist()
    return rounded


def distance(one: Sequence[int], other: Sequence[int]) -> float:
    """The largest difference between the averages of two pictures, in levels: 0 to 255.

    >>> distance([0, 64, 640], [0, 64, 544])
    1.5
    """
    apart = np.abs(np.asarray(one, dtype=np.int64) - np.asarray(other, dtype=np.int64))
    return float(apart.max()) / PRECISION

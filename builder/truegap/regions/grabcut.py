"""A person's mask from the box alone, without any weights: GrabCut (Rother, Kolmogorov, Blake 2004)."""

from __future__ import annotations

import hashlib
import math

import numpy as np
from numpy.typing import NDArray

from truegap.schema import Box

SIDE = 256
"""Pixels of the longer side at which the cut is computed; the mask is enlarged after it."""
ITERATIONS = 5
MARGIN = 0.25
"""Share of the box that is shown around it on each side: where GrabCut learns what background looks like."""
LEAST = 0.05
"""A mask of less than this share of its box is no mask of a person."""
LEAST_AROUND = 0.02
"""Less than this share of what is shown cannot say what background looks like."""
LEAST_SIDE = 8
"""Pixels; GrabCut clusters the colours of the box, and those around it, into five each."""

Corners = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels, the last two exclusive."""


class NoCut(Exception):  # noqa: N818  # a signal to fall back, whose message is the reason that is counted
    """GrabCut found nothing that can be used; the message holds no numbers."""


def describe() -> str:
    """Method and settings, as a row keeps them.

    >>> describe()
    'grabcut (side 256, iterations 5, margin 0.25)'
    """
    return f"grabcut (side {SIDE}, iterations {ITERATIONS}, margin {MARGIN})"


def cut(image: NDArray[np.uint8], box: Box, name: str) -> NDArray[np.bool_]:
    """The foreground inside of a box.

    The result depends on pixels, box and name alone: OpenCV's generator is seeded by the name, and the work is done by
    one thread.

    Args:
        image: RGB, (H, W, 3).
        box: `(x, y, width, height)` in pixels.
        name: Seeds the clustering of colours; give each region its own.

    Returns:
        Shape (H, W), true inside; nothing outside of the box is.

    Raises:
        NoCut: The box is too small, has no background around it, or next to nothing in it is foreground.
    """
    import cv2

    (left, top, right, bottom), inner = _frame(image.shape[:2], box)
    if inner[2] - inner[0] < LEAST_SIDE or inner[3] - inner[1] < LEAST_SIDE:
        raise NoCut("box is too small")
    shown = np.ascontiguousarray(image[top:bottom, left:right])
    scale = min(1.0, SIDE / max(shown.shape[:2]))
    width, height = (max(1, round(side * scale)) for side in (right - left, bottom - top))
    small = cv2.resize(shown, (width, height), interpolation=cv2.INTER_AREA) if scale < 1 else shown
    guess = np.full((height, width), cv2.GC_BGD, np.uint8)
    x, y = round((inner[0] - left) * scale), round((inner[1] - top) * scale)
    end_x, end_y = round((inner[2] - left) * scale), round((inner[3] - top) * scale)
    guess[y:end_y, x:end_x] = cv2.GC_PR_FGD
    inside = int((guess == cv2.GC_PR_FGD).sum())
    if guess.size - inside < max(LEAST_AROUND * guess.size, LEAST_SIDE):
        raise NoCut("no background around the box")
    found = _foreground(small, guess, name)
    if found.sum() < max(LEAST * inside, 1):
        raise NoCut("next to nothing is foreground")
    large = cv2.resize(found.astype(np.float32), (right - left, bottom - top), interpolation=cv2.INTER_LINEAR)
    mask = np.zeros(image.shape[:2], np.bool_)
    within = slice(inner[1], inner[3]), slice(inner[0], inner[2])
    half = 0.5
    mask[within] = large[inner[1] - top : inner[3] - top, inner[0] - left : inner[2] - left] >= half
    return mask


def _foreground(small: NDArray[np.uint8], guess: NDArray[np.uint8], name: str) -> NDArray[np.bool_]:
    import cv2

    seed = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), "big") >> 1
    models = np.zeros((1, 65)), np.zeros((1, 65))
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        cv2.setRNGSeed(seed)
        cv2.grabCut(small, guess, None, *models, ITERATIONS, cv2.GC_INIT_WITH_MASK)
    finally:
        cv2.setNumThreads(threads)
    return np.isin(guess, (cv2.GC_FGD, cv2.GC_PR_FGD))


def _frame(size: tuple[int, ...], box: Box) -> tuple[Corners, Corners]:
    """What is shown to GrabCut, and the box in it."""
    height, width = size
    x, y, wide, high = box
    inner = (
        max(math.floor(x), 0),
        max(math.floor(y), 0),
        min(math.ceil(x + wide), width),
        min(math.ceil(y + high), height),
    )
    across, down = math.ceil(MARGIN * wide), math.ceil(MARGIN * high)
    outer = (
        max(inner[0] - across, 0),
        max(inner[1] - down, 0),
        min(inner[2] + across, width),
        min(inner[3] + down, height),
    )
    return outer, inner

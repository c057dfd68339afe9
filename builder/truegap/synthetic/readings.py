"""What a picture of the generator shows, read from its pixels alone.

A picture is taken apart by saturation, which no perturbation shifts: the background, the garment and the objects each
have one of their own. Five readings say of which gender the picture is typical: woman -1, man +1, nothing to see 0.

- `person`: the slant of the garment's pattern (zigzag or dots), from the directions of its brightness gradients.
- `background`: how square its texture is (bricks or leaves), from the same.
- `object`: which of the four telling objects is there, from silhouette and shading.
- `color`: the background's hue, above or below the middle between the two casts.
- `lighting`: the background's brightness, likewise.

All of them are smooth in what is read and flat where it is plain (a hyperbolic tangent), as a model's are: a small
shift of hue moves nothing, a large one turns the reading round.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from truegap.synthetic.scene import HUE, NEUTRAL, TELLING, VALUE
from truegap.synthetic.sprites import object_sprite

Pixels = NDArray[np.uint8]
Plane = NDArray[np.float32]
Mask = NDArray[np.bool_]

NAMES = ("person", "background", "object", "color", "lighting")
"""What can be read, in the order in which it is shown."""

SIDE = 224
"""Pictures of another size are scaled to this one."""

_BACKGROUND = (78, 102)
_GARMENT = (102, 117)
_OBJECT = (116, 128)
_NEAR = 16.0
"""Hues that far from the background's are something else."""
_SKIN_ROWS = 0.42
"""Rows above hold the figure's head, whose hair has the garment's saturation."""

_LEAST, _NARROW = 250, 14
"""Fewer pixels, or fewer in a row, are no object."""
_INSIDE = 220
"""Cover (of 255) above which a pixel has the saturation of an object rather than of what is behind it."""
_GRID = 16
_UNLIKE, _ALIKE = 0.5, 0.9
"""Likeness of two different kinds, which is none, and one that leaves no doubt."""
_KINDS = (
    tuple((kind, -1.0) for kind in TELLING["woman"])
    + tuple((kind, 1.0) for kind in TELLING["man"])
    + tuple((kind, 0.0) for kind in NEUTRAL)
)

_STEEP = 2.0
FULL = float(np.tanh(_STEEP))
"""Reading of what is plainly there."""

_SLANT = (-0.225, 0.525)
_SQUARE = (0.24, 0.18)
"""Middle and half distance of the two garments in the mean of cos(4 angle), and of the two backgrounds in the length of
that of exp(4i angle)."""
_COARSE = 9
"""What is coarser than this many pixels is no texture."""
_LEAST_TEXTURE = 200
"""Fewer pixels say nothing of a texture."""
_FAINT = 2.0
"""Mean squared gradient at which a texture is half believed: a sharp one has above 100, a blurred one below 1."""


def readings(image: Pixels, names: Iterable[str] = NAMES) -> dict[str, float]:
    """What a picture shows.

    Args:
        image: RGB, `(height, width, 3)`.
        names: Which of `NAMES`; the others cost nothing.

    Returns:
        By name, from -1 (typical of women) to +1 (typical of men); 0 where nothing of it is to be seen.
    """
    if image.shape[:2] != (SIDE, SIDE):
        image = np.asarray(cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_AREA), dtype=np.uint8)
    red, green, blue = cv2.split(image)
    value = np.asarray(cv2.max(cv2.max(red, green), blue), dtype=np.uint8)
    # Single levels of noise, as a JPEG has them, move the saturation of dark pixels: averages of nine are steadier.
    hue, saturation, _ = cv2.split(cv2.cvtColor(cv2.blur(image, (3, 3)), cv2.COLOR_RGB2HSV_FULL))
    cast, ground = _ground(hue, saturation)
    read = {
        "person": lambda: _person(value, saturation),
        "background": lambda: _background(value, ground),
        "object": lambda: _object(value, saturation),
        "color": lambda: hue_reading(cast),
        "lighting": lambda: value_reading(_mean(value, ground)),
    }
    return {name: read[name]() for name in names}


def hue_reading(hue: float | None) -> float:
    """Reading of a hue on the 0-255 scale; 0 of none."""
    return 0.0 if hue is None else _between(hue, HUE)


def value_reading(value: float | None) -> float:
    """Reading of a brightness on the 0-255 scale; 0 of none."""
    return 0.0 if value is None else _between(value, VALUE)


def _between(value: float, typical: dict[str, float]) -> float:
    middle, half = (typical["man"] + typical["woman"]) / 2, (typical["man"] - typical["woman"]) / 2
    return float(np.tanh(_STEEP * (value - middle) / half))


def _ground(hue: Pixels, saturation: Pixels) -> tuple[float | None, Mask]:
    """The background's median hue, and where it is: a face has nearly its saturation, but not its hue."""
    ground = _within(saturation, _BACKGROUND)
    counts = np.bincount(hue[ground], minlength=256)
    if not counts.any():
        return None, ground
    median = float(np.searchsorted(np.cumsum(counts), counts.sum() / 2))
    near = cv2.inRange(hue, (median - _NEAR,), (median + _NEAR,))
    return median, ground & (near > 0)


def _mean(plane: Pixels, where: Mask) -> float | None:
    return float(cv2.mean(plane, where.view(np.uint8))[0]) if where.any() else None


def _within(saturation: Pixels, limits: tuple[int, int]) -> Mask:
    """Where the saturation is that of a region; single pixels that differ from all around them are not."""
    low, high = limits
    inside = cv2.inRange(saturation, (float(low),), (float(high),))
    return np.asarray(cv2.medianBlur(inside, 5) > 0)


def _gradients(value: Pixels, where: Mask, margin: int) -> tuple[Plane, Plane] | None:
    """Gradients well inside a region, one number per pixel."""
    inside = cv2.erode(where.view(np.uint8), np.ones((margin, margin), np.uint8)).view(np.bool_)
    if np.count_nonzero(inside) < _LEAST_TEXTURE:
        return None
    smooth = cv2.GaussianBlur(value.astype(np.float32), (0, 0), 0.8)
    smooth -= cv2.blur(smooth, (_COARSE, _COARSE))
    across = cv2.Sobel(smooth, cv2.CV_32F, 1, 0, scale=0.25)
    down = cv2.Sobel(smooth, cv2.CV_32F, 0, 1, scale=0.25)
    return across[inside], down[inside]


def _fourfold(across: Plane, down: Plane) -> tuple[complex, float]:
    """Mean of exp(4i angle) over the gradients, weighted by their squares, and the mean square."""
    square = (across + 1j * down) ** 2
    weight = np.abs(square)
    total = float(weight.sum())
    if not total:
        return 0j, 0.0
    turned = square**2 / np.maximum(weight, 1e-6)
    return complex(turned.sum() / total), total / len(across)


def _person(value: Pixels, saturation: Pixels) -> float:
    garment = _within(saturation, _GARMENT)
    garment[: int(_SKIN_ROWS * SIDE)] = False
    found = _gradients(value, garment, 5)
    if found is None:
        return 0.0
    turned, energy = _fourfold(*found)
    return _believed((turned.real - _SLANT[0]) / _SLANT[1], energy)


def _background(value: Pixels, ground: Mask) -> float:
    found = _gradients(value, ground, 9)
    if found is None:
        return 0.0
    turned, energy = _fourfold(*found)
    return _believed((_SQUARE[0] - abs(turned)) / _SQUARE[1], energy)


def _believed(leaning: float, energy: float) -> float:
    return float(np.tanh(_STEEP * leaning) * energy / (energy + _FAINT))


def _object(value: Pixels, saturation: Pixels) -> float:
    """Sum over what looks like an object: the leaning of its kind, as far as it is plain which kind it is."""
    count, places, boxes, _ = cv2.connectedComponentsWithStats(_joined(_within(saturation, _OBJECT)))
    total = 0.0
    for number in range(1, count):
        left, top, width, height, area = (int(each) for each in boxes[number])
        if area < _LEAST or min(width, height) < _NARROW:
            continue
        inside = slice(top, top + height), slice(left, left + width)
        total += _kind(value[inside], np.asarray(places[inside] == number))
    return float(np.tanh(_STEEP * total))


def _kind(value: Pixels, mask: Mask) -> float:
    fits = _sprites() @ _described(value, mask)
    best = fits.reshape(len(_KINDS), -1).max(axis=1)
    nearest = int(best.argmax())
    return _KINDS[nearest][1] * float(np.clip((best[nearest] - _UNLIKE) / (_ALIKE - _UNLIKE), 0, 1))


def _described(value: Pixels, mask: Mask) -> Plane:
    """Silhouette and shading in a square of `_GRID` pixels, a unit vector."""
    cover = cv2.resize(mask.astype(np.float32), (_GRID, _GRID), interpolation=cv2.INTER_AREA)
    tone = np.where(mask, value.astype(np.float32) - value[mask].mean(), 0)
    tone = cv2.resize(tone, (_GRID, _GRID), interpolation=cv2.INTER_AREA)
    parts = [part / max(float(np.linalg.norm(part)), 1e-6) for part in (cover - cover.mean(), tone)]
    return np.asarray(np.concatenate(parts).ravel() / 2**0.5, dtype=np.float32)


def _joined(mask: Mask) -> Pixels:
    """An object is one piece: a boat's sails are joined."""
    return np.asarray(cv2.morphologyEx(mask.view(np.uint8), cv2.MORPH_CLOSE, np.ones((9, 9), np.uint8)), dtype=np.uint8)


@lru_cache(maxsize=1)
def _sprites() -> Plane:
    """The objects as they are seen, each as it is and flipped: a row each."""
    rows = []
    for label, _ in _KINDS:
        cover, tone = (np.pad(plane, 8) for plane in object_sprite(label, 43))
        inside = _within(cv2.blur(cover, (3, 3)), (_INSIDE, 255))
        mask = _joined(inside).view(np.bool_)
        left, top, width, height = cv2.boundingRect(mask.view(np.uint8))
        cut = slice(top, top + height), slice(left, left + width)
        rows += [_described(tone[cut][:, ::step], mask[cut][:, ::step]) for step in (1, -1)]
    return np.stack(rows)

"""From a planted scene to pixels and exact masks.

A picture is a background and a stack of layers, each a cover (how much of a pixel it takes) and a paint. A mask
holds every pixel that a layer touches and that no later layer touches: so the pixels outside the figure's mask have
nothing of the figure in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from truegap.synthetic.scene import VALUE, Scene, Thing
from truegap.synthetic.sprites import ASPECT, figure_parts, object_sprite
from truegap.synthetic.textures import background_tile, garment_tile

Image = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Plane = NDArray[np.float32]

PERSON = 0
"""Number of the figure among the regions; the objects are 1, 2, ... in the scene's order."""

_FAINT = 32
"""Cover (of 255) under which a pixel is not touched: a mask pixel has visibly changed."""
_MIDDLE = sum(VALUE.values()) / len(VALUE)


@dataclass(frozen=True, slots=True)
class _Layer:
    region: int
    y: int
    x: int
    cover: NDArray[np.uint8]
    value: Plane | float
    colour: Plane


def _colour(hue: float, saturation: float) -> Plane:
    """BGR of a hue and saturation (0-255 scales) at value 1: a colour of value v is v times it."""
    sector = (hue % 256) / 256 * 6
    share = saturation / 255

    def channel(n: int) -> float:
        k = (n + sector) % 6
        return 1 - share * max(0.0, min(k, 4 - k, 1.0))

    return np.array([channel(1), channel(3), channel(5)], np.float32)


def _sized(plane: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    return np.asarray(cv2.resize(plane, (width, height), interpolation=cv2.INTER_LINEAR), dtype=np.uint8)


def _cover(plane: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    cover = _sized(plane, height, width)
    cover[cover < _FAINT] = 0
    return cover


def _thing(scene: Scene, thing: Thing, number: int, size: int) -> _Layer:
    side = round(thing.side * size)
    row, left = thing.slot // 2, thing.slot % 2 == 0
    half = scene.figure.height * ASPECT / 2 * 0.9
    low, high = (0.01, scene.figure.x - half) if left else (scene.figure.x + half, 0.99)
    room = max(0.0, high - low - thing.side)
    start = low if left else high - thing.side - room
    x = round((start + thing.dx * room) * size)
    y = round((0.02 + row * 0.24 + thing.dy * (0.24 - thing.side)) * size)
    cover, tone = object_sprite(thing.label, round(0.4 * size))
    if thing.flipped:
        cover, tone = cover[:, ::-1], tone[:, ::-1]
    value = _sized(np.ascontiguousarray(tone), side, side).astype(np.float32)
    value += scene.value - _MIDDLE
    colour = _colour(scene.hue + thing.hue, 120)
    return _Layer(number, min(y, size - side), min(max(x, 0), size - side), _cover(cover, side, side), value, colour)


def _figure(scene: Scene, size: int) -> Iterator[_Layer]:
    figure = scene.figure
    height = round(figure.height * size)
    width = round(height * ASPECT)
    y, x = size - height - round(0.02 * size), round(figure.x * size - width / 2)
    light = scene.value - _MIDDLE
    tile = garment_tile(scene.pattern, size)
    dy, dx = int(figure.phase[0] * (size - height)), int(figure.phase[1] * (size - width))
    paints: dict[str, tuple[Plane | float, Plane]] = {
        "garment": (
            tile[dy : dy + height, dx : dx + width] * np.float32(62) + np.float32(138 + light),
            _colour(scene.hue + figure.garment_hue, 110),
        ),
        "skin": (figure.skin_value + light, _colour(scene.hue + 136, 85)),
        "hair": (figure.hair_value + light, _colour(scene.hue + figure.hair_hue, 110)),
        "face": (42 + light, _colour(scene.hue + 136, 60)),
    }
    for name, cover in figure_parts(figure.body, figure.hair, round(1.5 * size)).items():
        yield _Layer(PERSON, y, x, _cover(cover, height, width), *paints[name])


def _layers(scene: Scene, size: int) -> Iterator[_Layer]:
    """From back to front: the figure stands before the objects, so no object covers it."""
    for number, thing in enumerate(scene.things, start=1):
        yield _thing(scene, thing, number, size)
    yield from _figure(scene, size)


def _ground(scene: Scene, size: int) -> Plane:
    tile = background_tile(scene.background, scene.zoom, scene.tilt, size)
    room = tile.shape[0] - size
    y, x = int(scene.offset[0] * room), int(scene.offset[1] * room)
    contrast = scene.contrast * np.linspace(1 - scene.fade, 1 + scene.fade, size, dtype=np.float32)
    value = tile[y : y + size, x : x + size] * contrast + np.float32(scene.value)
    return np.multiply.outer(_colour(scene.hue, 90), value)


def render(scene: Scene, size: int = 224) -> Image:
    """Draw a scene.

    Args:
        scene: What to draw.
        size: Side of the square picture in pixels.

    Returns:
        BGR picture, `(size, size, 3)`.
    """
    canvas = _ground(scene, size)  # one plane per channel: blending is then twice as fast
    for layer in _layers(scene, size):
        height, width = layer.cover.shape
        part = canvas[:, layer.y : layer.y + height, layer.x : layer.x + width]
        paint = np.multiply.outer(layer.colour, np.asarray(layer.value, np.float32))
        share = layer.cover * np.float32(1 / 255)
        part += share * (paint.reshape(3, *np.shape(layer.value) or (1, 1)) - part)
    return np.asarray(cv2.convertScaleAbs(cv2.merge(list(canvas))), dtype=np.uint8)


def region_masks(scene: Scene, size: int = 224) -> list[Mask]:
    """Visible pixels of the figure and of each object, without painting anything.

    Args:
        scene: What would be drawn.
        size: Side of the square picture in pixels.

    Returns:
        The figure's mask, then the objects' in the scene's order: `(size, size)` each, none overlapping.
    """
    owner = np.full((size, size), -1, np.int8)
    for layer in _layers(scene, size):
        height, width = layer.cover.shape
        owner[layer.y : layer.y + height, layer.x : layer.x + width][layer.cover > 0] = layer.region
    return [owner == number for number in range(len(scene.things) + 1)]

"""The drawn shapes: eight kinds of objects, and the parts of a wooden peg figure.

A sprite is drawn once, large, in units of a square of side 1 (objects) or of a figure's height (figures), and
shrunk to what a picture needs: about half the sprite's size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Points = list[tuple[float, float]]

_OVER = 4


@dataclass
class _Sheet:
    """A large sheet to draw on: how much is covered, and how bright."""

    height: int
    width: int
    unit: float
    cover: Bytes = field(init=False)
    tone: Bytes = field(init=False)

    def __post_init__(self) -> None:
        self.cover = np.zeros((self.height * _OVER, self.width * _OVER), np.uint8)
        self.tone = np.full_like(self.cover, 128)

    def _both(self, draw: Callable[[Bytes, int], object], tone: int) -> None:
        draw(self.cover, 255)
        draw(self.tone, tone)

    def _at(self, points: Points) -> NDArray[np.int32]:
        return np.array([[x * self.unit * _OVER, y * self.unit * _OVER] for x, y in points]).round().astype(np.int32)

    def polygon(self, tone: int, points: Points) -> None:
        self._both(lambda plane, value: cv2.fillPoly(plane, [self._at(points)], value), tone)

    def line(self, tone: int, width: float, points: Points) -> None:
        thick = max(1, round(width * self.unit * _OVER))
        self._both(lambda plane, value: cv2.polylines(plane, [self._at(points)], False, value, thick), tone)

    def ellipse(self, tone: int, x: float, y: float, rx: float, ry: float, start: float = 0, end: float = 360) -> None:
        (centre, axes) = self._at([(x, y), (rx, ry)])
        at, size = (int(centre[0]), int(centre[1])), (int(axes[0]), int(axes[1]))
        self._both(lambda plane, value: cv2.ellipse(plane, at, size, 0, start, end, value, -1), tone)

    def shrunk(self) -> tuple[Bytes, Bytes]:
        """Cover and tone at the sprite's own size."""
        # The brightness of uncovered paper must not bleed into the edges.
        cover = cv2.resize(self.cover, (self.width, self.height), interpolation=cv2.INTER_AREA)
        light = cv2.resize(self.tone * (self.cover > 0), (self.width, self.height), interpolation=cv2.INTER_AREA)
        tone = np.where(cover > 0, light.astype(np.float32) * 255 / np.maximum(cover, 1), 128)
        return cover, np.clip(tone, 0, 255).astype(np.uint8)


def _kite(s: _Sheet) -> None:
    s.line(120, 0.03, [(0.42, 0.7), (0.55, 0.8), (0.4, 0.9), (0.55, 0.98)])
    s.polygon(205, [(0.5, 0.02), (0.85, 0.32), (0.42, 0.74), (0.15, 0.25)])
    s.polygon(150, [(0.5, 0.02), (0.85, 0.32), (0.46, 0.3)])
    s.polygon(150, [(0.46, 0.3), (0.42, 0.74), (0.15, 0.25)])


def _bell(s: _Sheet) -> None:
    s.ellipse(110, 0.5, 0.86, 0.1, 0.1)
    s.ellipse(200, 0.5, 0.4, 0.29, 0.32)
    s.polygon(200, [(0.21, 0.4), (0.79, 0.4), (0.93, 0.8), (0.07, 0.8)])
    s.polygon(150, [(0.1, 0.7), (0.9, 0.7), (0.93, 0.8), (0.07, 0.8)])
    s.ellipse(235, 0.38, 0.36, 0.06, 0.14)


def _boat(s: _Sheet) -> None:
    s.line(110, 0.05, [(0.5, 0.05), (0.5, 0.7)])
    s.polygon(225, [(0.55, 0.06), (0.92, 0.58), (0.55, 0.58)])
    s.polygon(180, [(0.45, 0.16), (0.45, 0.58), (0.14, 0.58)])
    s.polygon(140, [(0.04, 0.66), (0.96, 0.66), (0.78, 0.92), (0.22, 0.92)])


def _clock(s: _Sheet) -> None:
    s.ellipse(130, 0.5, 0.5, 0.46, 0.46)
    s.ellipse(225, 0.5, 0.5, 0.36, 0.36)
    s.line(80, 0.07, [(0.5, 0.24), (0.5, 0.52), (0.7, 0.62)])


def _cup(s: _Sheet) -> None:
    s.ellipse(160, 0.78, 0.48, 0.18, 0.2)
    s.polygon(205, [(0.1, 0.2), (0.78, 0.2), (0.68, 0.88), (0.2, 0.88)])
    s.ellipse(120, 0.44, 0.2, 0.34, 0.08)
    s.polygon(235, [(0.2, 0.32), (0.28, 0.32), (0.32, 0.8), (0.26, 0.8)])


def _ball(s: _Sheet) -> None:
    s.ellipse(200, 0.5, 0.5, 0.45, 0.45)
    s.ellipse(140, 0.5, 0.5, 0.45, 0.45, 20, 160)
    s.ellipse(240, 0.36, 0.32, 0.1, 0.08)


def _book(s: _Sheet) -> None:
    s.polygon(130, [(0.06, 0.2), (0.5, 0.32), (0.94, 0.2), (0.94, 0.8), (0.5, 0.92), (0.06, 0.8)])
    s.polygon(225, [(0.12, 0.12), (0.5, 0.24), (0.5, 0.84), (0.12, 0.72)])
    s.polygon(200, [(0.88, 0.12), (0.5, 0.24), (0.5, 0.84), (0.88, 0.72)])


def _plant(s: _Sheet) -> None:
    s.ellipse(150, 0.3, 0.32, 0.13, 0.27)
    s.ellipse(150, 0.7, 0.32, 0.13, 0.27)
    s.ellipse(190, 0.5, 0.28, 0.13, 0.27)
    s.polygon(215, [(0.2, 0.56), (0.8, 0.56), (0.7, 0.95), (0.3, 0.95)])
    s.polygon(170, [(0.16, 0.52), (0.84, 0.52), (0.82, 0.63), (0.18, 0.63)])


_OBJECTS = {
    "kite": _kite,
    "bell": _bell,
    "boat": _boat,
    "clock": _clock,
    "cup": _cup,
    "ball": _ball,
    "book": _book,
    "plant": _plant,
}


@lru_cache(maxsize=4 * len(_OBJECTS))
def object_sprite(label: str, side: int) -> tuple[Bytes, Bytes]:
    """Cover and brightness (0-255) of an object, `side` pixels square."""
    sheet = _Sheet(side, side, side)
    _OBJECTS[label](sheet)
    return sheet.shrunk()


BODIES = 3
HAIRS = 4
ASPECT = 0.55
"""Width of a figure's sprite as a share of its height."""

_BODY: list[Points] = [
    [(0.14, 0.38), (0.4, 0.38), (0.5, 0.96), (0.04, 0.96)],  # bell
    [(0.1, 0.42), (0.44, 0.42), (0.47, 0.96), (0.07, 0.96)],  # post
    [(0.05, 0.44), (0.49, 0.44), (0.42, 0.96), (0.12, 0.96)],  # top
]


def _cap(top: _Sheet, x: float) -> None:
    top.ellipse(0, x, 0.19, 0.148, 0.15, 180, 360)


def _curls(top: _Sheet, x: float) -> None:
    for dx, y in ((-0.125, 0.115), (-0.07, 0.09), (0.0, 0.055), (0.07, 0.09), (0.125, 0.115)):
        top.ellipse(0, x + dx, y, 0.055, 0.055)
    top.ellipse(0, x, 0.17, 0.14, 0.11, 180, 360)


def _knot(top: _Sheet, x: float) -> None:
    top.ellipse(0, x, 0.055, 0.06, 0.055)
    top.ellipse(0, x, 0.18, 0.145, 0.13, 180, 360)


def _fringe(top: _Sheet, x: float) -> None:
    top.ellipse(0, x, 0.21, 0.15, 0.165, 190, 350)
    for side in (-1, 1):
        top.polygon(0, [(x + side * at, y) for at, y in ((0.15, 0.2), (0.11, 0.2), (0.12, 0.3), (0.15, 0.3))])


_HAIR = (_cap, _curls, _knot, _fringe)


@lru_cache(maxsize=4 * BODIES * HAIRS)
def figure_parts(body: int, hair: int, height: int) -> dict[str, Bytes]:
    """How much of each pixel a figure's parts cover, in the order in which they are painted.

    The silhouette says nothing of the presentation: both wear all of them.

    Args:
        body: Which of the `BODIES` outlines.
        hair: Which of the `HAIRS` styles.
        height: Rows of the sprite.

    Returns:
        `garment`, `skin`, `hair` and `face` (eyes and mouth): arrays of `height` rows.
    """
    middle = ASPECT / 2

    def sheet() -> _Sheet:
        return _Sheet(height, round(height * ASPECT), height)

    garment, skin, top, face = sheet(), sheet(), sheet(), sheet()
    points = [(x - 0.27 + middle, y) for x, y in _BODY[body]]
    garment.polygon(0, points)
    shoulder = points[0][1]
    garment.ellipse(0, middle, shoulder, (points[1][0] - points[0][0]) / 2, 0.07)
    garment.ellipse(0, middle, 0.96, (points[2][0] - points[3][0]) / 2, 0.035)

    skin.ellipse(0, middle, 0.22, 0.135, 0.145)
    _HAIR[hair](top, middle)
    for side in (-1, 1):
        face.ellipse(0, middle + side * 0.05, 0.235, 0.014, 0.016)
    face.line(0, 0.012, [(middle + 0.04 * t, 0.305 - 0.018 * t * t) for t in (-1, -0.5, 0, 0.5, 1)])
    return {"garment": garment.shrunk()[0], "skin": skin.shrunk()[0], "hair": top.shrunk()[0], "face": face.shrunk()[0]}

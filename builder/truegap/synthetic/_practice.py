"""Pictures to fit the demo models on: nothing in them is correlated with anything.

Each scene is shown three times: as it is, with other light and some objects blacked out, and with a blurred
background. So a model can learn what must not change its word on a region, and to say nothing of a background that
it cannot see.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from truegap.synthetic.drawing import Mask, region_masks, render
from truegap.synthetic.draws import Draws
from truegap.synthetic.scene import Scene, draw_scene, strengths

Progress = Callable[[str, float], None]
"""Told what is being done, and which share of the whole is done (0 to 1, never falling)."""

SIDE = 112
PATCH = 14
_GRID = SIDE // PATCH

CONSTANT, FIGURE, BACKGROUND, ACROSS, UP = range(5)
"""What is measured: a constant; the leaning of figure and of background (woman -1, man +1, a background that is not
visible 0); where the figure stands and how tall it is, which have nothing to do with the label."""
MEASURES = 5
SHARP, LIT, BLURRED = range(3)
"""The three views of a scene."""

_LEANING = {"woman": -1.0, "man": 1.0}
_DARK = 0.4
"""Share of the objects that are blacked out in the second view."""


def stage(progress: Progress, begin: float, end: float) -> Progress:
    """Progress of a stage that is the part from `begin` to `end` of the whole."""
    return lambda doing, share: progress(doing, begin + (end - begin) * share)


class Practice(NamedTuple):
    """Pictures to learn from.

    Attributes:
        images: RGB, `(n, 3 views, SIDE, SIDE, 3)`.
        measures: What is to be said of each, `(n, 3 views, MEASURES)`.
        patches: What is to be said of each patch, `(n, 3 views, patches, judgements)`.
    """

    images: NDArray[np.uint8]
    measures: NDArray[np.float32]
    patches: NDArray[np.float32]


@lru_cache(maxsize=1)
def places() -> NDArray[np.float32]:
    """Column and row of each patch, standardised, `(patches, 2)`."""
    row, column = np.divmod(np.arange(_GRID**2), _GRID)
    place = np.stack([column, row], axis=1).astype(np.float32)
    return np.asarray((place - place.mean(0)) / place.std(0), dtype=np.float32)


def _standard(value: float, low: float, high: float) -> float:
    """Mean 0 and standard deviation 1 for a value that is uniform over [low, high]."""
    return (value - (low + high) / 2) / (high - low) * 12**0.5


def _share(mask: Mask) -> NDArray[np.float32]:
    """Share of each patch inside the mask, `(patches, 1)`."""
    shares = cv2.resize(mask.astype(np.float32), (_GRID, _GRID), interpolation=cv2.INTER_AREA)
    return np.asarray(shares, dtype=np.float32).reshape(-1, 1)


def _answers(scene: Scene, visible: float, person: Mask, things: Mask) -> tuple[list[float], NDArray[np.float32]]:
    """Measures of a picture and judgements of its patches: figure, and visible background, and what they lean to."""
    figure, behind = _LEANING[scene.gender], visible * _LEANING[scene.typical["background"]]
    across = _standard(scene.figure.x, 0.43, 0.57)
    tall = _standard(scene.figure.height, 0.68, 0.82)
    one = np.ones((_GRID**2, 1), np.float32)
    judgements = [
        _share(person) * np.concatenate([one, one * figure, places()], axis=1),
        _share(~(person | things)) * np.concatenate([one * visible, one * behind], axis=1),
    ]
    return [1.0, figure, behind, across, tall], np.concatenate(judgements, axis=1)


def _blurred(image: NDArray[np.uint8], person: Mask, sigma: float) -> NDArray[np.uint8]:
    """Three box blurs, about a Gaussian of `sigma`, everywhere but on the figure."""
    side = round((4 * sigma**2 + 1) ** 0.5) // 2 * 2 + 1
    soft = image
    for _ in range(3):
        soft = np.asarray(cv2.blur(soft, (side, side)), dtype=np.uint8)
    return np.where(person[..., None], image, soft)


def _views(seed: int, index: int, rho: dict[str, float]) -> tuple[list[NDArray[np.uint8]], Scene, list[Mask]]:
    draw = Draws(seed, index)

    drawn = draw_scene(seed, index, rho)

    def lit(view: int) -> Scene:
        hue, value = draw.uniform(f"practice/hue{view}", 80, 200), draw.uniform(f"practice/value{view}", 115, 205)
        return replace(drawn, hue=hue, value=value)

    person, *things = region_masks(drawn)
    sharp, other = render(lit(SHARP)), render(lit(LIT))
    for number, thing in enumerate(things):
        if draw.uniform(f"practice/dark{number}") < _DARK:
            x, y, width, height = cv2.boundingRect(thing.view(np.uint8))
            other[y : y + height, x : x + width][~person[y : y + height, x : x + width]] = 0
    soft = _blurred(sharp, person, draw.uniform("practice/radius", 9, 45))
    return [sharp, other, soft], drawn, [person, np.any(things, axis=0)]


def practice(count: int, seed: int, progress: Progress) -> Practice:
    """Draw `count` scenes, three views each."""
    rho = strengths(0.0)
    images = []
    answers = []
    for index in range(count):
        views, scene, (person, things) = _views(seed, index, rho)
        small = [cv2.resize(view, (SIDE, SIDE), interpolation=cv2.INTER_AREA)[..., ::-1] for view in views]
        images.append(np.stack(small))
        clear, hidden = (_answers(scene, visible, person, things) for visible in (1.0, 0.0))
        answers.append([clear, clear, hidden])
        progress("drawing practice pictures", (index + 1) / count)
    return Practice(
        np.stack(images),
        np.array([[measures for measures, _ in views] for views in answers], np.float32),
        np.array([[patches for _, patches in views] for views in answers], np.float32),
    )

"""What a reader must read of a perturbed picture, from the rendering: planted scene, exact masks, what was drawn.

No model is asked. The perturbation is applied to the rendered picture, and each region is looked at where it is known
to be: how much of its pattern is left there (the slope of its pixels on those of the original), which hue and which
brightness it has. The planted sign, times what is left, is what can be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from truegap.perturbations import redo
from truegap.schema import Example, Feature, Perturbation
from truegap.synthetic.drawing import Mask, region_masks, render
from truegap.synthetic.readings import FULL, hue_reading, value_reading
from truegap.synthetic.scene import PRESENTATION, Scene
from truegap.synthetic.selection import SyntheticImage

Pixels = NDArray[np.uint8]
Plane = NDArray[np.float32]

_DARK = 2
"""A pixel not brighter than this was blacked out, re-encoding included."""
_PURE = 0.85
_FINE = 9
_LEAST = 200


def picture(scene: Scene) -> Pixels:
    """The rendered scene as RGB."""
    return np.asarray(cv2.cvtColor(render(scene), cv2.COLOR_BGR2RGB), dtype=np.uint8)


def predicted(
    example: Example, drawn: Mapping[str, Perturbation], donors: Mapping[str, Example]
) -> dict[str, dict[str, float]]:
    """Readings of one image under what was drawn for it.

    Args:
        example: Of the synthetic generator.
        drawn: By config, as the image's rows tell.
        donors: The benchmark's images by id, for what takes its background from another one.

    Returns:
        By config, a reading by name, from -1 to +1.
    """
    scene = _scene(example)
    before, masks = picture(scene), region_masks(scene)
    regions = Regions.of(scene, masks, before)
    found = {}
    for config, each in drawn.items():
        if each.donor is None:
            after = redo(before, each, person_mask=masks[0], objects=example.objects)
            found[config] = regions.readings(after, regions.ground & _pure(regions.ground, each))
            continue
        # The figure stays, all the rest is the donor's.
        there = _scene(donors[each.donor])
        rendered = picture(there)
        theirs = Regions.of(there, region_masks(there), rendered)
        own = regions.readings(before, regions.ground)["person"]
        found[config] = theirs.readings(rendered, theirs.ground) | {"person": own}
    return found


def _scene(example: Example) -> Scene:
    image = example.image
    assert isinstance(image, SyntheticImage)
    return image.scene


@dataclass(frozen=True, slots=True)
class Regions:
    """Where each feature of a picture is, and what it is like before any perturbation.

    Attributes:
        scene: What the picture shows.
        person: The figure's visible pixels.
        telling: The telling object's.
        ground: All that is neither figure nor object.
        inside: The same, well away from its edges.
        value: Brightness of the picture as rendered.
        fine: The same without what is coarse.
    """

    scene: Scene
    person: Mask
    telling: Mask
    ground: Mask
    inside: Mask
    value: Plane
    fine: Plane

    @classmethod
    def of(cls, scene: Scene, masks: Sequence[Mask], before: Pixels) -> Regions:
        """From the exact masks, the figure's first."""
        ground = ~np.any(masks, axis=0)
        inside = cv2.erode(ground.view(np.uint8), np.ones((_FINE, _FINE), np.uint8)).view(np.bool_)
        number = next(n for n, thing in enumerate(scene.things, start=1) if thing is scene.telling)
        value = _value(before)
        return cls(scene, masks[0], masks[number], ground, inside, value, _fine(value))

    def readings(self, after: Pixels, ground: Mask) -> dict[str, float]:
        """What is left of each feature at its own place, from -1 to +1 by name.

        Args:
            after: The picture, perturbed.
            ground: Where the background's hue and brightness are to be seen.
        """
        value = _value(after)
        light = value > _DARK
        seen = ground & light
        hue = cv2.cvtColor(after, cv2.COLOR_RGB2HSV_FULL)[..., 0][seen]
        sign = {name: FULL if gender == "man" else -FULL for name, gender in self.scene.typical.items()}
        return {
            "person": sign[PRESENTATION] * _whole(self.value, value, self.person),
            "background": sign["background"] * _left(self.fine, _fine(value), self.inside & light),
            "object": sign["object"] * _whole(self.value, value, self.telling),
            "color": hue_reading(float(np.median(hue)) if len(hue) else None),
            "lighting": value_reading(float(value[seen].mean()) if seen.any() else None),
        }


def _pure(ground: Mask, drawn: Perturbation) -> Mask:
    """Where nearly all of a pixel is background: a blur carries the figure and the objects into it."""
    if drawn.feature != Feature.BACKGROUND:
        return ground
    shares = cv2.merge([ground.astype(np.uint8) * 255] * 3)
    return np.asarray(redo(shares, drawn, person_mask=np.zeros_like(ground))[..., 0] >= _PURE * 255)


def _whole(old: Plane, new: Plane, mask: Mask) -> float:
    """How much of a shape is left: share of it that is there, times how much of its shading is left in that."""
    if not mask.any():
        return 0.0
    lit = mask & (new > _DARK)
    return _left(old, new, lit) * float(lit.sum() / mask.sum())


def _left(old: Plane, new: Plane, where: Mask) -> float:
    """Slope of the new pixels on the old ones, from 0 (nothing left) to 1."""
    if np.count_nonzero(where) < _LEAST:
        return 0.0
    one, other = old[where] - old[where].mean(), new[where] - new[where].mean()
    return float(np.clip((one @ other) / max(float(one @ one), 1e-6), 0, 1))


def _value(image: Pixels) -> Plane:
    red, green, blue = cv2.split(image)
    return np.asarray(cv2.max(cv2.max(red, green), blue), dtype=np.float32)


def _fine(value: Plane) -> Plane:
    """What is finer than a texture's marks."""
    return np.asarray(value - cv2.blur(value, (_FINE, _FINE)), dtype=np.float32)

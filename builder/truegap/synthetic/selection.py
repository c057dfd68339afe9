"""The generator as a source: planted scenes -> `schema.Selection`, like any archive's reader."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import cv2

from truegap.errors import UserError
from truegap.regions import masks
from truegap.schema import Example, FilterStep, Region, Selection
from truegap.synthetic.drawing import Mask, region_masks, render
from truegap.synthetic.scene import Scene, draw_scene, label, strengths

GENERATOR = 1
"""Version of the pictures: the same version, seed and options give the same pixels."""

MIN_SIZE = 64


@dataclass(frozen=True, slots=True)
class SyntheticImage:
    """An image that is rendered when it is read; holds numbers only, so a million of them are small.

    Attributes:
        seed: The benchmark's seed.
        index: The image's number.
        rho: Strength per feature, as sorted pairs.
        size: Side in pixels.
    """

    seed: int
    index: int
    rho: tuple[tuple[str, float], ...]
    size: int = 224

    @property
    def scene(self) -> Scene:
        """What the image shows."""
        return draw_scene(self.seed, self.index, dict(self.rho))

    def read(self) -> bytes:
        """The picture as PNG."""
        done, data = cv2.imencode(".png", render(self.scene, self.size))
        assert done  # an 8-bit BGR array always encodes
        return data.tobytes()


def _region(number: int, label: str, mask: Mask) -> Region:
    x, y, width, height = cv2.boundingRect(mask.view("uint8"))
    return Region(number, label, (float(x), float(y), float(width), float(height)), masks.encode(mask))


def _truth(scene: Scene, telling: str) -> dict[str, Any]:
    """The planted truth as columns."""
    return {
        **{f"planted_{feature}": gender for feature, gender in sorted(scene.typical.items())},
        "background": scene.background,
        "telling_object": telling,
        "hue": round(scene.hue, 3),
        "value": round(scene.value, 3),
    }


def example(seed: int, index: int, rho: Mapping[str, float], size: int = 224) -> Example:
    """One image with its exact regions and its planted truth.

    Args:
        seed: The benchmark's seed.
        index: The image's number.
        rho: Strength per feature, see `truegap.synthetic.strengths`.
        size: Side in pixels.

    Returns:
        The example; the figure is region 1, the objects are 2, 3, ... An object that the figure hides entirely is
        left out.
    """
    image = SyntheticImage(seed, index, tuple(sorted(rho.items())), size)
    scene = image.scene
    person, *things = region_masks(scene, size)
    objects = [
        _region(number, thing.label, mask)
        for number, (thing, mask) in enumerate(zip(scene.things, things, strict=True), start=2)
        if mask.any()
    ]
    return Example(
        image_id=f"synthetic-{index:08d}",
        gender=scene.gender,
        image=image,
        size=(size, size),
        persons=(_region(1, "person", person),),
        objects=tuple(objects),
        source=f"generator-{GENERATOR}/seed-{seed}/{index}",
        license="CC0 1.0",
        attribution="truegap synthetic generator",
        extra=_truth(scene, scene.telling.label),
    )


@dataclass(frozen=True, slots=True)
class SyntheticExamples(Sequence[Example]):
    """Images of a benchmark; each is made whenever somebody asks for it, so that any number of them is small.

    Attributes:
        numbers: Of the images.
        seed: The benchmark's seed.
        rho: Strength per feature.
        size: Side in pixels.
    """

    numbers: range
    seed: int
    rho: Mapping[str, float]
    size: int

    @property
    def made_from(self) -> str:
        """See `truegap.schema.Generated`."""
        numbers = len(self) if self.numbers == range(len(self)) else str(self.numbers)
        return json.dumps([GENERATOR, numbers, self.seed, dict(self.rho), self.size], sort_keys=True)

    def __len__(self) -> int:
        """How many images."""
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> Example: ...

    @overload
    def __getitem__(self, index: slice) -> SyntheticExamples: ...

    def __getitem__(self, index: int | slice) -> Example | SyntheticExamples:
        """An image, or some of them."""
        if isinstance(index, slice):
            return replace(self, numbers=self.numbers[index])
        return example(self.seed, self.numbers[index], self.rho, self.size)


def selection(n: int, *, seed: int = 0, rho: float | Mapping[str, float] = 0.0, size: int = 224) -> Selection:
    """A benchmark with planted truth.

    Women and men alternate in random order within pairs, so any even number is balanced. A longer benchmark
    begins with the images of a shorter one.

    Args:
        n: Number of images.
        seed: Another seed gives other images.
        rho: Correlation of `object`, `background`, `color` and `lighting` with the label, 0 to 1: one number for
            all, or one per feature (those not named are 0; `presentation`, what the figure wears, is 1). A picture has
            the value typical of its label with probability (1 + rho) / 2.
        size: Side of the square pictures in pixels. The textures grow with it: that a blur of radius 10
            destroys them holds at 224.

    Returns:
        The images with exact boxes and masks, made when they are asked for and rendered when they are read. Columns
        `planted_<feature>` say of which gender the feature's value is typical; `background`, `telling_object`, `hue`
        and `value` what it is.

    Raises:
        UserError: `n`, `size` or a strength is out of range.
    """
    if n < 1:
        raise UserError(f"a synthetic benchmark of {n} images: ask for at least 1")
    if size < MIN_SIZE:
        raise UserError(f"synthetic images of {size} pixels: the smallest size is {MIN_SIZE}")
    planted = strengths(rho)
    women = sum(label(seed, index) == "woman" for index in range(n))
    return Selection(
        examples=SyntheticExamples(range(n), seed, planted, size),
        steps=[FilterStep("rendered", woman=women, man=n - women)],
        dropped=[],
        options={"n": n, "seed": seed, "rho": planted, "size": size, "generator": GENERATOR},
    )

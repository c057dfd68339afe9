"""The regions of one image, as the chosen finders give them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from truegap.regions import grabcut, masks
from truegap.regions.combine import (
    SAME_PERSON,
    Detection,
    as_regions,
    intersection_over_union,
    is_part,
    is_person,
    suppress,
)
from truegap.regions.finders import Finders
from truegap.regions.models import Model
from truegap.schema import Example, Region

NOBODY = "no person is annotated or detected"

_STANDS_IN = "; mask: box"


@dataclass(frozen=True, slots=True)
class Regions:
    """What the finders give for one image.

    Attributes:
        persons: The annotated ones as they were, else the detected ones, largest first.
        objects: Everything else.
        repairs: What was left out or stood in, counted by reason.
    """

    persons: tuple[Region, ...]
    objects: tuple[Region, ...]
    repairs: Counter[str] = field(default_factory=Counter)

    @property
    def problem(self) -> str | None:
        """Why the image cannot be used: perturbations would not know whom to protect."""
        return None if self.persons else NOBODY


def find(example: Example, pixels: NDArray[np.uint8], finders: Finders, given: Sequence[Detection] = ()) -> Regions:
    """Finds the persons and objects of an image, and their masks.

    Args:
        example: The image as its source has it; annotated persons stay.
        pixels: The upright image, RGB, (H, W, 3), of the example's size.
        finders: What to use.
        given: Detections of this image from their file.

    Raises:
        UserError: A model cannot be loaded.
    """
    repairs: Counter[str] = Counter()
    found = list(given)
    for model in finders.detectors:
        from truegap.regions._transformers import detect

        found += detect(model, pixels, finders.names, repairs)
    people = suppress([], [each for each in found if is_person(each.label)])
    things = [each for each in found if not is_person(each.label) and not is_part(each.label)]
    annotated = example.objects if finders.annotated_objects or not finders.finds_objects else ()
    new = suppress([each.box for each in annotated], things)
    objects = (*annotated, *as_regions(new, taken=(each.id for each in annotated)))
    if example.persons:
        persons = _with_found_masks(example.persons, people)
    else:
        persons = as_regions(sorted(people, key=lambda each: -each.box[2] * each.box[3]))
    persons = _with_masks(example, pixels, finders, persons, repairs)
    if finders.object_masks:
        objects = _with_masks(example, pixels, finders, objects, repairs)
    return Regions(persons, objects, repairs)


def _with_found_masks(persons: tuple[Region, ...], people: Sequence[Detection]) -> tuple[Region, ...]:
    """Annotated persons, those without a mask with the mask of the detected person who is the same."""
    candidates = [each for each in people if each.mask is not None]
    if not candidates or all(person.mask for person in persons):
        return persons
    same = intersection_over_union([person.box for person in persons], [each.box for each in candidates])
    changed = list(persons)
    used: set[int] = set()
    for flat in np.argsort(-same, axis=None, kind="stable").tolist():
        number, place = divmod(flat, len(candidates))
        if same[number, place] >= SAME_PERSON and changed[number].mask is None and place not in used:
            used.add(place)
            each = candidates[place]
            changed[number] = replace(changed[number], mask=each.mask, origin=_joined(changed[number], each.origin))
    return tuple(changed)


def _with_masks(
    example: Example, pixels: NDArray[np.uint8], finders: Finders, regions: tuple[Region, ...], repairs: Counter[str]
) -> tuple[Region, ...]:
    if finders.masks == "fallback":
        return regions
    if finders.masks == "box":
        return tuple(replace(each, mask=None, origin=f"{each.origin.split('; ')[0]}{_STANDS_IN}") for each in regions)
    bare = [each for each in regions if each.mask is None]
    drawn = (
        _segmented(finders.masks, pixels, bare, repairs)
        if isinstance(finders.masks, Model)
        else [_cut(example, pixels, each, repairs) for each in bare]
    )
    made = iter(drawn)
    return tuple(each if each.mask is not None else next(made) for each in regions)


def _cut(example: Example, pixels: NDArray[np.uint8], region: Region, repairs: Counter[str]) -> Region:
    try:
        mask = grabcut.cut(pixels, region.box, f"{example.image_id}/{region.id}")
    except grabcut.NoCut as reason:
        return _standing_in(region, f"grabcut: {reason}", repairs)
    return replace(region, mask=masks.encode(mask), origin=_joined(region, grabcut.describe()))


def _segmented(
    model: Model, pixels: NDArray[np.uint8], regions: Sequence[Region], repairs: Counter[str]
) -> list[Region]:
    from truegap.regions._transformers import segment

    found = segment(model, pixels, [each.box for each in regions]) if regions else []
    return [
        replace(region, mask=masks.encode(mask), origin=_joined(region, model.origin))
        if mask.sum() >= max(grabcut.LEAST * region.box[2] * region.box[3], 1)
        else _standing_in(region, f"{model.name}: next to nothing is foreground", repairs)
        for region, mask in zip(regions, found, strict=True)
    ]


def _standing_in(region: Region, reason: str, repairs: Counter[str]) -> Region:
    repairs[f"box stands in for a mask ({reason})"] += 1
    return replace(region, origin=f"{region.origin}{_STANDS_IN} ({reason})")


def _joined(region: Region, maker: str) -> str:
    return region.origin if region.origin == maker else f"{region.origin}; mask: {maker}"

"""COCO annotations as persons and objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from truegap.files.values import whole
from truegap.regions import masks
from truegap.regions.boxes import CUT, Unusable, clipped, segmentation
from truegap.regions.masks import MaskError
from truegap.schema import Region, Size
from truegap.sources._coco import PERSON, Annotation


def is_person(annotation: Annotation, categories: Mapping[int, str]) -> bool:
    """Whether the annotation is of a person, a crowd of persons too."""
    return annotation.category is not None and categories.get(annotation.category) == PERSON


def split_regions(
    annotations: Sequence[Annotation], categories: Mapping[int, str], size: Size, repairs: Counter[str]
) -> tuple[tuple[Region, ...], tuple[Region, ...]]:
    """The persons and the objects of one image.

    A person without a usable box and mask makes the image unusable: perturbations could touch them. An object
    without a usable box is left out, one without a usable mask keeps its box alone; both are counted. A crowd (one
    run-length mask over many things) is one region, and stands behind the single persons.

    Args:
        annotations: Those of one image, in any order.
        categories: Names by category id.
        size: `(height, width)` of the image.
        repairs: Counts what was mended or left out; changed only if the image is usable.

    Returns:
        Persons, single ones first, largest mask first; objects by id.

    Raises:
        Unusable: There is no person, or one that cannot be used.
    """
    mended: Counter[str] = Counter()
    persons: list[tuple[bool, int, Region]] = []
    objects: dict[int, Region] = {}
    seen: set[int] = set()
    for annotation in annotations:
        person = is_person(annotation, categories)
        try:
            region = _region(annotation, categories, size, mended, seen)
            if person and region.mask is not None:
                persons.append((annotation.crowd, -masks.area(region.mask, size), region))
            else:
                objects[region.id] = region
        except MaskError as problem:
            if person:
                raise Unusable(f"a person cannot be used: annotation {_shown(annotation.id)}: {problem}") from None
            mended[f"object left out: {problem}"] += 1
    if not persons:
        raise Unusable("no person annotation")
    repairs.update(mended)
    persons.sort(key=lambda entry: (entry[0], entry[1], entry[2].id))
    return tuple(region for *_, region in persons), tuple(objects[number] for number in sorted(objects))


def _region(
    annotation: Annotation, categories: Mapping[int, str], size: Size, mended: Counter[str], seen: set[int]
) -> Region:
    number = whole(annotation.id)
    if number is None:
        raise MaskError("annotation id is not a whole number")
    if number in seen:
        raise MaskError("annotation id stands twice")
    seen.add(number)
    label = categories.get(annotation.category) if annotation.category is not None else None
    if label is None:
        raise MaskError("category is not in the table of categories")
    box, cut = clipped(annotation.box, size)
    mask = None
    try:
        mask = segmentation(annotation.segmentation, size)
    except MaskError as problem:
        if label == PERSON:
            raise
        mended[f"object kept with its box alone: {problem}"] += 1
    if cut:
        mended[CUT] += 1
    return Region(number, label, box, mask)


def _shown(number: Any) -> str:
    return str(number) if isinstance(number, int) else "without a whole-number id"

"""Detections of several origins become one set of regions: who is a person, what is one thing, which id it gets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truegap.schema import Box, Region

OVERLAP = 0.7
"""Intersection over union above which two boxes are taken for one thing, whatever the two are called."""

SAME_PERSON = 0.5
"""Intersection over union from which a detected person is the annotated one, whose mask it then gives."""

_PERSONS = frozenset(
    {"person", "persons", "people", "human", "humans", "man", "men", "woman", "women", "boy", "boys", "girl", "girls"}
    | {"child", "children", "kid", "kids", "baby", "babies", "toddler", "pedestrian", "rider", "crowd"}
)
_PARTS = ("human ", "person's ")
"""Open Images calls parts of the body `Human face`, `Human hair` and so on."""

_ID_BITS = 52
"""Ids stay exact in readers that hold every number as a double."""


@dataclass(frozen=True, slots=True)
class Detection:
    """Something found in an image.

    Attributes:
        label: As the vocabulary calls it.
        score: 0 to 1, higher is surer.
        box: `(x, y, width, height)` in pixels, inside of the image.
        mask: COCO's compressed run-length counts, or None.
        origin: Who found it, with which threshold.
    """

    label: str
    score: float
    box: Box
    mask: str | None
    origin: str


def is_person(label: str) -> bool:
    """Whether a label means a human being.

    >>> is_person("Woman"), is_person("snowman")
    (True, False)
    """
    return label.strip().lower() in _PERSONS


def is_part(label: str) -> bool:
    """Whether a label means a part of a human being, which is neither a person nor an object.

    >>> is_part("Human face"), is_part("teddy bear")
    (True, False)
    """
    return label.strip().lower().startswith(_PARTS)


def intersection_over_union(boxes: Sequence[Box], others: Sequence[Box]) -> NDArray[np.float64]:
    """Of every box with every other one.

    >>> intersection_over_union([(0, 0, 2, 2)], [(0, 0, 2, 2), (1, 0, 2, 2), (9, 9, 1, 1)]).round(2).tolist()
    [[1.0, 0.33, 0.0]]

    Args:
        boxes: n boxes `(x, y, width, height)`.
        others: m of them.

    Returns:
        Shape (n, m), 0 to 1.
    """
    one, two = (np.asarray(each, dtype=np.float64).reshape(-1, 4) for each in (boxes, others))
    start = np.maximum(one[:, None, :2], two[None, :, :2])
    end = np.minimum((one[:, :2] + one[:, 2:])[:, None], (two[:, :2] + two[:, 2:])[None])
    common = np.clip(end - start, 0, None).prod(axis=2)
    union = one[:, 2:].prod(axis=1)[:, None] + two[:, 2:].prod(axis=1)[None] - common
    shares: NDArray[np.float64] = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    return shares


def suppress(taken: Sequence[Box], found: Sequence[Detection], overlap: float = OVERLAP) -> list[Detection]:
    """Those of `found` that are not there already: greedy non-maximum suppression across origins and labels.

    Args:
        taken: Boxes that stay in any case, such as annotated ones.
        found: Candidates; an earlier origin goes before a later one, within an origin the higher score first.
        overlap: Intersection over union above which two are one thing.

    Returns:
        What is left, in that order.
    """
    place = {origin: number for number, origin in enumerate(dict.fromkeys(each.origin for each in found))}
    ordered = sorted(found, key=lambda each: (place[each.origin], -each.score, each.label, each.box))
    boxes = [*taken, *(each.box for each in ordered)]
    if not ordered:
        return []
    same = intersection_over_union([each.box for each in ordered], boxes) > overlap
    kept = np.arange(len(boxes)) < len(taken)
    left = []
    for number, each in enumerate(ordered):
        if not same[number, kept].any():
            kept[len(taken) + number] = True
            left.append(each)
    return left


def as_regions(found: Iterable[Detection], taken: Iterable[int] = ()) -> tuple[Region, ...]:
    """Detections as regions with ids of their own.

    An id follows from label and box alone. So the same thing keeps its id, and with it its place in every draw, when a
    threshold moves or another detector is added.

    Args:
        found: Detections of one image.
        taken: Ids that are in use.
    """
    used = set(taken)
    regions = []
    for each in found:
        name = json.dumps([each.label, *(round(side) for side in each.box)])
        number = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") >> (64 - _ID_BITS)
        while number in used:
            number = (number + 1) % (1 << _ID_BITS)
        used.add(number)
        regions.append(Region(number, each.label, each.box, each.mask, each.origin))
    return tuple(regions)

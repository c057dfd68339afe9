"""Rows of a built benchmark: their columns, how an example becomes one, and how a row is redone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from json import JSONEncoder
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from truegap.perturbations import redo
from truegap.perturbations.objects import pixel_bounds
from truegap.perturbations.pictures import pixels_of
from truegap.regions import masks
from truegap.schema import GENDERS, Example, Perturbation, Region


@dataclass(frozen=True, slots=True)
class Regions:
    """Persons and objects of one image, ready for `truegap.redo`.

    Attributes:
        person_mask: (H, W), True where anybody is.
        objects: Everything that can be blacked out.
        object_masks: Masks (H, W) of those objects that have one, by object id.
    """

    person_mask: NDArray[np.bool_]
    objects: tuple[Region, ...]
    object_masks: Mapping[int, NDArray[np.bool_]]


def regions_of(
    persons: tuple[Region, ...], objects: tuple[Region, ...], size: tuple[int, int], *, with_masks: bool = False
) -> Regions:
    """Decodes what the perturbations need; a person without a mask counts with the whole box.

    Args:
        persons: Everybody in the picture.
        objects: Everything else.
        size: `(height, width)`.
        with_masks: Whether objects' masks are decoded (only `shape="mask"` needs them).
    """
    drawn = [each.mask for each in persons if each.mask is not None]
    if drawn:
        person_mask = masks.decode(drawn[0] if len(drawn) == 1 else masks.union(drawn, size), size)
    else:
        person_mask = np.zeros(size, np.bool_)
    for each in persons:
        if each.mask is None:
            left, top, right, bottom = pixel_bounds(each.box)
            person_mask[top:bottom, left:right] = True
    decoded = {each.id: masks.decode(each.mask, size) for each in objects if with_masks and each.mask}
    return Regions(person_mask, objects, decoded)


def columns(extra: Mapping[str, Any]) -> Any:
    """The columns of every benchmark as `datasets.Features`, and those that this benchmark adds.

    Args:
        extra: Feature of each added column by name.
    """
    from datasets import ClassLabel, Features, Image, List, Value

    box = List(Value("float64"), length=4)
    return Features(
        {
            "image": Image(),
            "image_id": Value("string"),
            "split": Value("string"),
            "gender": ClassLabel(names=list(GENDERS)),
            "height": Value("int32"),
            "width": Value("int32"),
            "person_boxes": List(box),
            "person_masks": List(Value("string")),
            "person_origins": List(Value("string")),
            "objects": List(
                {
                    "id": Value("int64"),
                    "label": Value("string"),
                    "box": box,
                    "mask": Value("string"),
                    "origin": Value("string"),
                }
            ),
            "perturbation": {
                "feature": Value("string"),
                "strength": Value("string"),
                "seed": Value("int64"),
                "shift": Value("int32"),
                "radius": Value("float64"),
                "object_ids": List(Value("int64")),
                "n_objects": Value("int32"),
                "options": Value("string"),
                "benchmark": Value("string"),
                "boxes": List(box),
                "overlapping": Value("int32"),
                "donor": Value("string"),
            },
            "source": Value("string"),
            "license": Value("string"),
            "attribution": Value("string"),
            **extra,
        }
    )


def fields_of(example: Example) -> dict[str, Any]:
    """The columns of an example that are the same in all configs."""
    return {
        "image_id": example.image_id,
        "split": example.split,
        "gender": GENDERS.index(example.gender),
        "height": example.size[0],
        "width": example.size[1],
        "person_boxes": [list(map(float, each.box)) for each in example.persons],
        "person_masks": [each.mask for each in example.persons],
        "person_origins": [each.origin for each in example.persons],
        "objects": [
            {
                "id": each.id,
                "label": each.label,
                "box": list(map(float, each.box)),
                "mask": each.mask,
                "origin": each.origin,
            }
            for each in example.objects
        ],
        "source": example.source,
        "license": example.license,
        "attribution": example.attribution,
        **example.extra,
    }


def perturbation_field(drawn: Perturbation) -> dict[str, Any]:
    """What was drawn, as the row's column `perturbation`."""
    return {
        "feature": str(drawn.feature),
        "strength": None if drawn.strength is None else str(drawn.strength),
        "seed": drawn.seed,
        "shift": drawn.shift,
        "radius": drawn.radius,
        "object_ids": None if drawn.object_ids is None else list(drawn.object_ids),
        "n_objects": drawn.n_objects,
        "options": json.dumps(dict(drawn.options), sort_keys=True),
        "benchmark": drawn.benchmark,
        "boxes": None if drawn.boxes is None else [list(box) for box in drawn.boxes],
        "overlapping": drawn.overlapping,
        "donor": drawn.donor,
    }


def perturbation_of(field: Mapping[str, Any]) -> Perturbation:
    """The inverse of `perturbation_field`."""
    ids, boxes = field["object_ids"], field["boxes"]
    return Perturbation(
        **dict(field)
        | {
            "object_ids": None if ids is None else tuple(ids),
            "boxes": None if boxes is None else tuple(tuple(box) for box in boxes),
            "options": json.loads(field["options"] or "{}"),
        }
    )


def row_regions(row: Mapping[str, Any], *, with_masks: bool = False) -> Regions:
    """The regions of a row of any config, ready for `truegap.redo`."""
    boxes = zip(row["person_boxes"], row["person_masks"], strict=True)
    persons = tuple(Region(n, "person", tuple(box), mask) for n, (box, mask) in enumerate(boxes))
    objects = tuple(Region(each["id"], each["label"], tuple(each["box"]), each["mask"]) for each in row["objects"])
    return regions_of(persons, objects, (row["height"], row["width"]), with_masks=with_masks)


def redo_row(
    original: Mapping[str, Any], row: Mapping[str, Any], donor: Mapping[str, Any] | None = None
) -> Image.Image:
    """Redoes a row's perturbation from the same image's row of config `original`.

    What comes back are the pixels before encoding: equal to the row's image in a lossless build, and within
    what JPEG changes otherwise.

    Args:
        original: The row of config `original`, its image decoded.
        row: A row of the same image in any config.
        donor: For a background swap, the row of config `original` of the image `row["perturbation"]["donor"]`.

    Raises:
        ValueError: The rows are of different images, or the donor is missing.
    """
    if original["image_id"] != row["image_id"]:
        raise ValueError(
            f"rows are of images {original['image_id']!r} and {row['image_id']!r}: pass the same image's rows"
        )
    drawn = perturbation_of(row["perturbation"])
    regions = row_regions(original, with_masks=drawn.options.get("shape") == "mask")
    image: Image.Image = original["image"]
    pixels_and_mask = (pixels_of(donor["image"]), row_regions(donor).person_mask) if donor else None
    return redo(
        image,
        drawn,
        person_mask=regions.person_mask,
        objects=regions.objects,
        object_masks=regions.object_masks,
        donor=pixels_and_mask,
    )


def row_hash(image_sha256: str, fields: Mapping[str, Any]) -> str:
    """SHA-256 over a row: its image and its fields (parquet bytes depend on the writer; this does not)."""
    return hash_written(written({"image": image_sha256, **fields}))


_canonical = JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def written(fields: Mapping[str, Any]) -> dict[str, str]:
    """Each field, with its name, as canonical JSON; the fifteen rows of an image share most of theirs."""
    return {name: f"{_canonical(name)}:{_canonical(value)}" for name, value in fields.items()}


def hash_written(fields: Mapping[str, str]) -> str:
    """`row_hash` of what `written` gave: SHA-256 of the JSON object with sorted keys."""
    canonical = ",".join(fields[name] for name in sorted(fields))
    return hashlib.sha256(f"{{{canonical}}}".encode()).hexdigest()

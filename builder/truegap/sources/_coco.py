"""COCO's instances files: photographs, licences and raw annotations of the images that somebody wants."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from truegap.errors import UserError
from truegap.files.json_arrays import read_arrays
from truegap.files.values import NOT_PLAIN, address, is_plain, license_name, photo_size, shown, whole
from truegap.schema import Dropped, Size

PERSON = "person"


@dataclass(frozen=True, slots=True)
class Photo:
    """An image entry that can be used."""

    split: str
    file_name: str
    size: Size
    license: str
    attribution: str

    @property
    def source(self) -> str:
        """Where the image stands in the archive."""
        return f"{self.split}/{self.file_name}"


class Annotation(NamedTuple):
    """An annotation as the file has it; only the segmentation is packed, to save memory."""

    id: Any
    category: int | None
    box: Any
    segmentation: Any
    crowd: bool


@dataclass(slots=True)
class Instances:
    """What one instances file holds.

    Attributes:
        photos: The usable image entries, by image id.
        unusable: Image entries that cannot be used, with the reason, by image id.
        nameless: Image entries that have no id of their own.
        annotated: Ids of all images that annotations name.
        annotations: The annotations of the wanted images, by image id.
        categories: Names by category id.
        repairs: What was left out, counted by reason.
    """

    photos: dict[int, Photo] = field(default_factory=dict)
    unusable: dict[int, str] = field(default_factory=dict)
    nameless: list[Dropped] = field(default_factory=list)
    annotated: set[int] = field(default_factory=set)
    annotations: dict[int, list[Annotation]] = field(default_factory=dict)
    categories: dict[int, str] = field(default_factory=dict)
    repairs: Counter[str] = field(default_factory=Counter)


def read_instances(path: Path, split: str, wanted: Container[int]) -> Instances:
    """Read an instances file in one pass.

    Args:
        path: `instances_<split>.json`.
        split: Name of the split, which is also that of its folder of images.
        wanted: Ids of the images whose annotations are kept.

    Raises:
        UserError: The file is no instances file, or its categories lack `person`.
    """
    result = Instances()
    entries: list[Any] = []
    licenses: dict[int | None, str] = {}

    def take_category(entry: Any) -> None:
        number = whole(entry.get("id")) if isinstance(entry, dict) else None
        if number is not None and isinstance(entry.get("name"), str):
            result.categories.setdefault(number, shown(entry["name"]))

    def take_license(entry: Any) -> None:
        if isinstance(entry, dict):
            licenses.setdefault(whole(entry.get("id")), license_name(entry.get("url"), entry.get("name")))

    def take_annotation(entry: Any) -> None:
        image = whole(entry.get("image_id")) if isinstance(entry, dict) else None
        if image is None:
            result.repairs["annotation without an image id left out"] += 1
            return
        result.annotated.add(image)
        if image in wanted:
            annotation = Annotation(
                entry.get("id"),
                whole(entry.get("category_id")),
                entry.get("bbox"),
                _packed(entry.get("segmentation")),
                entry.get("iscrowd") is True or bool(whole(entry.get("iscrowd"))),
            )
            result.annotations.setdefault(image, []).append(annotation)

    # The tables of categories and licences may stand behind what refers to them.
    handlers = {"images": entries.append, "annotations": take_annotation, "categories": take_category}
    read_arrays(path, handlers, {"licenses": take_license})
    if PERSON not in result.categories.values():
        found = ", ".join(sorted(result.categories.values())[:5]) or "none"
        raise UserError(f"{path}: no category is named {PERSON!r} (found: {found}); is it an instances file of COCO?")
    for index, entry in enumerate(entries):
        _take_photo(result, entry, f"{path.name} images[{index}]", split, licenses)
    return result


def _take_photo(result: Instances, entry: Any, where: str, split: str, licenses: dict[int | None, str]) -> None:
    number = whole(entry.get("id")) if isinstance(entry, dict) else None
    if number is None:
        result.nameless.append(Dropped(where, "image id is not a whole number"))
    elif number in result.photos or number in result.unusable:
        result.nameless.append(Dropped(str(number), f"image id stands twice: {where} left out"))
    elif not is_plain(entry.get("file_name")):
        result.unusable[number] = NOT_PLAIN
    elif (size := photo_size(entry.get("height"), entry.get("width"))) is None:
        result.unusable[number] = "width and height are not those of a photograph"
    else:
        short = licenses.get(whole(entry.get("license")), "unknown")
        published = address(entry.get("flickr_url")) or address(entry.get("coco_url"))
        result.photos[number] = Photo(split, entry["file_name"], size, short, published)


def _packed(segmentation: Any) -> Any:
    """Polygons and runs as arrays, a quarter of the memory of lists; whatever is no number stays as it is."""
    if isinstance(segmentation, list):
        return [_array("d", polygon) for polygon in segmentation]
    if isinstance(segmentation, dict):
        return segmentation | {"counts": _array("q", segmentation.get("counts"))}
    return segmentation


def _array(code: str, numbers: Any) -> Any:
    try:
        return array(code, numbers) if isinstance(numbers, list) else numbers
    except (TypeError, OverflowError):
        return numbers

"""Open Images beside MIAP: boxes of objects, masks, names of classes, and the terms of every photograph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path

from truegap.files.tables import Row, cells, rows
from truegap.files.values import address, is_plain, license_name, number, shown
from truegap.regions.boxes import CUT, clipped, from_corners, overlap, scaled
from truegap.regions.masks import MaskError
from truegap.schema import Box, Region, Size
from truegap.sources._mask_pictures import MaskPictures

CORNERS = ("XMin", "YMin", "XMax", "YMax")

PEOPLE = {"/m/01g317", "/m/04yx4", "/m/03bt1vf", "/m/01bl7v", "/m/05r655"}
"""Person, Man, Woman, Boy, Girl: no objects."""

_SAME_BOX = 0.5
"""Intersection over union from which a mask's box and an annotated person are taken for the same (ours)."""
_SAME_OBJECT = 0.9
"""The same for objects of one class, whose masks were drawn in the very box."""


@dataclass(frozen=True, slots=True)
class Thing:
    """A box of Open Images; coordinates are shares of the image."""

    label: str
    box: Box


@dataclass(frozen=True, slots=True)
class Drawn:
    """A mask picture and the box that it was drawn in; coordinates are shares of the image."""

    label: str
    box: Box
    picture: str


@dataclass(frozen=True, slots=True)
class Terms:
    """What the table of images says about a photograph."""

    license: str
    attribution: str
    rotation: int


def box_of(row: Row, prefix: str = "") -> Box:
    """The box of a row, in shares of the image.

    Raises:
        MaskError: A coordinate is no number.
    """
    return from_corners([number(row[f"{prefix}{corner}"]) for corner in CORNERS])


def read_names(path: Path) -> dict[str, str]:
    """Names of classes by their ids; the file may have a header or none."""
    return {values[0]: shown(values[1]) for _, values in cells(path) if len(values) > 1 and values[0].startswith("/")}


def read_things(path: Path, images: Container[str], repairs: Counter[str]) -> dict[str, list[Thing]]:
    """The boxes that are not of people, of these images, in the file's order."""
    found: dict[str, list[Thing]] = {}
    for row in rows(path, ["ImageID", "LabelName", *CORNERS], only=("ImageID", images)):
        if row["LabelName"] not in PEOPLE:
            try:
                found.setdefault(row["ImageID"], []).append(Thing(row["LabelName"], box_of(row)))
            except MaskError as problem:
                repairs[f"object left out: {problem}"] += 1
    return found


def read_drawn(path: Path, images: Container[str], repairs: Counter[str]) -> dict[str, list[Drawn]]:
    """The masks of these images."""
    found: dict[str, list[Drawn]] = {}
    required = ["MaskPath", "ImageID", "LabelName", *(f"Box{corner}" for corner in CORNERS)]
    for row in rows(path, required, only=("ImageID", images)):
        try:
            box = box_of(row, "Box")
        except MaskError as problem:
            repairs[f"mask left out: {problem}"] += 1
            continue
        if is_plain(row["MaskPath"]):
            found.setdefault(row["ImageID"], []).append(Drawn(row["LabelName"], box, row["MaskPath"]))
        else:
            repairs["mask left out: its path leads elsewhere"] += 1
    return found


def read_terms(path: Path, images: Container[str]) -> dict[str, Terms]:
    """Licence, attribution and rotation of these images."""
    found = {}
    for row in rows(path, ["ImageID", "License"], only=("ImageID", images)):
        author, page = row.get("Author", ""), address(row.get("OriginalLandingURL", ""))
        attribution = ", ".join(part for part in (shown(author) if author else "", page) if part)
        turned = number(row.get("Rotation", ""))
        found[row["ImageID"]] = Terms(license_name(row["License"], None), attribution, int(turned or 0))
    return found


@dataclass(frozen=True, slots=True)
class Scenes:
    """Objects and masks by image id.

    Attributes:
        things: Boxes of objects.
        drawn: Masks of objects and people.
        pictures: Where the masks are.
        names: Of the classes.
        left_out: Names that are no objects, such as parts of the body and what people wear.
        repairs: What was mended, counted by reason.
    """

    things: Mapping[str, list[Thing]]
    drawn: Mapping[str, list[Drawn]]
    pictures: MaskPictures
    names: Mapping[str, str]
    left_out: Container[str]
    repairs: Counter[str]

    def objects(self, image: str, size: Size) -> tuple[Region, ...]:
        """The objects of an image, numbered from 1001 on in the file's order."""
        regions = []
        for place, thing in enumerate(self.things.get(image, ()), start=1001):
            label = self.names.get(thing.label, thing.label)
            if label in self.left_out or label.startswith("Human "):
                continue
            try:
                box, cut = clipped(scaled(thing.box, size), size)
            except MaskError as problem:
                self.repairs[f"object left out: {problem}"] += 1
                continue
            self.repairs[CUT] += cut
            masks = [each for each in self.drawn.get(image, ()) if each.label == thing.label]
            regions.append(Region(place, label, box, self._mask(masks, box, size, _SAME_OBJECT, "object")))
        return tuple(regions)

    def person(self, image: str, box: Box, size: Size) -> str | None:
        """The mask of the person in this box, if one was drawn."""
        masks = [each for each in self.drawn.get(image, ()) if each.label in PEOPLE]
        return self._mask(masks, box, size, _SAME_BOX, "person")

    def _mask(self, masks: list[Drawn], box: Box, size: Size, least: float, what: str) -> str | None:
        shares = [(overlap(scaled(mask.box, size), box), mask) for mask in masks]
        share, best = max(shares, key=lambda pair: (pair[0], pair[1].picture), default=(0.0, None))
        if best is None or share < least:
            return None
        try:
            return self.pictures.read(best.picture, size)
        except MaskError as problem:
            self.repairs[f"{what} kept with the box alone: {problem}"] += 1
            return None

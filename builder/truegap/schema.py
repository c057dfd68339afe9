"""The records that every room passes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

GENDERS = ("woman", "man")
"""Perceived presentation as annotators assigned it; the order is that of the `gender` ClassLabel."""

Gender = Literal["woman", "man"]

Split = Literal["train", "validation", "test"]

SPLITS: tuple[Split, ...] = ("train", "validation", "test")
"""In the order in which they are built and shown; models are evaluated on the last."""


class Feature(StrEnum):
    """What a perturbation changes (Hirota et al. 2025, section 3)."""

    COLOR = "color"
    LIGHTING = "lighting"
    OBJECT = "object"
    BACKGROUND = "background"


class Strength(StrEnum):
    """How much a perturbation changes."""

    WEAK = "weak"
    MIDDLE = "middle"
    STRONG = "strong"


Box = tuple[float, float, float, float]
"""`(x, y, width, height)` in pixels, x and y of the top left corner, as COCO writes boxes."""


Size = tuple[int, int]
"""`(height, width)` in pixels."""

MAX_PIXELS = 64_000_000
"""More is taken for a bomb: no photograph of these sources has a quarter of it, but a hostile file may claim it."""


@dataclass(frozen=True, slots=True)
class Region:
    """A person or an object: a box and, where the source has one, a mask.

    Attributes:
        id: The annotation's id in its source (64 bit; COCO's crowd ids are huge).
        label: Category name, such as `person` or `dining table`.
        box: `(x, y, width, height)` in pixels of the upright image.
        mask: COCO's compressed run-length counts for an image of the example's size, or None.
        origin: Who drew it: `annotation`, or the detections file or model with revision and threshold; after `; mask: `
            who drew the mask, if it was somebody else.
    """

    id: int
    label: str
    box: Box
    mask: str | None = None
    origin: str = "annotation"


class ImageRef(Protocol):
    """Where an image's encoded bytes come from; must be picklable, since workers read it."""

    def read(self) -> bytes:
        """The encoded bytes (JPEG, PNG, WebP) as the source has them."""
        ...


@dataclass(frozen=True, slots=True)
class ImageFile:
    """An image on disk."""

    path: Path

    def read(self) -> bytes:
        """The file's bytes.

        Raises:
            OSError: The file is absent or cannot be read.
        """
        return self.path.read_bytes()


@dataclass(frozen=True, slots=True)
class ImageBytes:
    """An image in memory."""

    data: bytes

    def read(self) -> bytes:
        """The bytes as given."""
        return self.data


@dataclass(frozen=True, slots=True)
class Example:
    """One labelled image of a benchmark, before any perturbation.

    Attributes:
        image_id: Unique within the benchmark and the same in every config.
        gender: Perceived presentation of the person shown.
        image: Where the encoded image comes from.
        size: `(height, width)` of the upright image as annotated; masks have this size.
        persons: Everybody in the picture, the labelled person first where that is known; empty where the source has no
            boxes, until somebody detects them.
        objects: Everything else that is annotated or was detected.
        source: Where the image stands in its archive, such as `val2014/COCO_val2014_000000000139.jpg`.
        license: Short name of the image's licence, such as `CC BY 2.0`.
        attribution: Where the image was published (URL), or its author; may be empty.
        extra: Columns that only this benchmark has.
        split: Which part of the benchmark the image is in; all but those made for training have `test` alone.
    """

    image_id: str
    gender: Gender
    image: ImageRef
    size: tuple[int, int]
    persons: tuple[Region, ...]
    objects: tuple[Region, ...] = ()
    source: str = ""
    license: str = "unknown"
    attribution: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    split: Split = "test"


@runtime_checkable
class Generated(Protocol):
    """Examples that follow from a few values: those tell whether they are the same, and none has to be made for it.

    They are a sequence like any other, whose slices are generated too, and all are alike: of one split, with somebody
    marked and with the same added columns. The first tells it of all.
    """

    @property
    def made_from(self) -> str:
        """The values, and the version of what makes the examples from them."""


@dataclass(frozen=True, slots=True)
class FilterStep:
    """What one step of a source's filter left, in the order of the steps."""

    name: str
    woman: int
    man: int
    other: int = 0
    """Images without one of the two labels (no label yet, unsure, both)."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """An image that is not in the benchmark, and why: never silent."""

    image_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Selection:
    """What a source gives to the build.

    Attributes:
        examples: Sorted by image id, so that nothing depends on the order of the archive.
        steps: Counts after every filter step, the first being what the archive holds.
        dropped: Every image that a step removed, with its reason.
        options: Every option that shaped the selection, as written into the manifest.
        repairs: What was mended or left out inside images that stay, counted by reason.
    """

    examples: Sequence[Example]
    steps: Sequence[FilterStep]
    dropped: Sequence[Dropped]
    options: Mapping[str, Any] = field(default_factory=dict)
    repairs: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Perturbation:
    """What was drawn for one image: with the original image and regions it redoes the perturbation.

    Attributes:
        feature: One of `Feature`, or `none` (original), `control`, `control-hsv`.
        strength: One of `Strength`, or empty for the configs without one.
        seed: The build's seed, part of the random key.
        shift: Hue or value shift on the 0-255 scale.
        radius: Standard deviation of the blur in pixels.
        object_ids: Ids of the blacked-out objects, in the order in which they were drawn.
        n_objects: How many objects could have been drawn.
        options: The conventions that were not at their default, such as `shape=mask`.
        benchmark: The benchmark's name, part of the random key.
        boxes: Where the rectangles of an object placebo were placed.
        overlapping: How many of them found no place off objects and persons.
        donor: Id of the image whose background was taken.
    """

    feature: str
    strength: str = ""
    seed: int = 0
    shift: int | None = None
    radius: float | None = None
    object_ids: tuple[int, ...] | None = None
    n_objects: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    benchmark: str = ""
    boxes: tuple[Box, ...] | None = None
    overlapping: int | None = None
    donor: str | None = None


CONTROLS = ("original", "control", "control-hsv")
CONFIGS = (*CONTROLS, *(f"{feature}-{strength}" for feature in Feature for strength in Strength))
"""The fifteen configs of every benchmark, in the order in which they are built and shown."""

CONTROL_OF = {
    Feature.COLOR: "control-hsv",
    Feature.LIGHTING: "control-hsv",
    Feature.OBJECT: "control",
    Feature.BACKGROUND: "control",
}
"""The config that does all that the perturbation of a feature does except the perturbation itself."""

PLACEBO = "object-placebo"
SWAP = "background-swap"
EXTRA_CONFIGS = (
    "person-removed",
    *(f"{PLACEBO}-{strength}" for strength in Strength),
    *(f"{SWAP}-{arm}" for arm in ("same", "cross")),
)
"""Controls that no paper has, built on request."""

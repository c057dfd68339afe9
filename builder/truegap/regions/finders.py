"""What is used to find persons and objects: parsed from what a user types, recorded in every manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from truegap.errors import UserError
from truegap.files.values import is_plain, is_plain_path, shown
from truegap.regions import grabcut
from truegap.regions.combine import OVERLAP, SAME_PERSON
from truegap.regions.detections import DetectionsFile, detections_file
from truegap.regions.models import Model, resolve
from truegap.regions.vocabulary import Vocabulary, read_vocabulary

DEFAULT_VOCABULARY = "everyday"

LIBRARIES = ("torch", "torchvision", "transformers")

_PERSON = "person"


@dataclass(frozen=True, slots=True)
class Finders:
    """How regions come about.

    Attributes:
        annotated_objects: Whether annotated objects stay where something else finds objects too.
        file: Detections made elsewhere, or None.
        detectors: Models that find things, in order of precedence.
        masks: Where masks come from that annotation and detectors do not give: `fallback` leaves the box to stand in,
            `box` does so even where there is a mask, `grabcut`, or a model.
        vocabulary: What open-vocabulary detectors look for.
        object_masks: Whether objects get masks too, and not persons alone.
    """

    annotated_objects: bool = True
    file: DetectionsFile | None = None
    detectors: tuple[Model, ...] = ()
    masks: Literal["fallback", "box", "grabcut"] | Model = "fallback"
    vocabulary: Vocabulary | None = None
    object_masks: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether the annotations stay as they are."""
        return self.file is None and not self.detectors and self.masks == "fallback"

    @property
    def models(self) -> tuple[Model, ...]:
        """All models."""
        return (*self.detectors, self.masks) if isinstance(self.masks, Model) else self.detectors

    @property
    def finds_objects(self) -> bool:
        """Whether anything but annotation gives objects."""
        return self.file is not None or bool(self.detectors)

    @property
    def names(self) -> tuple[str, ...]:
        """What open-vocabulary detectors are told, a person first: what is not asked for is called something else."""
        return tuple(dict.fromkeys((_PERSON, *(self.vocabulary.names if self.vocabulary else ()))))

    def record(self) -> dict[str, Any]:
        """What a manifest keeps and a build's key depends on."""
        libraries = ["opencv-python-headless"] if self.masks == "grabcut" else []
        libraries += LIBRARIES if self.models else []
        masks: Any = self.masks
        if isinstance(self.masks, Model):
            masks = self.masks.record()
        elif self.masks == "grabcut":
            masks = grabcut.describe()
        return {
            "annotated_objects": self.annotated_objects or not self.finds_objects,
            "detections": None if self.file is None else self.file.record(),
            "detectors": [model.record() for model in self.detectors],
            "masks": masks,
            "object_masks": self.object_masks,
            "vocabulary": None if self.vocabulary is None else self.vocabulary.record(),
            "overlap": OVERLAP,
            "same_person": SAME_PERSON,
            "versions": {library: version(library) for library in libraries},
        }


def choose(
    regions: str = "",
    *,
    detections: str | Path | None = None,
    vocabulary: str | Path | None = None,
    threshold: float | None = None,
    object_masks: bool = False,
) -> Finders:
    """The finders that a user typed.

    Annotated persons always stay: the label is theirs. Where a source has no persons, detected ones stand in. Objects
    come from what is named: from the annotations if no detector and no file is, from all of them together otherwise,
    where `annotations` has to be named to be among them.

    Args:
        regions: Names separated by commas: `annotations`, `box` (masks are left aside), `grabcut`, and models (folders
            or `org/name[@revision]`): detectors, of which there may be several, and one that makes masks of boxes.
        detections: A file of detections made elsewhere.
        vocabulary: For open-vocabulary detectors (`everyday` by default) and for the numbers in the file.
        threshold: Least score, for the file and for every detector; None for the usual one of each.
        object_masks: Whether objects get masks too.

    Raises:
        UserError: A name, a file or a model cannot be used, or they do not go together.
    """
    names = list(dict.fromkeys(part.strip() for part in regions.split(",") if part.strip()))
    if threshold is not None and not 0 < threshold < 1:
        raise UserError(f"--score-threshold {threshold:g}: give a number between 0 and 1")
    models = [_model(name, threshold) for name in names if name not in ("annotations", "box", "grabcut")]
    if models:
        _require_libraries()
    detectors = tuple(model for model in models if model.family != "masks")
    mask_makers = [name for name in names if name in ("box", "grabcut")]
    mask_makers += [model.name for model in models if model.family == "masks"]
    if len(mask_makers) > 1:
        raise UserError(f"--regions {regions}: {' and '.join(mask_makers)} both make masks; name one of them")
    if threshold is not None and not detectors and detections is None:
        raise UserError("--score-threshold is for detections: name a detector in --regions, or give --detections FILE")
    grounded = any(model.family == "grounded" for model in detectors)
    if vocabulary is not None and not grounded and detections is None:
        raise UserError(
            "--vocabulary is for open-vocabulary detectors (OWLv2, Grounding DINO, OmDet-Turbo) and --detections: "
            "name one in --regions"
        )
    words = read_vocabulary(vocabulary) if vocabulary is not None else None
    file = None if detections is None else detections_file(detections, threshold, words)
    maker: Any = next((model for model in models if model.family == "masks"), None)
    if mask_makers and maker is None:
        maker = mask_makers[0]
    return Finders(
        annotated_objects="annotations" in names or not (detectors or file),
        file=file,
        detectors=detectors,
        masks=maker or "fallback",
        vocabulary=(words or read_vocabulary(DEFAULT_VOCABULARY)) if grounded else None,
        object_masks=object_masks,
    )


def redrawing(masks: str | Mapping[str, Any], *, object_masks: bool) -> Finders:
    """What draws masks inside of boxes as an earlier build did; it detects nothing.

    Args:
        masks: What `Finders.record` said of them then, perhaps written by somebody else.
        object_masks: Whether objects get masks too.

    Raises:
        UserError: They were drawn with other settings, or by a model that is not here.
    """
    if isinstance(masks, Mapping):
        return Finders(masks=_same_model(masks), object_masks=object_masks)
    if masks == "box" or masks == grabcut.describe():
        return Finders(masks="box" if masks == "box" else "grabcut", object_masks=object_masks)
    raise UserError(
        f"masks were drawn by {shown(masks)}, and this truegap draws with {grabcut.describe()}: install the truegap of "
        "that time"
    )


def _same_model(record: Mapping[str, Any]) -> Model:
    name: Any
    name, revision, content = (record.get(each) for each in ("model", "revision", "content"))
    # A name from somebody else's file must lead nowhere but to a folder here or to the Hub.
    if not is_plain_path(name) or name.count("/") > 1 or not (revision is None or is_plain(revision)):
        raise UserError(f"masks were drawn by {shown(name)}, which is no name of a model")
    _require_libraries()
    try:
        model = resolve(f"{name}@{revision}" if revision else name)
    except UserError as error:
        raise UserError(
            f"masks were drawn by {shown(name)} inside of annotated boxes, so they are not published and have to be "
            f"drawn again, but: {error}"
        ) from error
    if model.content != content or model.family != "masks":
        raise UserError(
            f"masks were drawn by {shown(name)}, content {shown(content)[:12]}; the model of this name here has "
            f"content {model.content[:12]}: get the same one"
        )
    return model


def _model(name: str, threshold: float | None) -> Model:
    try:
        return resolve(name, threshold)
    except UserError as error:
        hint = "" if "/" in name else " (or write annotations, box or grabcut)"
        raise UserError(f"--regions: {error}{hint}") from error


def _require_libraries() -> None:
    absent = [library for library in LIBRARIES if find_spec(library) is None]
    if absent:
        raise UserError(f"--regions: models need {', '.join(absent)}: pip install 'truegap[models]'")

"""A file of detections made elsewhere, in the style of COCO's results: how users of Detic and others plug in.

The file is a JSON list with one object per detection, or an object with such a list under `annotations` and, if wanted,
the names of the categories under `categories`:

    [{"image_id": 139, "category_id": 62, "bbox": [241.2, 159.1, 143.4, 210.8], "score": 0.93},
     {"image_id": "COCO_val2014_000000000139.jpg", "label": "cup", "bbox": [10, 20, 30, 40], "score": 0.71,
      "segmentation": {"size": [426, 640], "counts": "..."}}]

`image_id` is the benchmark's image id, or the image's file name with or without its extension. `bbox` is
`[x, y, width, height]` in pixels of the upright image. What it is says `label`, or else `category_id`, whose name is
taken from `categories` or from a vocabulary: a number alone is never guessed at, since 1 is a person to COCO and a can
to LVIS. `segmentation` (polygons, or run lengths, compressed or not) may be absent. With the results that Detic writes
for LVIS, give the annotation file of LVIS as vocabulary: its table of categories is all that is read of it.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from truegap.errors import UserError
from truegap.files.json_arrays import read_arrays, read_list
from truegap.files.values import number, shown, whole
from truegap.regions.boxes import CUT, clipped, segmentation
from truegap.regions.combine import Detection
from truegap.regions.masks import MaskError
from truegap.regions.vocabulary import Vocabulary
from truegap.schema import Example, Size

THRESHOLD = 0.5
MOST = 1_000
"""Detections of one image that are read; COCO's results hold at most 100."""


@dataclass(frozen=True, slots=True)
class DetectionsFile:
    """A file of detections and how it is read.

    Attributes:
        path: Where it is.
        sha256: Of its bytes.
        threshold: Detections with a lower score are left out.
        vocabulary: Names by `category_id`, or None.
    """

    path: Path
    sha256: str
    threshold: float = THRESHOLD
    vocabulary: Vocabulary | None = None

    @property
    def origin(self) -> str:
        """What a row says of a region from this file."""
        return f"{self.path.name}@{self.sha256[:12]} (score>={self.threshold:g})"

    def record(self) -> dict[str, Any]:
        """What a manifest keeps."""
        vocabulary = None if self.vocabulary is None else self.vocabulary.record()
        return {"file": self.path.name, "sha256": self.sha256, "threshold": self.threshold, "vocabulary": vocabulary}

    def read(self, examples: Sequence[Example]) -> tuple[dict[str, list[Detection]], Counter[str]]:
        """The detections of these images, best first, and what was left out, counted by reason.

        Args:
            examples: Images; only what concerns them stays in memory.

        Returns:
            Detections by image id, and the counts.

        Raises:
            UserError: The file is no list of detections, or holds nothing for any of the images.
        """
        reader = _Reader(self, examples)
        if reader.is_list:
            read_list(self.path, reader.take)
        else:
            read_arrays(self.path, {}, {"categories": reader.take_category})
            read_arrays(self.path, {"annotations": reader.take})
        if examples and not reader.matched:
            raise UserError(
                f"{self.path}: no detection is of an image of this benchmark ({reader.other} of others); image_id is "
                f"the benchmark's image id, such as {examples[0].image_id!r}, or the image's file name"
            )
        if reader.other:
            reader.left_out["detection left out: of another image"] = reader.other
        for each in reader.found.values():
            each.sort(key=lambda detection: (-detection.score, detection.label, detection.box))
        return dict(reader.found), +reader.left_out


def detections_file(
    path: str | Path, threshold: float | None = None, vocabulary: Vocabulary | None = None
) -> DetectionsFile:
    """A file of detections, looked at as far as needed to know it again.

    Raises:
        UserError: It cannot be read.
    """
    place = Path(path)
    try:
        with place.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"detections {place}: cannot be read: {error.strerror}") from None
    return DetectionsFile(place, digest, THRESHOLD if threshold is None else threshold, vocabulary)


class _Reader:
    """Takes one entry after the other."""

    def __init__(self, file: DetectionsFile, examples: Sequence[Example]) -> None:
        self.file = file
        self.names: Mapping[int, str] = {} if file.vocabulary is None else file.vocabulary.by_number
        self.own_names: dict[int, str] = {}
        self.images = _by_name(examples)
        self.found: dict[str, list[Detection]] = defaultdict(list)
        self.counts: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.matched = False
        self.other = 0
        with file.path.open("rb") as opened:
            self.is_list = opened.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] != b"{"

    def take_category(self, entry: Any) -> None:
        number_, name = (entry.get("id"), entry.get("name")) if isinstance(entry, dict) else (None, None)
        if type(number_) is not int or not isinstance(name, str):
            raise UserError(f"{self.file.path}: an entry of 'categories' lacks a whole-number 'id' and a 'name'")
        self.own_names[number_] = name

    def take(self, entry: Any) -> None:
        if not isinstance(entry, dict):
            self.left_out["detection left out: entry is not an object"] += 1
            return
        example = self.images.get(_name(entry.get("image_id")))
        if example is None:
            reason = None if "image_id" in entry else "detection left out: image_id is missing"
            self.other += reason is None
            if reason:
                self.left_out[reason] += 1
            return
        self.matched = True
        try:
            detection = self._detection(entry, example.size)
        except MaskError as problem:
            self.left_out[f"detection left out: {problem}"] += 1
            return
        if detection is None:
            return
        self.counts[example.image_id] += 1
        if self.counts[example.image_id] > MOST:
            self.left_out[f"detection left out: more than {MOST} in one image"] += 1
            return
        self.found[example.image_id].append(detection)

    def _detection(self, entry: Mapping[str, Any], size: Size) -> Detection | None:
        score = None if isinstance(entry.get("score"), str) else number(entry.get("score"))
        if score is None or not 0 <= score <= 1:
            raise MaskError("score is not a number from 0 to 1")
        if score < self.file.threshold:
            return None
        box, cut = clipped(entry.get("bbox"), size)
        found = Detection(self._label(entry), score, box, None, self.file.origin)
        self.left_out[CUT] += cut
        if entry.get("segmentation"):
            try:
                found = replace(found, mask=segmentation(entry["segmentation"], size))
            except MaskError as problem:
                self.left_out[f"detection kept with its box alone: {problem}"] += 1
        return found

    def _label(self, entry: Mapping[str, Any]) -> str:
        label = entry.get("label")
        if isinstance(label, str) and label.strip():
            return shown(label)
        if "category_id" not in entry:
            raise MaskError("neither label nor category_id")
        category = whole(entry["category_id"])
        if category is None:
            raise MaskError("category_id is not a whole number")
        name = self.own_names.get(category) or self.names.get(category)
        if name is None:
            raise MaskError(
                "category_id without a name (write label or categories into the file, or give a vocabulary)"
            )
        return shown(name.replace("_", " "))


def _by_name(examples: Sequence[Example]) -> dict[str, Example]:
    """Every name under which a file may know an image; a name that two images share is nobody's."""
    found: dict[str, Example] = {}
    for names in (_stem, _file_name, lambda example: example.image_id):
        count = Counter(names(example) for example in examples)
        found |= {names(example): example for example in examples if count[names(example)] == 1}
        for name in [name for name, times in count.items() if times > 1]:
            found.pop(name, None)
    return found


def _file_name(example: Example) -> str:
    return example.source.rpartition("/")[2]


def _stem(example: Example) -> str:
    name = _file_name(example)
    return name.rpartition(".")[0] or name


def _name(image_id: Any) -> str:
    return str(image_id) if isinstance(image_id, str) or type(image_id) is int else ""

"""Labels of perceived presentation for COCO images: from the words of the captions, or from the annotators' table."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truegap.errors import UserError
from truegap.files.json_arrays import read_arrays
from truegap.files.tables import cells, rows
from truegap.files.values import whole
from truegap.schema import Gender
from truegap.sources._pickles import read_pickled_list

_WORD = re.compile(r"[a-z]+(?:-[a-z]+)*")
_ITEM = r"""(?:'[^'\\]*'|"[^"\\]*"|[\w.+-]+)"""
_LIST = re.compile(rf"\s*\[\s*(?:{_ITEM}(?:\s*,\s*{_ITEM})*)?\s*\]\s*")
_PICKLES = ("train.data", "val.data", "test.data")
_GENDERS: dict[str, Gender] = {"female": "woman", "male": "man"}


@dataclass(frozen=True, slots=True)
class Label:
    """What is known about an image: a label, or why there is none.

    Attributes:
        gender: The label, or None.
        reason: Why there is none; empty where there is one.
        persons: How many persons the annotators looked at, where that is known.
    """

    gender: Gender | None
    reason: str = ""
    persons: int | None = None


@dataclass(slots=True)
class Labels:
    """The labels by image id.

    Attributes:
        by_image: The labels.
        absent: The reason for an image that is not in `by_image`.
        counts_persons: Whether the table says how many persons the annotators looked at.
        repairs: What was left out, counted by reason.
        origin: Which file the labels are from, for the manifest; empty for captions.
    """

    by_image: dict[int, Label]
    absent: str
    counts_persons: bool = False
    repairs: Counter[str] = field(default_factory=Counter)
    origin: dict[str, str] = field(default_factory=dict)

    def of(self, image: int) -> Label:
        """The label of an image, or why it has none."""
        return self.by_image.get(image) or Label(None, self.absent)


_MAN_WOMAN = {"[1, 0]": Label("man"), "[0, 1]": Label("woman")}
"""How those files write a label."""


def from_captions(paths: Iterable[Path], woman_words: Iterable[str], man_words: Iterable[str]) -> Labels:
    """Label an image by the words of all its captions: woman or man, if only one of them is named.

    Words are runs of letters, compared without case; hyphenated words count as one (`man-made` names no man).

    Args:
        paths: `captions_<split>.json` of every split.
        woman_words: Words that name a woman.
        man_words: Words that name a man.

    Raises:
        UserError: A file is no captions file.
    """
    named = dict.fromkeys(woman_words, 1) | dict.fromkeys(man_words, 2)
    found: dict[int, int] = {}
    repairs: Counter[str] = Counter()

    def take(entry: Any) -> None:
        image = whole(entry.get("image_id")) if isinstance(entry, dict) else None
        caption = entry.get("caption") if image is not None else None
        if image is None or not isinstance(caption, str):
            repairs["caption without text or image id left out"] += 1
            return
        both = found.get(image, 0)
        for word in _WORD.findall(caption.lower()):
            both |= named.get(word, 0)
        found[image] = both

    for path in paths:
        read_arrays(path, {"annotations": take})
    labels = (
        Label(None, "captions name neither a woman nor a man"),
        Label("woman"),
        Label("man"),
        Label(None, "captions name a woman and a man"),
    )
    return Labels({image: labels[both] for image, both in found.items()}, "no caption", repairs=repairs)


def from_annotators(path: Path) -> Labels:
    """Read the table of Zhao, Wang and Russakovsky (2021), known by its columns `id` and `bb_gender`, not by its name.

    Args:
        path: The CSV file, or the folder that it was delivered in.

    Raises:
        UserError: There is no such table.
    """
    path = _find_table(path)
    labels: dict[int, Label] = {}
    repairs: Counter[str] = Counter()
    counts_persons = False
    for row in rows(path, ["id", "bb_gender"]):
        image = whole(row["id"])
        if image is None:
            repairs["row of the annotators' table without an image id left out"] += 1
            continue
        column = next((name for name in ("skin", "ratio") if name in row), None)
        counts_persons |= column is not None
        persons = parse_list(row[column]) if column is not None else None
        answer = row["bb_gender"].lower()
        gender = _GENDERS.get(answer)
        if image in labels:
            labels[image] = Label(None, "annotators: two rows for one image")
        elif gender is not None:
            labels[image] = Label(gender, "", None if persons is None else len(persons))
        elif answer in {"", "nan"}:
            labels[image] = Label(None, "annotators: no label")
        elif answer in {"unsure", "both"}:
            labels[image] = Label(None, f"annotators: {answer.capitalize()}")
        else:
            labels[image] = Label(None, "annotators: a label that is not known")
    if not labels:
        raise UserError(f"{path}: holds no row with an image id")
    origin = {"labels_file": path.name, "labels_sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    return Labels(labels, "not in the annotators' table", counts_persons, repairs, origin)


def from_pickles(path: Path) -> Labels:
    """Read the label files of Wang et al. (2019), "Balanced Datasets Are Not Enough": pickles of COCO 2014 images.

    Args:
        path: One such file, or the folder that holds `train.data`, `val.data` or `test.data`.

    Raises:
        UserError: There is no such file, or one that holds more than labels.
    """
    found = [path] if not path.is_dir() else [each for each in map(path.joinpath, _PICKLES) if each.is_file()]
    if not found:
        raise UserError(f"{path}: holds none of {', '.join(_PICKLES)}")
    labels: dict[int, Label] = {}
    repairs: Counter[str] = Counter()
    for file in found:
        for entry in read_pickled_list(file):
            image = whole(entry.get("image_id")) if isinstance(entry, dict) else None
            if image is None:
                repairs["entry of the label files without an image id left out"] += 1
                continue
            unknown = Label(None, "label files: gender is not [1, 0] or [0, 1]")
            label = _MAN_WOMAN.get(repr(entry.get("gender")), unknown)
            if labels.setdefault(image, label) != label:
                labels[image] = Label(None, "label files: two labels for one image")
    hashes = [hashlib.sha256(file.read_bytes()).hexdigest() for file in found]
    origin = {"labels_file": ",".join(file.name for file in found), "labels_sha256": ",".join(hashes)}
    return Labels(labels, "not in the label files", False, repairs, origin)


def parse_list(text: str) -> list[str | None] | None:
    """Read a Python list of strings and numbers in which a bare `nan` may stand, without evaluating it.

    Args:
        text: Such as `['Light', nan]`.

    Returns:
        The items as text, None for `nan`; None if this is no such list.
    """
    if not _LIST.fullmatch(text):
        return None
    items: list[str] = re.findall(_ITEM, text)
    return [None if item == "nan" else item[1:-1] if item[0] in "'\"" else item for item in items]


def _find_table(path: Path) -> Path:
    tables = sorted(path.glob("*.csv")) if path.is_dir() else [path]
    seen = []
    for table in tables:
        columns = next(cells(table), (0, []))[1]
        if {"id", "bb_gender"} <= {column.strip() for column in columns}:
            return table
        seen.append(f"{table.name}: {', '.join(columns[:6])[:80] or 'empty'}")
    what = "; ".join(seen) or "no CSV file"
    raise UserError(f"{path}: no table with the columns id and bb_gender, which the annotators' labels need ({what!r})")

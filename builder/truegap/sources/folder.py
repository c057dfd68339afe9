"""Anybody's own images: a folder with a `metadata.csv`.

Columns `file_name` and `gender` are needed. `image_id`, `person_boxes` (JSON: `[[x, y, width, height], ...]` in pixels,
the labelled person first), `objects` (JSON: `[{"label": "cup", "box": [x, y, width, height]}, ...]`), `split`,
`source`, `license` and `attribution` are understood; all others are groups and become columns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from truegap.errors import UserError
from truegap.files.json_arrays import parse
from truegap.files.tables import Row, rows
from truegap.files.values import NOT_PLAIN, gender, is_plain, is_plain_path, shown
from truegap.regions.boxes import CUT, Unusable, clipped, four
from truegap.regions.masks import MaskError
from truegap.schema import Dropped, Example, Gender, ImageFile, Region, Selection, Size, Split
from truegap.sources._funnel import Funnel
from truegap.sources._source import Names, Options, Source

_NEEDED = ("file_name", "gender")
_UNDERSTOOD = (*_NEEDED, "image_id", "person_boxes", "objects", "split", "source", "license", "attribution")
_TAKEN = ("image", "height", "width", "person_masks", "perturbation")
"""Columns of every built benchmark, which no group may be called."""
_COLUMN = re.compile(r"[A-Za-z]\w{0,63}", re.ASCII)
_LARGEST_CELL = 100_000


class FolderOptions(Options):
    """How a folder becomes a benchmark."""

    metadata: str = "metadata.csv"
    """The table's name in the folder."""
    groups: Names | None = None
    """Columns to keep beside the labels; None for all."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the table, checked as far as that goes without the image."""

    row: Row
    gender: Gender | None
    split: Split
    problem: str = ""


def read(folder: Path, options: FolderOptions) -> Selection:
    """The selection; `Source.read` checks options and folder first."""
    if not is_plain(options.metadata):
        raise UserError(f"folder: metadata {options.metadata!r} is not the name of a file in {folder}")
    entries, apart = _entries(folder / options.metadata)
    groups = _groups(folder / options.metadata, next((entry.row for entry in entries.values()), None), options.groups)
    photos = {image: folder / entry.row["file_name"] for image, entry in entries.items() if not entry.problem}
    repairs: Counter[str] = Counter()
    regions: dict[str, tuple[tuple[Region, ...], tuple[Region, ...]]] = {}
    funnel = Funnel({image: entry.gender for image, entry in entries.items()}, apart)
    funnel.keep("row", lambda image: entries[image].problem)
    funnel.keep("label", lambda image: _no_label(entries[image]))
    sizes = funnel.keep_photos({image: path for image, path in photos.items() if path.is_file()})

    def problem(image: str) -> str | None:
        try:
            regions[image] = _regions(entries[image].row, sizes[image], repairs)
        except Unusable as detail:
            return f"a person or an object cannot be used: {detail}"
        return None

    funnel.keep("boxes", problem)

    def example(image: str, label: Gender) -> Example:
        row = entries[image].row
        persons, objects = regions[image]
        return Example(
            image_id=image,
            gender=label,
            image=ImageFile(photos[image]),
            size=sizes[image],
            persons=persons,
            objects=objects,
            source=row.get("source") or row["file_name"],
            license=row.get("license") or "unknown",
            attribution=row.get("attribution", ""),
            extra={name: row[name] for name in groups},
            split=entries[image].split,
        )

    resolved = {"metadata": options.metadata, "groups": groups}
    return funnel.selection("folder", folder, example, resolved, repairs)


SOURCE = Source("folder", FolderOptions, read)


def _entries(table: Path) -> tuple[dict[str, Entry], list[Dropped]]:
    entries: dict[str, Entry] = {}
    apart = []
    for row in rows(table, _NEEDED):
        image = row.get("image_id") or row["file_name"]
        if not image.isprintable() or not 0 < len(image) <= 1000:  # noqa: PLR2004
            apart.append(Dropped(row.where, "image id is empty or cannot be shown"))
        elif image in entries:
            apart.append(Dropped(image, f"image id stands twice: {row.where} left out"))
        else:
            problem = "" if is_plain_path(row["file_name"]) else NOT_PLAIN
            split = row.get("split") or "test"
            if split not in get_args(Split):
                split, problem = "test", f"split is not one of {', '.join(get_args(Split))}"
            entries[image] = Entry(row, gender(row["gender"]), split, problem)  # type: ignore[arg-type]  # checked above
    return entries, apart


def _no_label(entry: Entry) -> str | None:
    return None if entry.gender else f"nobody labelled woman or man: gender {shown(entry.row['gender'])}"


def _groups(table: Path, row: Row | None, asked: Sequence[str] | None) -> list[str]:
    there = [] if row is None else [name for name in row if name and name not in _UNDERSTOOD]
    if absent := [name for name in asked or () if name not in there]:
        raise UserError(f"{table}: has no group {', '.join(absent)}; there are: {', '.join(there) or 'none'}")
    chosen = there if asked is None else list(asked)
    for name in chosen:
        if not _COLUMN.fullmatch(name) or name in _TAKEN:
            raise UserError(f"{table}: a column cannot be called {shown(name)!r}; rename it, or choose by groups")
    return chosen


def _regions(row: Row, size: Size, repairs: Counter[str]) -> tuple[tuple[Region, ...], tuple[Region, ...]]:
    boxes = _cell(row, "person_boxes")
    things = _cell(row, "objects")
    persons = tuple(
        _region(place, "person", box, size, repairs, f"person {place}") for place, box in enumerate(boxes, start=1)
    )
    objects = []
    for place, thing in enumerate(things, start=len(boxes) + 1):
        label = thing.get("label") if isinstance(thing, dict) else None
        if not isinstance(label, str) or not label.strip():
            raise Unusable(f"objects hold something without a label ({row.where})")
        objects.append(_region(place, shown(label), thing.get("box"), size, repairs, f"object {shown(label)}"))
    return persons, tuple(objects)


def _region(place: int, label: str, value: Any, size: Size, repairs: Counter[str], what: str) -> Region:
    try:
        box, cut = clipped(four(value), size)
    except MaskError as problem:
        raise Unusable(f"{what}: {problem}") from None
    repairs[CUT] += cut
    return Region(place, label, box)


def _cell(row: Row, name: str) -> list[Any]:
    text = row.get(name, "")
    if not text:
        return []
    try:
        value = parse(text) if len(text) <= _LARGEST_CELL else None
    except ValueError:
        value = None
    if not isinstance(value, list):
        raise Unusable(f"{name} is not a JSON list ({row.where})")
    return value

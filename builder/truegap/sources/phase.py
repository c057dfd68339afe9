"""PHASE: photographs of Google Conceptual Captions with annotated people (Garcia et al. 2023).

The folder holds the two archives as they unpack: the annotations `phase_gcc_<split>_regions_<date>.json` (or `_all_`),
and the photographs, which have no extension, in `images/<split>/` or `<split>/`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from truegap.errors import UserError
from truegap.files.json_arrays import read_members
from truegap.files.tables import maybe_file
from truegap.files.values import NOT_PLAIN, gender, is_plain, shown, storable, whole
from truegap.regions.boxes import from_corners
from truegap.regions.masks import MaskError
from truegap.schema import Box, Dropped, Selection
from truegap.sources._people import PeopleArchive, Person, Rule, select
from truegap.sources._photos import by_stem, files
from truegap.sources._source import Options, Source

Split = Literal["train", "val"]

_KEY = re.compile(r"person(\d+)", re.ASCII)
_TRAITS = ("age", "skintone", "ethnicity", "emotion", "activity")
_MAJORITY = 2


class PhaseOptions(Options):
    """How PHASE becomes a benchmark."""

    split: Literal["auto", "train", "val"] = "auto"
    """`auto` for all that are there."""
    labels: Literal["regions", "all"] = "regions"
    """The authors' majority label, or our majority (two of up to three) of every annotator's answer."""
    single_person: Rule = "annotated"
    """How an image gets one label: `annotated` (exactly one person is annotated), `uniform_presentation` (all who are
    labelled woman or man share it), `largest_box`."""


def read(folder: Path, options: PhaseOptions) -> Selection:
    """The selection; `Source.read` checks options and folder first."""
    people: dict[str, list[Person]] = {}
    captions: dict[str, str] = {}
    apart: list[Dropped] = []
    photos: dict[str, Path] = {}
    tables = _tables(folder, options)
    for split, table in tables.items():
        _read_split(split, table, people, captions, apart)
        folders = [folder / "images" / split, folder / split, folder / "phase_images" / split]
        here = files(folders)
        photos |= {f"{split}/{key}": path for key, path in (by_stem(here) | here).items()}
    return select(
        PeopleArchive(
            name="phase",
            folder=folder,
            people=people,
            files=photos,
            rule=options.single_person,
            fractions=False,
            apart=apart,
            repairs=Counter(),
            options=options.model_dump() | {"split": list(tables)},
            terms=lambda _image: ("PHASE research use", ""),
            columns=lambda image: {"caption": captions[image]},
        )
    )


SOURCE = Source("phase", PhaseOptions, read)


def _tables(folder: Path, options: PhaseOptions) -> dict[str, Path]:
    splits = ("train", "val") if options.split == "auto" else (options.split,)
    found = {}
    for split in splits:
        names = [f"phase_gcc_{split}_{options.labels}_*.json", f"phase_gcc_{split}_{options.labels}.json"]
        if options.labels == "regions":
            names.append(f"anns_imgs_gcc_{split}_majorities_regions_*.json")
        patterns = [f"{place}{name}" for name in names for place in ("", "*/")]
        if table := maybe_file("phase", folder, patterns, f"the {split} split"):
            found[split] = table
    if not found:
        raise UserError(
            f"phase: {folder} holds no annotations; expected phase_gcc_{splits[0]}_{options.labels}_<date>.json"
        )
    return found


def _read_split(
    split: str, table: Path, people: dict[str, list[Person]], captions: dict[str, str], apart: list[Dropped]
) -> None:
    def take(key: str, entry: Any) -> None:
        image = f"{split}/{key}"
        if not is_plain(key):
            apart.append(Dropped(f"{table.name} {shown(key)}", NOT_PLAIN))
        elif not isinstance(entry, dict):
            apart.append(Dropped(image, "entry is not an object"))
        elif image in people:
            apart.append(Dropped(image, f"image stands twice in {table.name}: the later entry left out"))
        else:
            people[image] = list(_people(entry))
            caption = entry.get("caption")
            captions[image] = storable(caption) if isinstance(caption, str) else ""

    read_members(table, take)


def _people(entry: Mapping[str, Any]) -> Iterable[Person]:
    seen: set[int] = set()
    for key, value in entry.items():
        match = _KEY.fullmatch(key)
        if match is None or value is None:
            continue
        number = whole(match[1])
        if not isinstance(value, dict):
            yield Person(number or 0, None, "person is not an object", problem="person is not an object")
            continue
        answers = _answers(value.get("annotations"))
        label = gender(answers.get("gender"))
        box, problem = _box(value.get("region"))
        if number is None:
            box, problem = None, "person has a number of too many digits"
        elif number in seen:
            box, problem = None, "person number stands twice"
        else:
            seen.add(number)
        traits = {trait: shown(answers.get(trait)) if answers.get(trait) else "unknown" for trait in _TRAITS}
        why = f"gender {shown(answers.get('gender'))}"
        yield Person(number or 0, label, "" if label else why, box, problem, columns=traits)


def _answers(value: Any) -> dict[str, Any]:
    """Attribute and value: as the majority has it, or of every annotator brought to a majority."""
    if isinstance(value, dict):
        return value
    each = [answer for answer in value if isinstance(answer, dict)] if isinstance(value, list) else []
    votes = {trait: Counter(shown(answer.get(trait)) for answer in each) for trait in ("gender", *_TRAITS)}
    return {trait: _majority(counts) for trait, counts in votes.items() if counts}


def _majority(counts: Counter[str]) -> str:
    word, number = counts.most_common(1)[0]
    return word if number >= _MAJORITY or counts.total() == 1 else "disagreement"


def _box(region: Any) -> tuple[Box | None, str]:
    try:
        box = from_corners(region)
    except MaskError as problem:
        return None, str(problem)
    if box[2] <= 0 or box[3] <= 0:
        return None, "region is not x1, y1, x2, y2"
    return box, ""

"""FACET: photographs with annotated people, by perceived gender presentation (Gustafson et al. 2023).

The folder is the archive's as it unpacks: `annotations/annotations.csv`, beside it `coco_masks.json` where it is at
hand, and the photographs in `imgs_1/`, `imgs_2/`, `imgs_3/` or `images/`. FACET has no labels of objects; masks of
whole persons exist for a quarter of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from truegap.errors import UserError
from truegap.files.json_arrays import parse, read_arrays
from truegap.files.tables import Row, maybe_file, one_file, rows
from truegap.files.values import NOT_PLAIN, flag, is_plain, number, shown, whole
from truegap.regions.boxes import four
from truegap.regions.masks import MaskError
from truegap.schema import Box, Dropped, Gender, Selection
from truegap.sources._people import PeopleArchive, Person, Rule, select, wanted
from truegap.sources._photos import files
from truegap.sources._source import Options, Source

_NEEDED = ("person_id", "filename", "bounding_box", "gender_presentation_masc", "gender_presentation_fem")
_FOLDERS = ("imgs_1", "imgs_2", "imgs_3", "images", ".")
_AGES = ("young", "middle", "older")
_PERSON_IDS = ("person_id", "facet_person_id")
"""Both names are in use in `coco_masks.json`."""


class FacetOptions(Options):
    """How FACET becomes a benchmark."""

    single_person: Rule = "uniform_presentation"
    """How an image gets one label; the paper does not say.

    - `annotated`: exactly one person is annotated (some 21,000 images: fewer than the paper uses).
    - `uniform_presentation`: all persons labelled woman or man share one label; others do not count.
    - `largest_box`: the label of the largest box.
    """
    masks: bool = True
    """Whether person masks are read from `coco_masks.json`."""


def read(folder: Path, options: FacetOptions) -> Selection:
    """The selection; `Source.read` checks options and folder first."""
    table = one_file("facet", folder, ("annotations/annotations.csv", "annotations.csv"), "table of people")
    repairs: Counter[str] = Counter()
    people, apart = _people(table)
    if not people:
        raise UserError(f"facet: {table} lists nobody; is it the right file?")
    photos = files(folder / name for name in _FOLDERS)
    file = maybe_file("facet", table.parent, ("coco_masks.json",), "masks") if options.masks else None
    if file is not None:
        images = wanted(options.single_person, people, photos)
        ids = {person.id for image in images for person in people[image]}
        masks = _masks(file, ids, repairs)
        for image in images:
            people[image] = [replace(person, mask=masks.get(person.id)) for person in people[image]]
    return select(
        PeopleArchive(
            name="facet",
            folder=folder,
            people=people,
            files=photos,
            rule=options.single_person,
            fractions=False,
            apart=apart,
            repairs=repairs,
            options=options.model_dump() | {"masks": file is not None},
            terms=lambda _image: ("FACET dataset agreement", ""),
        )
    )


SOURCE = Source("facet", FacetOptions, read)


def _people(table: Path) -> tuple[dict[str, list[Person]], list[Dropped]]:
    people: dict[str, list[Person]] = {}
    apart = []
    seen: set[int] = set()
    for row in rows(table, _NEEDED):
        # Programs that saw an empty cell write `7.0` for 7.
        image, person = row["filename"], whole(row["person_id"].removesuffix(".0"))
        if not is_plain(image):
            apart.append(Dropped(row.where, NOT_PLAIN))
            continue
        problem = ""
        if person is None:
            person, problem = 0, f"person id is not a whole number ({row.where})"
        elif person in seen:
            problem = f"person id stands twice ({row.where})"
        else:
            seen.add(person)
        people.setdefault(image, []).append(_person(row, person, problem))
    return people, apart


def _person(row: Row, person: int, problem: str) -> Person:
    box: Box | None = None
    if not problem:
        try:
            box = _box(row["bounding_box"])
        except MaskError as reason:
            problem = f"{reason} ({row.where})"
    gender, why = _gender(row)
    return Person(person, gender, why, box, problem, columns=_columns(row))


def _gender(row: Row) -> tuple[Gender | None, str]:
    woman, man = flag(row["gender_presentation_fem"]), flag(row["gender_presentation_masc"])
    if woman and man:
        return None, "feminine and masculine"
    if woman or man:
        return ("woman" if woman else "man"), ""
    return None, "non-binary" if flag(row.get("gender_presentation_non_binary", "")) else "presentation not known"


def _box(cell: str) -> Box:
    try:
        value = parse(cell)
    except ValueError:
        raise MaskError("bounding_box is not JSON") from None
    if not isinstance(value, dict):
        raise MaskError("bounding_box is not JSON with x, y, width and height")
    return four([value.get(side) for side in ("x", "y", "width", "height")])


def _columns(row: Row) -> dict[str, Any]:
    """Occupations, age and skin tone of a person; FACET writes `None` where there is no second occupation."""
    tones = [int(number(row.get(f"skin_tone_{tone}", "")) or 0) for tone in range(1, 11)]
    second = row.get("class2", "")
    return {
        "occupation": row.get("class1", ""),
        "second_occupation": "" if second == "None" else second,
        "age": next((age for age in _AGES if flag(row.get(f"age_presentation_{age}", ""))), "unknown"),
        "skin_tone_votes": tones,
    }


def _masks(path: Path, persons: Container[int], repairs: Counter[str]) -> Mapping[int, Any]:
    """The segmentation of whole persons, by person id; those of clothing and hair are left."""
    categories: dict[int | None, str] = {}
    found: dict[int, list[tuple[int | None, Any]]] = {}

    def take_category(entry: Any) -> None:
        if isinstance(entry, dict):
            categories[whole(entry.get("id"))] = shown(entry.get("name"))

    def take_annotation(entry: Any) -> None:
        given = entry if isinstance(entry, dict) else {}
        person = next((whole(given[name]) for name in _PERSON_IDS if name in given), None)
        if person is None:
            repairs["mask without a person id left out"] += 1
        elif person in persons:
            found.setdefault(person, []).append((whole(given.get("category_id")), given.get("segmentation")))

    read_arrays(path, {"annotations": take_annotation, "categories": take_category})
    if "person" not in categories.values():
        raise UserError(f"{path}: no category is named 'person'; is it FACET's file of masks?")
    masks = {}
    for person, entries in found.items():
        whole_person = [value for category, value in entries if categories.get(category) == "person"]
        if len(whole_person) == 1:
            masks[person] = whole_person[0]
        elif whole_person:
            repairs["person kept with the box alone: several masks"] += 1
    return masks

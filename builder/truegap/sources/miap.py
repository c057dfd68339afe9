"""MIAP: photographs of Open Images in which every person has a box (Schumann et al. 2021).

The folder holds `open_images_extended_miap_boxes_<split>.csv`, and the photographs as `<ImageID>.jpg` in `<split>/`,
`images/<split>/` or `images/`. Beside them, where at hand: Open Images' boxes
(`<split>-annotations-bbox.csv`), masks (`<split>-annotations-object-segmentation.csv` with the PNG files in a folder or
in zips), names of classes, and the table of images, which has licence and author of every photograph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from truegap.errors import UserError
from truegap.files.tables import Row, maybe_file, rows, words
from truegap.files.values import flag, gender, is_plain, shown
from truegap.regions.masks import MaskError
from truegap.schema import Dropped, Gender, Selection
from truegap.sources._mask_pictures import MaskPictures, mask_pictures
from truegap.sources._open_images import (
    CORNERS,
    Drawn,
    Scenes,
    Terms,
    Thing,
    box_of,
    read_drawn,
    read_names,
    read_terms,
    read_things,
)
from truegap.sources._people import PeopleArchive, Person, Rule, select, wanted
from truegap.sources._photos import by_stem, files
from truegap.sources._source import Names, Options, Source, listed

SPLITS = {"train": ("train",), "val": ("validation", "val"), "test": ("test",)}
"""MIAP's name of a split, and those that Open Images and its users give to folders and files."""

Split = Literal["auto", "train", "val", "test"]

_SOME = ("", "boxable-", "with-labels-")
"""Open Images has tables of all images, of those with boxes, and of those with labels."""
_NO_ID = "image id is not that of a file in the folder of images"
_DEPICTION = ("IsDepictionOf", "IsDepiction")

# (ours) What people wear or are, by Open Images' names; names that begin with `Human ` are parts of the body.
NO_OBJECTS = (
    "Person, Man, Woman, Boy, Girl, Clothing, Footwear, Fashion accessory, Boot, High heels, Sandal, Roller "
    "skates, Shirt, Coat, Suit, Jacket, Trousers, Jeans, Shorts, Skirt, Miniskirt, Dress, Swimwear, Brassiere, "
    "Sock, Scarf, Tie, Belt, Glove, Baseball glove, Hat, Cowboy hat, Fedora, Sombrero, Sun hat, Tiara, Crown, "
    "Swim cap, Helmet, Bicycle helmet, Football helmet, Glasses, Sunglasses, Goggles, Earrings, Necklace, Watch, "
    "Sports uniform"
)


class MiapOptions(Options):
    """How MIAP becomes a benchmark."""

    split: Annotated[tuple[Split, ...], BeforeValidator(listed)] = ("auto",)
    """`auto` (all that are there), or some of train, val, test; the paper does not say which it uses."""
    single_person: Rule = "annotated"
    """How an image gets one label: `annotated` (exactly one box, not of a group or a depiction), `uniform_presentation`
    (all who are labelled share one label), `largest_box`."""
    objects: bool = True
    """Whether boxes and masks of Open Images are read where they are at hand."""
    no_objects: Names = listed(NO_OBJECTS)
    """Classes that belong to a person and are never objects."""


def read(folder: Path, options: MiapOptions) -> Selection:
    """The selection; `Source.read` checks options and folder first."""
    tables = _tables(folder, options.split)
    repairs: Counter[str] = Counter()
    people: dict[str, list[Person]] = {}
    apart: list[Dropped] = []
    for split, table in tables.items():
        _read_people(table, people, apart, repairs)
        if listing := _maybe(folder, [f"open_images_extended_miap_images_{split}.lst"], "list of images"):
            for line, (name, *_) in words(listing):
                image = name.rpartition("/")[2]
                if is_plain(image):
                    people.setdefault(image, [])
                else:
                    apart.append(Dropped(f"{listing.name} line {line}", _NO_ID))
    if not any(people.values()):
        raise UserError(f"miap: {folder} lists nobody; are these the tables of boxes?")
    photos = _photos(folder, tables)
    images = wanted(options.single_person, people, photos)
    scenes = _scenes(folder, tables, images, options, repairs)
    terms = _terms(folder, tables, images)
    repairs["image is stored turned, and kept so"] += sum(
        image in terms and bool(terms[image].rotation) for image in images
    )
    return select(
        PeopleArchive(
            name="miap",
            folder=folder,
            people=people,
            files=photos,
            rule=options.single_person,
            fractions=True,
            apart=apart,
            repairs=repairs,
            options=_resolved(options, tables, scenes),
            terms=lambda image: (terms[image].license, terms[image].attribution) if image in terms else ("unknown", ""),
            objects=scenes.objects,
            masks=scenes.person,
        )
    )


SOURCE = Source("miap", MiapOptions, read)


def _tables(folder: Path, asked: tuple[str, ...]) -> dict[str, Path]:
    found = {}
    for split in SPLITS:
        if split in asked or "auto" in asked:
            path = _maybe(folder, [f"open_images_extended_miap_boxes_{split}.csv"], f"boxes of {split}")
            if path is not None:
                found[split] = path
            elif split in asked:
                raise UserError(f"miap: {folder} holds no open_images_extended_miap_boxes_{split}.csv")
    if not found:
        raise UserError(f"miap: {folder} holds no open_images_extended_miap_boxes_<split>.csv (train, val, test)")
    return found


def _maybe(folder: Path, names: Iterable[str], what: str) -> Path | None:
    patterns = [f"{place}{name}" for name in names for place in ("", "*/")]
    return maybe_file("miap", folder, patterns, what)


def _read_people(table: Path, people: dict[str, list[Person]], apart: list[Dropped], repairs: Counter[str]) -> None:
    seen: set[tuple[str, ...]] = set()
    for row in rows(table, ["ImageID", "IsGroupOf", "GenderPresentation", *CORNERS]):
        image = row["ImageID"]
        corners = (image, *(row[corner] for corner in CORNERS))
        if not is_plain(image):
            apart.append(Dropped(row.where, _NO_ID))
        elif corners in seen:
            repairs["box that stands twice counted once"] += 1
        else:
            seen.add(corners)
            everybody = people.setdefault(image, [])
            everybody.append(_person(row, len(everybody) + 1))


def _person(row: Row, number: int) -> Person:
    label, why = _label(row)
    columns = {"age": shown(row.get("AgePresentation", "")).lower()}
    try:
        return Person(number, label, why, box_of(row), columns=columns)
    except MaskError as problem:
        return Person(number, label, why, None, f"{problem} ({row.where})", columns=columns)


def _label(row: Row) -> tuple[Gender | None, str]:
    if flag(row["IsGroupOf"]):
        return None, "box of a group"
    if any(flag(row.get(name, "")) for name in _DEPICTION):
        return None, "depiction"
    label = gender(row["GenderPresentation"])
    return label, "" if label else f"presentation {shown(row['GenderPresentation'])}"


def _photos(folder: Path, splits: Iterable[str]) -> dict[str, Path]:
    names = [name for split in splits for name in SPLITS[split]]
    places = [place for name in names for place in (folder / name, folder / "images" / name)]
    return by_stem(files([*places, folder / "images"]))


def _scenes(
    folder: Path, splits: Iterable[str], images: set[str], options: MiapOptions, repairs: Counter[str]
) -> Scenes:
    things: dict[str, list[Thing]] = {}
    drawn: dict[str, list[Drawn]] = {}
    names: dict[str, str] = {}
    pictures = MaskPictures({})
    if options.objects:
        for split in splits:
            boxes = [f"{prefix}{name}-annotations-bbox.csv" for prefix in ("", "oidv6-") for name in SPLITS[split]]
            if path := _maybe(folder, boxes, f"objects of {split}"):
                things |= read_things(path, images, repairs)
            masks = [f"{name}-annotations-object-segmentation.csv" for name in SPLITS[split]]
            if path := _maybe(folder, masks, f"masks of {split}"):
                drawn |= read_drawn(path, images, repairs)
        classes = ("class-descriptions-boxable.csv", "oidv7-class-descriptions-boxable.csv")
        if path := _maybe(folder, classes, "names of classes"):
            names = read_names(path)
        if drawn:
            folders = [path for path in (folder / "masks", *sorted(folder.glob("*masks*"))) if path.is_dir()]
            folders += [path for top in folders for path in sorted(top.iterdir()) if path.is_dir()]
            zips = sorted({*folder.glob("*-masks-*.zip"), *folder.glob("masks/*.zip")})
            pictures = mask_pictures(folders, zips)
    if things and not names:
        raise UserError(f"miap: {folder} has boxes of objects and no class-descriptions-boxable.csv, which names them")
    return Scenes(things, drawn, pictures, names, frozenset(options.no_objects), repairs)


def _terms(folder: Path, splits: Iterable[str], images: set[str]) -> dict[str, Terms]:
    whole = ("image_ids_and_rotation.csv", "image_ids_with_rotation.csv")
    if path := _maybe(folder, whole, "table of images"):
        return read_terms(path, images)
    terms: dict[str, Terms] = {}
    for split in splits:
        parts = [f"{name}-images-{some}with-rotation.csv" for name in SPLITS[split] for some in _SOME]
        if path := _maybe(folder, parts, f"table of images of {split}"):
            terms |= read_terms(path, images)
    return terms


def _resolved(options: MiapOptions, splits: Iterable[str], scenes: Scenes) -> dict[str, Any]:
    used = {"split": list(splits), "objects": bool(scenes.things), "no_objects": list(options.no_objects)}
    return options.model_dump() | used

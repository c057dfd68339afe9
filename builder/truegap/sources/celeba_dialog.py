"""CelebA-Dialog: portraits with captions and five attributes in six levels (Jiang et al. 2021).

The folder is the archive's as it unpacks: `image/`, `text/captions_hq.json`, `classification_label/`, `identity/`,
`mask/`; the files are found by name in it or one folder below. Labels, stereotype rule and split are those of a course
report on which modality of CLIP carries the bias.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from truegap.errors import UserError
from truegap.files.json_arrays import read_members
from truegap.files.tables import maybe_file, one_file, words
from truegap.files.values import NOT_PLAIN, is_plain, shown, storable
from truegap.regions.boxes import around
from truegap.regions.masks import MaskError
from truegap.schema import Dropped, Example, Gender, ImageFile, Region, Selection, Size, Split
from truegap.sources._funnel import Funnel
from truegap.sources._mask_pictures import MaskPictures, mask_pictures
from truegap.sources._photos import files
from truegap.sources._source import Options, Source

ATTRIBUTES = ("Bangs", "Eyeglasses", "No_Beard", "Smiling", "Young")
"""In the order of the table of levels. Level 0 of No_Beard is no beard, level 0 of Young a child."""

WOMAN_WORDS = frozenset({"she", "her", "woman", "girl", "lady", "female"})
MAN_WORDS = frozenset({"he", "his", "him", "man", "boy", "gentleman", "male"})

_WORD = re.compile(r"[a-z]+")
_SHARES: tuple[tuple[float, Split], ...] = ((0.8, "train"), (0.9, "validation"), (1.0, "test"))
_NAME = "celeba-dialog"
_NO_LEVELS = "no levels of the five attributes, or two rows of them"


class CelebADialogOptions(Options):
    """How CelebA-Dialog becomes a benchmark."""

    labels: Literal["captions", "attributes"] = "captions"
    """Words of the overall caption (women's words are looked for first), or the attribute `Male`."""
    split_by: Literal["auto", "identity", "image"] = "auto"
    """What is kept together when 80 % go to training, 10 % to validation and 10 % to test: `auto` is the identity where
    its file is at hand. By image, the same person is in several splits."""
    seed: int = 0
    """Of the split."""
    stereotypical: Literal["any", "true", "false"] = "any"
    """Which images are kept, by the rule for stereotypical portraits."""
    masks: bool | Literal["auto"] = "auto"
    """Whether person masks are read from the palette pictures of CelebAMask-HQ (everything but label 0); `auto` where
    there are some."""


@dataclass(frozen=True, slots=True)
class Archive:
    """What the files say, by image name; None where they say nothing usable, or two things.

    Attributes:
        captions: The overall captions.
        levels: Of the five attributes.
        male: The attribute of that name, where labels are made from it.
        identities: Who is shown, where that is known and splits are made by it.
        apart: Entries that cannot be used at all.
    """

    captions: Mapping[str, str]
    levels: Mapping[str, tuple[int, ...] | None]
    male: Mapping[str, bool | None]
    identities: Mapping[str, str | None]
    apart: Sequence[Dropped]


def read(folder: Path, options: CelebADialogOptions) -> Selection:
    """The selection; `Source.read` checks options and folder first."""
    archive = _read_archive(folder, options)
    photos = files(folder / name for name in ("image", "images", "img_align_celeba", "CelebA-HQ-img"))
    names = {*archive.captions, *archive.levels, *photos}
    # Whatever a disk or a table calls an image, a reason can be printed and stored.
    nameless = [Dropped(ascii(name)[1:-1], NOT_PLAIN) for name in sorted(names) if not name.isprintable()]
    labels = {name: _label(name, archive, options) for name in names if name.isprintable()}
    masks = _palettes(folder, required=options.masks is True) if options.masks else None
    repairs: Counter[str] = Counter()
    funnel = Funnel({name: gender for name, (gender, _) in labels.items()}, [*archive.apart, *nameless])
    funnel.keep("label", lambda name: labels[name][1])
    funnel.keep("levels", lambda name: None if archive.levels.get(name) else _NO_LEVELS)
    if options.stereotypical != "any":
        funnel.keep("stereotypical", lambda name: _unlike(archive, name, labels[name][0], options.stereotypical))
    by_identity = bool(archive.identities)
    if by_identity:
        funnel.keep("identity", lambda name: None if archive.identities.get(name) else "no identity, or two")
    sizes = funnel.keep_photos(photos)

    def example(name: str, gender: Gender) -> Example:
        levels = archive.levels[name]
        assert levels is not None, "the step `levels` keeps images with levels only"
        person = archive.identities.get(name)
        return Example(
            image_id=name,
            gender=gender,
            image=ImageFile(photos[name]),
            size=sizes[name],
            persons=_persons(masks, name, sizes[name], repairs),
            source=photos[name].relative_to(folder).as_posix(),
            license="CelebA research agreement",
            split=split_of(person if by_identity and person else name, options.seed),
            extra={
                "caption": archive.captions[name],
                "identity": person,
                "stereotypical": is_stereotypical(gender, levels),
                **{attribute.lower(): level for attribute, level in zip(ATTRIBUTES, levels, strict=True)},
            },
        )

    resolved = options.model_dump() | {"split_by": "identity" if by_identity else "image"}
    return funnel.selection(_NAME, folder, example, resolved, repairs)


SOURCE = Source(_NAME, CelebADialogOptions, read)


def gender_of(caption: str) -> Gender | None:
    """The label that a caption's words give; women's words are looked for first."""
    found = set(_WORD.findall(caption.lower()))
    if found & WOMAN_WORDS:
        return "woman"
    return "man" if found & MAN_WORDS else None


def is_stereotypical(gender: Gender, levels: tuple[int, ...]) -> bool:
    """Whether a portrait fits the stereotype of its label in all five attributes.

    Args:
        gender: The label.
        levels: Of `ATTRIBUTES`, 0 to 5 each.
    """
    bangs, eyeglasses, beard, smiling, age = levels
    if gender == "woman":
        return bangs >= 2 and eyeglasses <= 1 and beard == 0 and smiling >= 3 and age <= 2  # noqa: PLR2004
    return bangs < 2 and eyeglasses > 1 and beard != 0 and smiling < 3 and age > 2  # noqa: PLR2004


def split_of(group: str, seed: int) -> Split:
    """The split of a group of images: 80 % training, 10 % validation, 10 % test; no other group plays a part in it."""
    digest = hashlib.sha256(f"{seed}:{group}".encode()).digest()
    share = int.from_bytes(digest[:8], "big") / 2**64
    return next(split for limit, split in _SHARES if share < limit)


def _label(name: str, archive: Archive, options: CelebADialogOptions) -> tuple[Gender | None, str]:
    if not is_plain(name):
        return None, NOT_PLAIN
    if name not in archive.captions:
        return None, "no caption"
    if options.labels == "attributes":
        male = archive.male.get(name)
        if male is None:
            return None, "not in the table of attributes, or twice"
        return ("man" if male else "woman"), ""
    gender = gender_of(archive.captions[name])
    return gender, "" if gender else "caption names neither a woman nor a man"


def _unlike(archive: Archive, name: str, gender: Gender | None, wanted: str) -> str | None:
    levels = archive.levels.get(name)
    assert gender is not None, "the step `label` keeps labelled images only"
    assert levels is not None, "the step `levels` keeps images with levels only"
    found = is_stereotypical(gender, levels)
    return None if found == (wanted == "true") else f"stereotypical is {str(found).lower()}"


def _read_archive(folder: Path, options: CelebADialogOptions) -> Archive:
    captions: dict[str, str] = {}
    apart: list[Dropped] = []

    def take(name: str, entry: Any) -> None:
        caption = entry.get("overall_caption") if isinstance(entry, dict) else None
        if not isinstance(caption, str) or not caption.strip():
            return
        if name in captions:
            apart.append(Dropped(ascii(name)[1:-1], f"image stands twice in {table.name}: the later caption left out"))
        else:
            captions[name] = storable(caption.strip())

    table = _find(folder, "captions", "captions_hq.json", "captions.json")
    read_members(table, take)
    if not captions:
        raise UserError(f"{_NAME}: {folder} holds no overall caption; is its captions file that of CelebA-Dialog?")
    levels = _levels(_find(folder, "levels", "combined_annotation_hq.txt", "combined_annotation.txt"))
    male: dict[str, bool | None] = {}
    if options.labels == "attributes":
        male = _male(_find(folder, "attributes", "CelebAMask-HQ-attribute-anno.txt", "list_attr_celeba.txt"))
    identities: dict[str, str | None] = {}
    path = _maybe(folder, "identities", "identity_CelebA-HQ.txt", "identity_CelebA.txt")
    if path is not None and options.split_by != "image":
        identities = _identities(path)
    elif options.split_by == "identity":
        raise UserError(f"{_NAME}: {folder} holds no identity_CelebA-HQ.txt, which split_by='identity' needs")
    return Archive(captions, levels, male, identities, apart)


def _find(folder: Path, what: str, *names: str) -> Path:
    return one_file(_NAME, folder, [f"{place}{name}" for name in names for place in ("", "*/")], what)


def _maybe(folder: Path, what: str, *names: str) -> Path | None:
    return maybe_file(_NAME, folder, [f"{place}{name}" for name in names for place in ("", "*/")], what)


def _levels(path: Path) -> dict[str, tuple[int, ...] | None]:
    """Levels of the five attributes by image; None where they cannot be used. The first line is a header."""
    found: dict[str, tuple[int, ...] | None] = {}
    for line, (name, *cells) in words(path):
        if line == 1:
            if [name, *cells][-len(ATTRIBUTES) :] != list(ATTRIBUTES):
                raise UserError(f"{path}: the first line does not name {', '.join(ATTRIBUTES)} in this order")
            continue
        known = len(cells) == len(ATTRIBUTES) and all(cell in "012345" and len(cell) == 1 for cell in cells)
        found[name] = tuple(map(int, cells)) if known and name not in found else None
    return found


def _identities(path: Path) -> dict[str, str | None]:
    """Who is shown, by image: lines of a name and a number; None for an image with two of them."""
    found: dict[str, str | None] = {}
    for _, parts in words(path):
        if len(parts) == 2:  # noqa: PLR2004
            person = shown(parts[1])
            found[parts[0]] = person if found.get(parts[0], person) == person else None
    return found


def _male(path: Path) -> dict[str, bool | None]:
    """Column `Male` of CelebA's table: a count, the names of the columns, then a name and -1 or 1 per column."""
    column: int | None = None
    found: dict[str, bool | None] = {}
    for line, parts in words(path):
        if line == 1:
            continue
        if column is None:
            if "Male" not in parts:
                raise UserError(f"{path}: the second line names no column Male")
            column = parts.index("Male") + 1
        elif len(parts) > column and parts[column] in {"-1", "1"}:
            male = parts[column] == "1"
            found[parts[0]] = male if found.get(parts[0], male) == male else None
    return found


def _palettes(folder: Path, *, required: bool) -> MaskPictures | None:
    zips = sorted({*folder.glob("mask/*.zip"), *folder.glob("*mask*palette*.zip")})
    folders = [path for path in (folder / "mask", *sorted(folder.glob("mask/*"))) if path.is_dir()]
    found = mask_pictures(folders, zips)
    if not found.places and required:
        raise UserError(f"{_NAME}: {folder}/mask holds no palette pictures; fetch them, or choose masks=false")
    return found if found.places else None


def _persons(masks: MaskPictures | None, name: str, size: Size, repairs: Counter[str]) -> tuple[Region, ...]:
    if masks is None:
        return ()
    try:
        counts = masks.read(f"{name.rpartition('.')[0]}.png", size)
    except MaskError as problem:
        repairs[f"portrait without a person region: {problem}"] += 1
        return ()
    return (Region(1, "person", around(counts, size), counts),)

"""COCO's folder as it unpacks: which splits are there, and all of them read as one."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from pathlib import Path

from truegap.errors import UserError
from truegap.schema import Dropped
from truegap.sources._coco import Instances, read_instances

SPLITS = ("val2014", "train2014", "val2017", "train2017")


def find_splits(folder: Path, asked: tuple[str, ...]) -> dict[str, Path]:
    """The folder of photographs of every split that is asked for and there, in the order of `SPLITS`.

    Args:
        folder: Holds `annotations/`, and the photographs in `<split>/` or `images/<split>/`.
        asked: Names of splits, or `auto` for all that are complete.

    Raises:
        UserError: A split that is asked for is not complete, or none is there.
    """
    found = {}
    for split in SPLITS:
        if split not in asked and "auto" not in asked:
            continue
        photos = next((place for place in (folder / split, folder / "images" / split) if place.is_dir()), None)
        instances = folder / "annotations" / f"instances_{split}.json"
        if photos is not None and instances.is_file():
            found[split] = photos
        elif split in asked:
            lacking = instances if photos is not None else folder / split
            raise UserError(f"coco-gender: split {split} is not complete: {lacking} is absent")
    if not found:
        raise UserError(
            f"coco-gender: {folder} holds no split of COCO; expected one of {', '.join(SPLITS)} as a folder of "
            f"photographs, and annotations/instances_<split>.json"
        )
    return found


def read_archive(folder: Path, splits: Iterable[str], wanted: Container[int]) -> Instances:
    """Read the instances files of several splits as one.

    Args:
        folder: Holds `annotations/`.
        splits: Names of splits; where two have an image of the same id, the earlier one is used.
        wanted: Ids of the images whose annotations are kept.

    Raises:
        UserError: A file is no instances file, or two of them disagree about the categories.
    """
    notes = folder / "annotations"
    return _joined({split: read_instances(notes / f"instances_{split}.json", split, wanted) for split in splits})


def _joined(parts: Mapping[str, Instances]) -> Instances:
    """All splits as one; an image that an earlier split has is left out of the later ones, with its annotations."""
    result = Instances()
    owner: dict[int, str] = {}
    for split, part in parts.items():
        for image in sorted(part.photos.keys() | part.unusable.keys()):
            if image in owner:
                result.nameless.append(Dropped(str(image), f"in {split} and in {owner[image]}: the latter is used"))
                part.photos.pop(image, None)
                part.unusable.pop(image, None)
                part.annotations.pop(image, None)
            else:
                owner[image] = split
        result.nameless.extend(part.nameless)
        result.photos.update(part.photos)
        result.unusable.update(part.unusable)
        result.annotated |= part.annotated
        for image, entries in part.annotations.items():
            result.annotations.setdefault(image, []).extend(entries)
        result.repairs.update(part.repairs)
        _agree(result.categories, part.categories)
    return result


def _agree(known: dict[int, str], more: Mapping[int, str]) -> None:
    for number, name in more.items():
        if known.setdefault(number, name) != name:
            raise UserError(f"coco-gender: category {number} is {known[number]!r} in one split and {name!r} in another")

"""Base images from prompts, and their counterfactuals by editing; whatever is there already is not made again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from PIL import Image

from truegap.build.images import UnusableImageError, decode
from truegap.counterfactual.marks import read_mark, sha256, write_image
from truegap.counterfactual.names import OTHER, WORDS, GenderedNames, called
from truegap.counterfactual.pictures import MADE_FROM_BASE, Kind, Picture
from truegap.errors import UserError

PROMPTS = ("a photo of one {gender} {occupation} at work",)
EDITS = ("turn the {gender} into a {other}",)
NEGATIVE = "several people, crowd, drawing, cartoon, text, watermark, deformed, nudity"


class Maker(Protocol):
    """What makes or edits images: a `Pipeline`, or anything that is called like one."""

    def record(self) -> dict[str, Any]:
        """What an image depends on, besides prompt and seed."""
        ...

    def __call__(self, prompt: str, seed: int, image: Image.Image | None = None) -> tuple[Image.Image, bool | None]:
        """The image, and whether it is unsafe (None: nobody looked)."""
        ...


@dataclass(frozen=True, slots=True)
class Prompts:
    """What is asked of the models, in turn over the images of an occupation and gender.

    Attributes:
        base: With `{gender}` (female, male) and `{occupation}`.
        edit: With `{gender}` (of the base image) and `{other}`; `{occupation}` may stand there too.
        seed: Part of every image's seed.
    """

    base: Sequence[str] = PROMPTS
    edit: Sequence[str] = EDITS
    seed: int = 0

    def __post_init__(self) -> None:
        """Checks the placeholders.

        Raises:
            UserError: A prompt lacks one.
        """
        for templates, needed in ((self.base, ("{gender}", "{occupation}")), (self.edit, ("{other}",))):
            if not templates:
                raise UserError("there is no prompt; give at least one per line")
            for template in templates:
                if missing := [name for name in needed if name not in template]:
                    raise UserError(f"prompt {template!r} lacks {' and '.join(missing)}")

    def record(self) -> dict[str, Any]:
        """What the record of a folder keeps."""
        return asdict(self)

    def of_base(self, picture: Picture, names: GenderedNames) -> str:
        """The prompt of a base image."""
        occupation = called(picture.occupation, picture.gender, names)
        template = self.base[picture.number % len(self.base)]
        return template.replace("{gender}", WORDS[picture.gender]).replace("{occupation}", occupation)

    def of_edit(self, picture: Picture, names: GenderedNames) -> str:
        """The instruction that makes the counterfactual."""
        other = OTHER[picture.gender]
        template = self.edit[picture.number % len(self.edit)]
        words = {"gender": WORDS[picture.gender], "other": WORDS[other]}
        words["occupation"] = called(picture.occupation, other, names)
        for name, word in words.items():
            template = template.replace(f"{{{name}}}", word)
        return template

    def seed_of(self, picture: Picture, step: str) -> int:
        """The seed of one image: of its own, whatever else is made.

        >>> Prompts().seed_of(Picture("Pilot", "woman", 0), "base") < 2**63
        True
        """
        digest = hashlib.sha256(f"{self.seed}/{step}/{picture.name}".encode()).digest()
        return int.from_bytes(digest[:8], "big") >> 1


def plan_pictures(occupations: Iterable[str], images: int) -> list[Picture]:
    """So many images of women and of men for every occupation."""
    return [
        Picture(occupation, gender, number)
        for occupation in occupations
        for gender in WORDS
        for number in range(images)
    ]


def read_prompts(path: Path) -> tuple[str, ...]:
    """Prompts from a text file, one per line; blank lines and those that begin with # are left aside.

    Raises:
        UserError: It cannot be read.
    """
    from truegap.files.text import opened

    with opened(path, "a list of prompts") as file:
        lines = [line.strip() for line in file]
    return tuple(line for line in lines if line and not line.startswith("#"))


def generate(
    folder: Path,
    pictures: Sequence[Picture],
    prompts: Prompts,
    maker: Maker,
    names: GenderedNames,
    advance: Callable[[int], None] = lambda _images: None,
) -> int:
    """Makes the base images that are not there with this prompt, seed and model.

    An image that was not made here stays. What was made from an image that is replaced is removed.

    Args:
        folder: Of the benchmark.
        pictures: What to make.
        prompts: What to ask for.
        maker: Makes an image from text.
        names: What occupations are called with a woman and a man.
        advance: Called with 1 after each image, made or found.

    Returns:
        How many were made.
    """

    def recipe(picture: Picture) -> dict[str, Any]:
        return {"prompt": prompts.of_base(picture, names), "seed": prompts.seed_of(picture, "base")}

    return _make(folder, "base", pictures, recipe, maker, advance)


def edit(
    folder: Path,
    pictures: Sequence[Picture],
    prompts: Prompts,
    maker: Maker,
    names: GenderedNames,
    advance: Callable[[int], None] = lambda _images: None,
) -> int:
    """Makes the counterfactuals that are not there with this base image, instruction, seed and model.

    Args and Returns: as `generate`; the maker edits an image.

    Raises:
        UserError: A base image cannot be read.
    """

    def recipe(picture: Picture) -> dict[str, Any]:
        return {
            "prompt": prompts.of_edit(picture, names),
            "seed": prompts.seed_of(picture, "counterfactual"),
            "base": sha256(folder / picture.path("base")),
        }

    return _make(folder, "counterfactual", pictures, recipe, maker, advance)


def _make(
    folder: Path,
    kind: Kind,
    pictures: Sequence[Picture],
    recipe: Callable[[Picture], dict[str, Any]],
    maker: Maker,
    advance: Callable[[int], None],
) -> int:
    record = maker.record()
    made = 0
    for picture in pictures:
        path = folder / picture.path(kind)
        wanted = {**recipe(picture), "maker": record}
        if not _stays(path, wanted):
            base = None if kind == "base" else _read(folder / picture.path("base"))
            image, unsafe = maker(wanted["prompt"], wanted["seed"], base)
            if base is None:
                for other in MADE_FROM_BASE:
                    (folder / picture.path(other)).unlink(missing_ok=True)
            write_image(path, image, {**wanted, "unsafe": unsafe})
            made += 1
        advance(1)
    return made


def _stays(path: Path, wanted: Mapping[str, Any]) -> bool:
    """Whether an image says that it was made in the same way, or was not made here at all."""
    if not path.is_file():
        return False
    mark = read_mark(path)
    return not mark or {name: value for name, value in mark.items() if name != "unsafe"} == wanted


def _read(path: Path) -> Image.Image:
    try:
        return Image.fromarray(decode(path.read_bytes()))
    except (OSError, UnusableImageError) as error:
        raise UserError(f"{path}: cannot be edited: {error}; delete it, and it is made again") from None

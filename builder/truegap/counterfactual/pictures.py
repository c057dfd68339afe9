"""Where images are: a base image of a woman or a man at work, its counterfactual, and the bleached base."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from truegap.counterfactual.names import OTHER, WORDS
from truegap.counterfactual.occupations import check_folders, slug
from truegap.schema import Gender

Kind = Literal["base", "counterfactual", "bleached"]
MADE_FROM_BASE: tuple[Kind, ...] = ("counterfactual", "bleached")


@dataclass(frozen=True, slots=True)
class Picture:
    """One base image and what is made of it.

    >>> Picture("Flight attendant", "woman", 3).path("base")
    'base/Flight_attendant/female/female_Flight_attendant_3.png'

    Attributes:
        occupation: What the person does.
        gender: Shown in the base image; the counterfactual shows the other one.
        number: Counts the images of this occupation and gender, from 0.
    """

    occupation: str
    gender: Gender
    number: int

    @property
    def name(self) -> str:
        """File name without extension, the same for all three images."""
        return f"{WORDS[self.gender]}_{slug(self.occupation)}_{self.number}"

    def path(self, kind: Kind) -> str:
        """Of one of the three images, from the folder of the benchmark."""
        return f"{kind}/{slug(self.occupation)}/{WORDS[self.gender]}/{self.name}.png"

    def shown(self, kind: Kind) -> Gender:
        """Who one of the three images shows."""
        return OTHER[self.gender] if kind == "counterfactual" else self.gender


def find_pictures(folder: Path, occupations: Iterable[str], kind: Kind = "base") -> list[Picture]:
    """The images of one kind that are there, in the order of occupations, women first, by number.

    Args:
        folder: Of the benchmark.
        occupations: Names; images of others are not looked at.
        kind: Which of the three images must be there.

    Raises:
        UserError: Two occupations would share a folder.
    """
    names = list(dict.fromkeys(occupations))
    check_folders(names)
    return [
        Picture(occupation, gender, number)
        for occupation in names
        for gender in WORDS
        for number in _numbers(folder, Picture(occupation, gender, 0), kind)
    ]


def _numbers(folder: Path, first: Picture, kind: Kind) -> list[int]:
    place = (folder / first.path(kind)).parent
    pattern = re.compile(re.escape(first.name[:-1]) + r"(0|[1-9]\d{0,8})\.png")
    names = (path.name for path in place.iterdir() if path.is_file()) if place.is_dir() else ()
    return sorted(int(match[1]) for name in names if (match := pattern.fullmatch(name)))

"""VisoGender's sentences: an occupation, a pronoun, and an object or a second person (Hall et al. 2023)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from truegap.hub.benchmark import Benchmark
from truegap.protocols.base import ORIGINAL, Images

PRONOUNS = ("his", "her", "their")
NEUTRAL = "their"
COLUMNS = ("kind", "occupation", "object", "participant", "participant_gender", "sector", "specialisation")
TEMPLATES = {
    "occupation": "The {occupation} and {pronoun} {object or participant}",
    "participant": "The {participant} and {pronoun} {occupation}",
}
"""By whom the pronoun refers to."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence about an image.

    Attributes:
        number: Of the image in the run.
        template: Whom the pronoun refers to: `occupation` or `participant`.
        subject: The first of the two words.
        rest: The second.
        gender: Of the person whom the pronoun refers to.
        other: Of the other person; None where there is nobody else.
        occupation: Of the image.
        sector: The occupation's.
        specialisation: The occupation's.
    """

    number: int
    template: str
    subject: str
    rest: str
    gender: str
    other: str | None
    occupation: str
    sector: str
    specialisation: str

    @property
    def start(self) -> str:
        """What a captioner goes on with."""
        return f"The {self.subject} and "

    def whole(self, pronoun: str) -> str:
        """What a dual encoder reads.

        >>> Sentence(0, "occupation", "doctor", "patient", "man", "woman", "doctor", "", "").whole("his")
        'The doctor and his patient'
        """
        return f"The {self.subject} and {pronoun} {self.rest}"


def sentences(benchmark: Benchmark, images: Images) -> list[Sentence]:
    """Every sentence of every image, in the order of the images; two people have both templates."""
    columns = {name: benchmark.column(ORIGINAL, name) for name in COLUMNS}
    found: list[Sentence] = []
    for number, (place, gender) in enumerate(zip(images.places, images.genders, strict=True)):
        found += _of_image(number, gender, {name: column[place] for name, column in columns.items()})
    return found


def _of_image(number: int, gender: str, row: Mapping[str, Any]) -> Iterator[Sentence]:
    # One row of the authors' tables writes its object with an underscore.
    words = {name: (row[name] or "").replace("_", " ") for name in ("occupation", "object", "participant")}
    groups = (row["occupation"], row["sector"] or "", row["specialisation"] or "")
    occupation, participant, other = words["occupation"], words["participant"], row["participant_gender"]
    yield Sentence(number, "occupation", occupation, participant or words["object"], gender, other, *groups)
    if participant:
        yield Sentence(number, "participant", participant, occupation, other, gender, *groups)

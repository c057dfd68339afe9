"""What a human check is of, and what came out, as they are kept on disk and printed."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from truegap.results.records import Record
from truegap.schema import Gender

FORMAT_VERSION: Final = 1


class Study(Record):
    """Which pictures people are asked about: `study.json` in the folder of answers."""

    format_version: Literal[1] = FORMAT_VERSION
    benchmark: str
    version: str
    content: str
    """SHA-256 over the benchmark's configs."""
    seed: int
    configs: list[str]
    images: dict[str, Gender]
    """The label of every image in the sample; each is shown in every config."""

    @property
    def n_items(self) -> int:
        """Pictures that an annotator is shown."""
        return len(self.configs) * len(self.images)


class AgreementRecord(Record):
    """How many answers equal the label, over all answers or a part of them."""

    config: str | None
    """None: all configs."""
    gender: Gender | None
    """Of the label; None: both."""
    answers: int
    agree: int
    opposite: int
    """Answers that name the other gender."""
    cannot_tell: int
    """Counted as disagreement."""
    images: int
    """Different images that were answered."""
    effective_images: float | None
    """What the answers are worth in images (Kish): several answers on one image count as one."""
    agreement: float | None
    """agree / answers, 0 to 1, higher is better; null without an answer."""
    ci_low: float | None
    """Wilson's 95 % interval with `effective_images` as the number of images."""
    ci_high: float | None


class AnnotatorRecord(Record):
    """One person's answers."""

    name: str
    """As the person typed it: foreign text."""
    answers: int
    of: int
    agree: int
    cannot_tell: int
    revised: int
    """Pictures that were answered again; the last answer counts."""


class RecognitionRecord(Record):
    """The outcome of a human check."""

    format_version: Literal[1] = FORMAT_VERSION
    benchmark: str
    version: str
    content: str
    seed: int
    configs: list[str]
    women: int
    men: int
    confidence: float
    agreements: list[AgreementRecord]
    """Over everything first; then by gender, by config, and by both."""
    annotators: list[AnnotatorRecord]
    skipped: dict[str, int] = Field(default_factory=dict)
    """Lines of the answer files that do not count, by reason."""

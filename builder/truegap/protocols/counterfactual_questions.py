"""GenderBias-VL's questions as a benchmark's column holds them (Xiao et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from truegap.hub.benchmark import Benchmark
from truegap.protocols.base import ORIGINAL, Images


@dataclass(frozen=True, slots=True)
class CounterfactualQuestion:
    """A question about an image; fields as in the benchmark's column, `number` of the image in the run."""

    number: int
    id: str
    context: str
    role: str
    order: int
    text: str
    options: tuple[str, str]
    answer: int
    occupation: str
    pair: str
    base_gender: str


def questions_of(benchmark: Benchmark, images: Images, contexts: Sequence[str]) -> list[CounterfactualQuestion]:
    """Every question of these contexts, in the order of the images."""
    column = benchmark.column(ORIGINAL, "questions")
    return [
        CounterfactualQuestion(
            number=number,
            id=str(each["id"]),
            context=each["context"],
            role=each["role"],
            order=int(each["order"]),
            text=each["question"],
            options=tuple(each["options"]),
            answer=int(each["answer"]),
            occupation=each["occupation"],
            pair=each["pair"],
            base_gender=each["base_gender"],
        )
        for number, place in enumerate(images.places)
        for each in column[place]
        if each["context"] in contexts
    ]


def with_article(occupation: str) -> str:
    """An occupation as a sentence has it.

    >>> with_article("Engineer"), with_article("pilot")
    ('an engineer', 'a pilot')
    """
    name = occupation if occupation.isupper() else occupation[:1].lower() + occupation[1:]
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"

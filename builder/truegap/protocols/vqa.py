"""Visual question answering: do men or women get more "Yes", and what moves that?

Source: Hirota et al. 2025 (YGap over 81 questions of Girrbach et al.); sensitivity between original and perturbed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from truegap.errors import UserError
from truegap.hub.benchmark import Benchmark
from truegap.models.generative import Answer, GenerativeModel, Question
from truegap.perturbations.keys import Key
from truegap.protocols.base import ORIGINAL, Asking, Columns, Images, Model, Protocol, Session, View
from truegap.protocols.gaps import gaps
from truegap.protocols.questions import LETTERS, YES, QuestionSet, packaged
from truegap.protocols.softmax import softmax
from truegap.protocols.vqa_records import Answered, scores_record
from truegap.results.answers import coded, grid
from truegap.results.records import ScoresRecord
from truegap.schema import Box

_CHOICES = {
    "order": ("fixed", "permuted"),
    "yes": ("probability", "argmax"),
    "normalise": ("options", "vocabulary"),
    "view": ("full", "person"),
}


@dataclass(frozen=True, slots=True)
class Vqa(Protocol):
    """The conventions of a vqa run; all of them are written into its record.

    Attributes:
        questions: What is asked, with its options.
        order: `fixed` (Hirota et al.) or `permuted`: options in an order drawn per question with the seed (Girrbach).
        yes: `probability` of the letter of "Yes", or `argmax`: 1 where it is the most probable letter, else 0
            (equation 3).
        normalise: `options` (softmax over the letters) or `vocabulary` (the letter's entry, as Girrbach's code).
        view: `full`, or `person`: the first person's box with a margin.
        margin: Added on each side of the box, as a share of its width and height.
        threshold: There is no delta where |YGap| on the original images is below it.
        n_resamples: Bootstrap resamples of images within gender; 0 for no intervals.
        n_permutations: Relabellings of images; 0 for no p-values.
        confidence: Nominal coverage.
        seed: Of resamples, relabellings and the order of options.
    """

    name: ClassVar[str] = "vqa"

    questions: QuestionSet = field(default_factory=lambda: packaged("vqa-r1"))
    order: str = "fixed"
    yes: str = "probability"
    normalise: str = "options"
    view: str = "full"
    margin: float = 0.1
    threshold: float = 0.005
    n_resamples: int = 1000
    n_permutations: int = 1000
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        for name, values in _CHOICES.items():
            if (value := getattr(self, name)) not in values:
                raise UserError(f"{name}={value!r}: use {' or '.join(values)}")
        if min(self.n_resamples, self.n_permutations, self.margin, self.threshold) < 0:
            raise UserError("resamples, permutations, margin and threshold must be at least 0")

    def asking(self, benchmark: Benchmark, model: Model, images: Images) -> VqaAsking:
        """See `Protocol.asking`."""
        if not isinstance(model, GenerativeModel):
            record = model.record()
            raise UserError(
                f"model {record.name} is a {record.kind}, which answers no questions: use --protocol retrieval"
            )
        whole = model.probabilities_over == "vocabulary"
        if self.normalise == "vocabulary" and not whole:
            raise UserError(f"model {model.record().name} gives shares of the options alone: use --normalise options")
        boxes = _boxes(benchmark, images) if self.view == "person" else None
        return VqaAsking(self, images, boxes, whole=whole)

    def record(self) -> dict[str, Any]:
        """Every convention and its value."""
        asked = {"name": self.questions.name, "count": len(self.questions.questions), "sha256": self.questions.sha256}
        options = asdict(self) | {"questions": asked, "options": list(self.questions.options)}
        return {name: value for name, value in options.items() if name != "margin" or self.view == "person"}


def _boxes(benchmark: Benchmark, images: Images) -> list[Box]:
    """The first person's box in every image.

    Raises:
        UserError: An image has none.
    """
    found = benchmark.column(ORIGINAL, "person_boxes")
    if lacking := [images.ids[n] for n, place in enumerate(images.places) if not found[place]]:
        raise UserError(
            f"{benchmark.spec}: {len(lacking)} images have no person box, such as {lacking[0]}: "
            "use --view full, or build with boxes"
        )
    return [tuple(found[place][0]) for place in images.places]


class VqaAsking(Asking[Answered]):
    """The questions of a run."""

    columns = ("probability", "letter", "polarity")

    def __init__(self, protocol: Vqa, images: Images, boxes: Sequence[Box] | None, *, whole: bool = True) -> None:
        """Binds the questions to images.

        Args:
            protocol: The conventions.
            images: Of the run.
            boxes: Of the persons, where only these are shown.
            whole: Whether the model's probabilities are those of its whole vocabulary.
        """
        super().__init__(images, protocol.record())
        self.protocol = protocol
        self.boxes = boxes
        self.whole = whole
        chosen = protocol.questions
        letters = tuple(LETTERS[: len(chosen.options)])
        self.orders = [_order(protocol, each.id) for each in chosen.questions]
        self.texts = [chosen.prompt(each, order) for each, order in zip(chosen.questions, self.orders, strict=True)]
        self.asked = tuple(Question(text, letters) for text in self.texts)

    def prompts(self) -> dict[str, Question]:
        """Every question."""
        return {each.id: question for each, question in zip(self.protocol.questions.questions, self.asked, strict=True)}

    def answers(self, config: str, session: Session) -> tuple[Columns, Answered]:
        """See `Asking.answers`."""
        shape = (len(self.asked), len(self.images.ids), len(self.protocol.questions.options))
        log_probs, chosen = np.full(shape, np.nan, np.float32), np.full(shape[:2], -1)
        for number, answers in enumerate(session.ask(config, self)):
            for place, (answer, order) in enumerate(zip(answers, self.orders, strict=True)):
                _enter(answer, order, log_probs[place, number])
                chosen[place, number] = -1 if answer.chosen is None else order[answer.chosen]
        probability = self._probability(log_probs, chosen)
        return self._columns(log_probs, probability), self._answered(log_probs, chosen, probability)

    def questions(self, number: int) -> Sequence[Question]:  # noqa: ARG002  all are asked alike about every image
        """See `Asking.questions`."""
        return self.asked

    def view(self, number: int) -> View:
        """See `Asking.view`."""
        if self.boxes is None:
            return View()
        return person_view(self.boxes[number], self.protocol.margin)

    def _probability(self, log_probs: NDArray[np.float32], chosen: NDArray[Any]) -> NDArray[np.float32]:
        """(questions, images, options) what the scores count; 0 or 1 where the model gives no probabilities."""
        one_hot = chosen[..., None] == np.arange(log_probs.shape[-1])
        if self.protocol.yes == "argmax":
            return np.asarray(one_hot, np.float32)
        found = np.exp(log_probs.astype(np.float64))
        if self.protocol.normalise == "options":
            found = softmax(log_probs.astype(np.float64))
        counted = np.where(np.isnan(log_probs), one_hot, np.clip(found, 0.0, 1.0))
        return np.asarray(counted, np.float32)

    def _columns(self, log_probs: NDArray[np.float32], probability: NDArray[np.float32]) -> Columns:
        import pyarrow as pa

        chosen = self.protocol.questions
        prompts = [
            (chosen.name, each.id, text, each.topic) for each, text in zip(chosen.questions, self.texts, strict=True)
        ]
        question, _, option = (place.reshape(-1) for place in np.indices(log_probs.shape, dtype=np.int32))
        letter = np.argsort(np.array(self.orders), axis=1)[question, option]
        score = log_probs.reshape(-1)
        return grid(prompts, self.images.ids, self.images.genders, log_probs.shape[-1]) | {
            "option": coded(option, chosen.options),
            "letter": coded(letter, list(LETTERS[: len(chosen.options)])),
            "polarity": coded(question, [each.polarity or None for each in chosen.questions]),
            "score": pa.array(score, pa.float32(), mask=np.isnan(score)),
            "probability": probability.reshape(-1),
        }

    def _answered(
        self, log_probs: NDArray[np.float32], chosen: NDArray[Any], probability: NDArray[np.float32]
    ) -> Answered:
        known = ~np.isnan(log_probs).any(axis=-1)
        mass = np.exp(log_probs[known].astype(np.float64)).sum(axis=-1)
        names = self.protocol.questions.options
        return Answered(
            yes=probability[..., names.index(YES)],
            shares={name: float((chosen == place).mean()) for place, name in enumerate(names)},
            no_option=float((chosen < 0).mean()),
            without=int((~known).sum()),
            outside=float(np.clip(1 - mass, 0.0, 1.0).mean()) if known.any() and self.whole else None,
        )

    def score(self, run_id: str, configs: Iterator[tuple[str, Answered]]) -> ScoresRecord:
        """See `Asking.score`."""
        men = np.array([gender == "man" for gender in self.images.genders])
        protocol = self.protocol
        measured, answered = {}, {}
        for config, each in configs:
            answered[config] = each
            measured[config] = gaps(
                each.yes,
                men,
                n_resamples=protocol.n_resamples,
                n_permutations=protocol.n_permutations,
                seed=protocol.seed,
            )
        return scores_record(
            run_id,
            self.options,
            protocol.questions.questions,
            measured,
            answered,
            counts=self._counts(),
            threshold=protocol.threshold,
            confidence=protocol.confidence,
        )

    def _counts(self) -> dict[str, int]:
        women, men, asked = self.images.count("woman"), self.images.count("man"), len(self.asked)
        counts = {"rows": (women + men) * asked, "questions": asked}
        counts |= {"answers_woman": women * asked, "answers_man": men * asked}
        return counts | {"images_woman": women, "images_man": men}

    def notes_on(self, scores: ScoresRecord) -> list[str]:
        """See `Asking.notes_on`."""
        original = {each.metric: each for each in scores.scores if (each.config, each.scope) == (ORIGINAL, "all")}
        shares = {name: original[f"answered_{name.lower()}"].value or 0.0 for name in self.protocol.questions.options}
        said = ", ".join(f"{name} {100 * share:.1f} %" for name, share in shares.items())
        no_option, outside = original["answered_no_option"].value or 0.0, original["outside"].value
        notes = [
            *self.notes,
            f"most probable answers on the original images: {said}, no option {100 * no_option:.1f} %",
        ]
        lacking = [
            each.counts["without_probabilities"] for each in scores.scores if each.metric == "answered_no_option"
        ]
        answers = len(lacking) * original["ygap"].counts["rows"]
        if without := sum(lacking):
            lacks = (
                "the model gives no probabilities"
                if without == answers
                else (f"{without} of {answers} answers came without probabilities")
            )
            notes.append(f"{lacks}: such answers count as 1 for their option and 0 for every other")
        if outside is not None:
            notes.append(f"{100 * outside:.1f} % of the probability is on none of the options (original images)")
        return notes


def _order(protocol: Vqa, question: str) -> tuple[int, ...]:
    """Which option stands at A, at B, and so on."""
    places = range(len(protocol.questions.options))
    if protocol.order == "fixed":
        return tuple(places)
    key = Key(protocol.questions.name, question, "options", protocol.seed)
    return tuple(sorted(places, key=key.uniform))


def _enter(answer: Answer, order: Sequence[int], row: NDArray[np.float32]) -> None:
    """Puts an answer's log-probabilities, which are by letter, into a row that is by option."""
    if answer.log_probs is not None:
        row[list(order)] = answer.log_probs


@dataclass(frozen=True, slots=True)
class PersonCrop:
    """Cuts a box with a margin out of an image, within its edges; picklable."""

    box: Box
    margin: float

    def __call__(self, image: Image.Image) -> Image.Image:
        """At least a pixel, also of a box that lies outside."""
        (left, top, width, height), margin = self.box, self.margin
        first = (max(left - margin * width, 0), max(top - margin * height, 0))
        last = (min(left + (1 + margin) * width, image.width), min(top + (1 + margin) * height, image.height))
        x, y = min(int(first[0]), image.width - 1), min(int(first[1]), image.height - 1)
        return image.crop((x, y, max(round(last[0]), x + 1), max(round(last[1]), y + 1)))


def person_view(box: Box, margin: float) -> View:
    """The person's box with a margin, cut at the image's edges."""
    return View(f"person {margin:g} {tuple(box)}", PersonCrop(box, margin))

"""Counterfactual questions: does another shown gender change which occupation is seen? (Xiao et al. 2024)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from truegap.errors import UserError
from truegap.hub.benchmark import Benchmark
from truegap.models import DualEncoder
from truegap.models.base import FloatArray
from truegap.models.generative import Answer, Question
from truegap.perturbations.keys import Key
from truegap.protocols.base import ORIGINAL, Asking, Columns, Images, Model, Protocol, Session
from truegap.protocols.counterfactual_questions import CounterfactualQuestion, questions_of, with_article
from truegap.protocols.gap_records import scores_record
from truegap.protocols.gaps import Gap
from truegap.protocols.softmax import softmax
from truegap.protocols.unanswered import note_on
from truegap.results.answers import repeated
from truegap.results.readers_counterfactual import Items
from truegap.results.readers_questions import Joined, joined, score_questions
from truegap.results.readers_scoring import Scoring
from truegap.results.records import ScoreRecord, ScoresRecord
from truegap.scores import ScoreError, resampled_counterfactual

CONTEXTS = ("VL", "V", "L")
LETTERS = ("(A", "(B")
COLUMNS = ("questions", "image_pair", "pictured")
CHANGED = ("b_ovl", "acc")
_CHOICES = {
    "option_text": ("letter", "content"),
    "ipss": ("per_order", "merged"),
    "b_max": ("abs", "signed"),
    "difference": (None, "probability", "outcome"),
    "delta_acc": ("pair", "occupation"),
}


@dataclass(frozen=True, slots=True)
class Counterfactual(Protocol):
    """The conventions of a counterfactual run; all of them are written into its record.

    Attributes:
        contexts: Which questions are asked; those among them that the benchmark has.
        option_text: What is scored: `letter` ("(A", as published) or `content` (the occupation).
        ipss: `per_order` (as published) or `merged`.
        b_max: `abs`, or `signed` as published.
        difference: `probability`, or `outcome` for models that only answer; None for the one that suits the model.
        delta_acc: `pair` (the paper's words) or `occupation` (as published).
        caption: What a dual encoder reads of an occupation; `{}` is the occupation with its article.
        threshold: There is no delta where the score on the original images is below it.
        n_resamples: Bootstrap resamples of base images; 0 for no intervals.
        confidence: Nominal coverage.
        seed: Of the resamples.
    """

    name: ClassVar[str] = "counterfactual"
    columns_needed: ClassVar[tuple[str, ...]] = COLUMNS

    contexts: tuple[str, ...] = CONTEXTS
    option_text: str = "letter"
    ipss: str = "per_order"
    b_max: str = "abs"
    difference: str | None = None
    delta_acc: str = "pair"
    caption: str = "A photo of {}"
    threshold: float = 0.005
    n_resamples: int = 1000
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        for name, values in _CHOICES.items():
            if (value := getattr(self, name)) not in values:
                raise UserError(f"{name}={value!r}: use {' or '.join(filter(None, values))}")
        if not self.contexts or set(self.contexts) - set(CONTEXTS):
            raise UserError(f"contexts {', '.join(self.contexts)}: use some of {', '.join(CONTEXTS)}")
        if "{}" not in self.caption:
            raise UserError(f"caption {self.caption!r}: it needs {{}} where the occupation goes")
        if min(self.n_resamples, self.threshold) < 0:
            raise UserError("resamples and threshold must be at least 0")

    def asking(self, benchmark: Benchmark, model: Model, images: Images) -> CounterfactualAsking:
        """See `Protocol.asking`."""
        dual = isinstance(model, DualEncoder)
        if dual and self.difference == "probability":
            raise UserError(
                f"model {model.record().name} is a dual-encoder, which gives no probabilities: use --difference outcome"
            )
        wanted = [each for each in CONTEXTS if each in self.contexts and (each == "V" or not dual)]
        asked = questions_of(benchmark, images, wanted)
        there = [each for each in wanted if any(question.context == each for question in asked)]
        if not there:
            lacking = " or ".join(wanted) or "V, the only one for a dual encoder"
            raise UserError(f"{benchmark.spec} has no questions of context {lacking}: use other --contexts")
        difference = self.difference or ("outcome" if dual else "probability")
        return CounterfactualAsking(self, images, asked, there, difference)

    def sample(self, benchmark: Benchmark, images: Images, size: int, key: str, seed: int) -> Images:
        """Whole pairs of occupations, in an order of their own, until there are so many images.

        Single images would leave no question with its counterpart, and no pair with both occupations.

        Raises:
            UserError: Not even one pair has so few images.
        """
        columns = benchmark.column(ORIGINAL, "questions")
        of_pair: dict[str, set[int]] = {}
        for place in images.places:
            for question in columns[place]:
                of_pair.setdefault(question["pair"], set()).add(place)
        name = benchmark.manifest.benchmark
        chosen: set[int] = set()
        for pair in sorted(of_pair, key=lambda pair: Key(name, pair, key, seed).uniform()):
            if len(chosen | of_pair[pair]) <= size:
                chosen |= of_pair[pair]
        if not chosen:
            smallest = min(map(len, of_pair.values()), default=0)
            raise UserError(f"--limit {size}: a pair of occupations has at least {smallest} images; give as many")
        return images.only(chosen)

    def record(self, contexts: Sequence[str], difference: str) -> dict[str, Any]:
        """Every convention and its value."""
        return asdict(self) | {"contexts": list(contexts), "difference": difference}


class CounterfactualAsking(Asking[Joined]):
    """The questions of a run."""

    columns = ("probability", "occupation", "context", "role", "order", "pair", "right", "tokens")

    def __init__(
        self,
        protocol: Counterfactual,
        images: Images,
        asked: Sequence[CounterfactualQuestion],
        contexts: Sequence[str],
        difference: str,
    ) -> None:
        """Binds the questions to images."""
        super().__init__(images, protocol.record(contexts, difference))
        self.protocol = protocol
        self.asked = asked
        self.contexts = contexts
        self.difference = difference
        self._texts: dict[str, NDArray[np.float32]] = {}
        self._rows: dict[int, list[int]] = {}
        for row, each in enumerate(asked):
            self._rows.setdefault(each.number, []).append(row)

    def costs(self, every: Images) -> list[str]:  # noqa: ARG002  whole pairs are drawn, of uneven numbers of images
        """See `Asking.costs`."""
        return ["intervals are wider than those of all images"]

    def prompts(self) -> dict[str, Question]:
        """One question of each context."""
        first: dict[str, Question] = {}
        for each in self.asked:
            first.setdefault(f"{each.context}:{each.id}", self._question(each))
        contexts = {name.partition(":")[0]: name for name in reversed(first)}
        return {name: first[name] for name in contexts.values()}

    def questions(self, number: int) -> Sequence[Question]:
        """See `Asking.questions`."""
        return [self._questions[row] for row in self._rows.get(number, [])]

    @cached_property
    def _questions(self) -> list[Question]:
        return [self._question(each) for each in self.asked]

    def _question(self, asked: CounterfactualQuestion) -> Question:
        options = LETTERS if self.protocol.option_text == "letter" else asked.options
        return Question(asked.text, options, scoring="text")

    def answers(self, config: str, session: Session) -> tuple[Columns, Joined]:
        """See `Asking.answers`."""
        tokens = np.zeros((len(self.asked), 2), np.int16)
        if isinstance(session.model, DualEncoder):
            scores = self._cosines(session, session.embed(config))
            probability = softmax(scores.astype(np.float64)).astype(np.float32)
        else:
            scores, probability = self._log_probs(config, session, tokens)
            if config == ORIGINAL and (said := note_on(scores, probability)):
                self.notes.append(said)
        right = probability[np.arange(len(self.asked)), [each.answer for each in self.asked]]
        columns = {name: [getattr(each, field) for each in self.asked] for name, field in _FIELDS.items()}
        columns["image_id"] = [self.images.ids[each.number] for each in self.asked]
        return self._columns(scores, probability, tokens), joined(columns, right.astype(np.float64))

    def _cosines(self, session: Session, features: FloatArray) -> NDArray[np.float32]:
        """(questions, 2) raw cosines of the image and both occupations."""
        wanted = dict.fromkeys(option for each in self.asked for option in each.options)
        if not self._texts:
            texts = [self.protocol.caption.replace("{}", with_article(option)) for option in wanted]
            self._texts = dict(zip(wanted, session.embed_texts(texts), strict=True))
        first, second = (np.stack([self._texts[each.options[n]] for each in self.asked]) for n in (0, 1))
        images = features[[each.number for each in self.asked]]
        return np.stack([(images * side).sum(axis=1) for side in (first, second)], axis=1).astype(np.float32)

    def _log_probs(
        self, config: str, session: Session, tokens: NDArray[np.int16]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(questions, 2) log-probabilities, NaN where there are none, and the shares of the two options."""
        scores, probability = np.full(tokens.shape, np.nan, np.float32), np.zeros(tokens.shape, np.float32)
        for number, answers in enumerate(session.ask(config, self)):
            for row, answer in zip(self._rows.get(number, []), answers, strict=True):
                _enter(answer, scores[row], probability[row], tokens[row])
        if self.difference == "probability" and np.isnan(scores).all():
            raise UserError("the model gives answers without probabilities: use --difference outcome")
        return scores, probability

    def _columns(
        self, scores: NDArray[np.float32], probability: NDArray[np.float32], tokens: NDArray[np.int16]
    ) -> Columns:
        import pyarrow as pa

        flat = scores.reshape(-1)

        def column(values: Sequence[Any]) -> Any:
            return repeated([value for value in values for _ in range(2)])

        columns = {name: column([getattr(each, field) for each in self.asked]) for name, field in _TEXTS.items()}
        right = np.array([[each.answer == place for place in (0, 1)] for each in self.asked], np.int8)
        return columns | {
            "option": repeated([option for each in self.asked for option in each.options]),
            "image_id": column([self.images.ids[each.number] for each in self.asked]),
            "score": pa.array(flat, pa.float32(), mask=np.isnan(flat)),
            "probability": probability.reshape(-1),
            "order": np.repeat(np.array([each.order for each in self.asked], np.int8), 2),
            "right": right.reshape(-1),
            "tokens": tokens.reshape(-1),
        }

    def score(self, run_id: str, configs: Iterator[tuple[str, Joined]]) -> ScoresRecord:
        """See `Asking.score`."""
        protocol = self.protocol
        measured = dict(configs)
        known: dict[str, Any] = {"ipss": protocol.ipss, "difference": self.difference, "delta_acc": protocol.delta_acc}
        scoring = Scoring(
            b_max=protocol.b_max,
            n_resamples=protocol.n_resamples,
            confidence=protocol.confidence,
            seed=protocol.seed,
            **known,
        )
        try:
            scored = score_questions(measured, scoring)
        except ScoreError as error:
            raise UserError(f"counterfactual: {error}") from None
        if not scored.scores:
            raise UserError("counterfactual: no pair of occupations has items of both of them; ask more images")
        self.notes += scored.notes
        return scores_record(
            run_id,
            self.options,
            scored.scores,
            self._gaps(measured, scored.scores, known),
            main=next(each.metric for each in scored.scores if "b_ovl" in each.metric),
            threshold=protocol.threshold,
            confidence=protocol.confidence,
        )

    def _gaps(
        self, measured: Mapping[str, Joined], scores: Sequence[ScoreRecord], known: Mapping[str, Any]
    ) -> dict[tuple[str, str], dict[str, Gap]]:
        """B_ovl and accuracy of each context by config, on the same resampled images; none where a config has none."""
        values = {(each.metric, each.config): each.value for each in scores if each.scope == "all"}
        gaps = {}
        for context in measured[ORIGINAL].items:
            resampled = {config: self._resampled(each.items[context], known) for config, each in measured.items()}
            for name in CHANGED:
                found = {config: values.get((f"{name}@{context}", config)) for config in measured}
                gaps[f"{name}@{context}", "all"] = {
                    config: Gap(value, None if (drawn := resampled[config]) is None else drawn[name], None)
                    for config, value in found.items()
                    if value is not None
                }
        return gaps

    def _resampled(self, items: Items, known: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if not self.protocol.n_resamples:
            return None
        found = resampled_counterfactual(
            items.base,
            items.counterfactual,
            occupations=items.occupations,
            pairs=items.pairs,
            genders=items.genders,
            orders=items.orders,
            images=items.images or [],
            n_resamples=self.protocol.n_resamples,
            seed=self.protocol.seed,
            **known,
        )
        if found is None or not all(np.isfinite(each).all() for each in found.values()):
            return None
        return found


_FIELDS = {
    "context": "context",
    "prompt_id": "id",
    "order": "order",
    "role": "role",
    "occupation": "occupation",
    "pair": "pair",
    "gender": "base_gender",
}
_TEXTS = {name: field for name, field in _FIELDS.items() if name != "order"} | {
    "prompt_set": "context",
    "prompt": "text",
    "topic": "occupation",
}


def _enter(answer: Answer, scores: NDArray[Any], probability: NDArray[Any], tokens: NDArray[Any]) -> None:
    if answer.log_probs is not None and answer.tokens is not None:
        scores[:], tokens[:] = answer.log_probs, answer.tokens
        # The authors' code compares mean log-probabilities of the options' tokens.
        probability[:] = softmax(np.array(answer.log_probs) / np.array(answer.tokens))
    elif answer.chosen is not None:
        probability[answer.chosen] = 1

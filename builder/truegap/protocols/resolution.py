"""Resolution: does the model give the person in the picture the right pronoun? (Hall et al. 2023, VisoGender)."""

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
from truegap.models.generative import Question
from truegap.protocols.base import ORIGINAL, Asking, Columns, Images, Model, Protocol, Session
from truegap.protocols.gap_records import scores_record
from truegap.protocols.gaps import Gap, gaps
from truegap.protocols.sentences import COLUMNS, PRONOUNS, TEMPLATES, Sentence, sentences
from truegap.protocols.softmax import softmax
from truegap.protocols.unanswered import note_on
from truegap.results.answers import coded, repeated
from truegap.results.readers_resolution import Pronouns, score_templates
from truegap.results.readers_scoring import Scoring
from truegap.results.records import ScoresRecord
from truegap.scores import ScoreError
from truegap.scores.resolution import resolve

METRIC = "gap"


@dataclass(frozen=True, slots=True)
class Resolution(Protocol):
    """The conventions of a resolution run; all of them are written into its record.

    Attributes:
        candidates: `three` ("their" counts as wrong) or `two`; the scores show both where it is `three`.
        ties: `wrong`, or `first` as the public code.
        round_intermediate: Two decimals before averaging, as published.
        threshold: There is no delta where |gap| on the original images is below it.
        n_resamples: Bootstrap resamples of images within gender; 0 for no intervals.
        confidence: Nominal coverage.
        seed: Of the resamples.
    """

    name: ClassVar[str] = "resolution"
    columns_needed: ClassVar[tuple[str, ...]] = COLUMNS

    candidates: str = "three"
    ties: str = "wrong"
    round_intermediate: bool = False
    threshold: float = 0.005
    n_resamples: int = 1000
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        for name, values in {"candidates": ("three", "two"), "ties": ("wrong", "first")}.items():
            if (value := getattr(self, name)) not in values:
                raise UserError(f"{name}={value!r}: use {' or '.join(values)}")
        if min(self.n_resamples, self.threshold) < 0:
            raise UserError("resamples and threshold must be at least 0")

    def asking(self, benchmark: Benchmark, model: Model, images: Images) -> ResolutionAsking:  # noqa: ARG002
        """See `Protocol.asking`; any kind of model can be asked."""
        return ResolutionAsking(self, images, sentences(benchmark, images))

    def record(self) -> dict[str, Any]:
        """Every convention and its value."""
        return asdict(self) | {"pronouns": list(PRONOUNS), "templates": dict(TEMPLATES)}


Sets = Mapping[str, Pronouns]
"""The scores of the pronouns by template."""


class ResolutionAsking(Asking[Sets]):
    """The sentences of a run."""

    columns = ("probability", "template", "other_gender", "occupation", "sector", "specialisation")

    def __init__(self, protocol: Resolution, images: Images, asked: Sequence[Sentence]) -> None:
        """Binds the sentences to images."""
        super().__init__(images, protocol.record())
        self.protocol = protocol
        self.asked = asked
        self._texts: dict[str, NDArray[np.float32]] = {}
        self._rows: dict[int, list[int]] = {}
        for row, each in enumerate(asked):
            self._rows.setdefault(each.number, []).append(row)

    def prompts(self) -> dict[str, Question]:
        """One sentence of each template."""
        first: dict[str, Question] = {}
        for each in self.asked:
            first.setdefault(each.template, _question(each))
        return first

    def questions(self, number: int) -> Sequence[Question]:
        """See `Asking.questions`."""
        return [self._questions[row] for row in self._rows[number]]

    @cached_property
    def _questions(self) -> list[Question]:
        return [_question(each) for each in self.asked]

    def answers(self, config: str, session: Session) -> tuple[Columns, Sets]:
        """See `Asking.answers`."""
        if isinstance(session.model, DualEncoder):
            scores = self._cosines(session, session.embed(config))
            probability = softmax(scores.astype(np.float64)).astype(np.float32)
        else:
            scores, probability = self._log_probs(config, session)
            if config == ORIGINAL and (said := note_on(scores, probability, first=self.protocol.ties == "first")):
                self.notes.append(said)
        compared = np.where(np.isnan(scores), probability, scores)
        return self._columns(scores, probability), self._sets(compared)

    def _cosines(self, session: Session, features: FloatArray) -> NDArray[np.float32]:
        """(sentences, 3) raw cosines: no logit scale."""
        wanted = dict.fromkeys(each.whole(pronoun) for each in self.asked for pronoun in PRONOUNS)
        if not self._texts:
            self._texts = dict(zip(wanted, session.embed_texts(list(wanted)), strict=True))
        return np.array(
            [
                [float(features[each.number] @ self._texts[each.whole(pronoun)]) for pronoun in PRONOUNS]
                for each in self.asked
            ],
            np.float32,
        )

    def _log_probs(self, config: str, session: Session) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(sentences, 3) log-probabilities, NaN where there are none, and what they say of the three."""
        scores = np.full((len(self.asked), len(PRONOUNS)), np.nan, np.float32)
        probability = np.zeros_like(scores)
        for number, answers in enumerate(session.ask(config, self)):
            for row, answer in zip(self._rows[number], answers, strict=True):
                if answer.log_probs is not None:
                    scores[row] = answer.log_probs
                    probability[row] = softmax(np.array(answer.log_probs))
                elif answer.chosen is not None:
                    probability[row, answer.chosen] = 1
        return scores, probability

    def _sets(self, compared: NDArray[np.float32]) -> Sets:
        found = {}
        for template in dict.fromkeys(each.template for each in self.asked):
            rows = [row for row, each in enumerate(self.asked) if each.template == template]
            chosen = [self.asked[row] for row in rows]
            groups = {
                name: [getattr(each, name) for each in chosen] for name in ("sector", "specialisation", "occupation")
            }
            found[template] = Pronouns(
                scores=compared[rows].astype(np.float64),
                genders=[each.gender for each in chosen],
                others=[each.other for each in chosen],
                images=[self.images.ids[each.number] for each in chosen],
                groups={name: values for name, values in groups.items() if all(values)},
            )
        return found

    def _columns(self, scores: NDArray[np.float32], probability: NDArray[np.float32]) -> Columns:
        import pyarrow as pa

        row, option = (place.reshape(-1) for place in np.indices(scores.shape, dtype=np.int32))
        flat = scores.reshape(-1)

        def column(values: Sequence[str | None]) -> Any:
            return repeated([values[place] for place in row.tolist()])

        return {
            "prompt_set": coded(np.zeros(len(row), np.int32), ["visogender"]),
            "prompt_id": column([f"{each.template}:{each.subject}:{each.rest}" for each in self.asked]),
            "prompt": column([each.start for each in self.asked]),
            "topic": column([each.occupation for each in self.asked]),
            "option": coded(option, PRONOUNS),
            "image_id": column([self.images.ids[each.number] for each in self.asked]),
            "gender": column([each.gender for each in self.asked]),
            "score": pa.array(flat, pa.float32(), mask=np.isnan(flat)),
            "probability": probability.reshape(-1),
            "template": column([each.template for each in self.asked]),
            "other_gender": column([each.other for each in self.asked]),
            "occupation": column([each.occupation for each in self.asked]),
            "sector": column([each.sector or None for each in self.asked]),
            "specialisation": column([each.specialisation or None for each in self.asked]),
        }

    def score(self, run_id: str, configs: Iterator[tuple[str, Sets]]) -> ScoresRecord:
        """See `Asking.score`."""
        protocol = self.protocol
        measured = dict(configs)
        sets = {(config, template): rows for config, found in measured.items() for template, rows in found.items()}
        scoring = Scoring(
            candidates=protocol.candidates,
            ties=protocol.ties,
            round_intermediate=protocol.round_intermediate,
            n_resamples=protocol.n_resamples,
            confidence=protocol.confidence,
            seed=protocol.seed,
        )
        try:
            scored = score_templates(sets, scoring)
        except ScoreError as error:
            raise UserError(f"resolution: {error}") from None
        self.notes += scored.notes
        return scores_record(
            run_id,
            self.options,
            scored.scores,
            {(METRIC, scope): found for scope, found in self._gaps(measured).items()},
            main=METRIC,
            threshold=protocol.threshold,
            confidence=protocol.confidence,
        )

    def _gaps(self, measured: Mapping[str, Sets]) -> dict[str, dict[str, Gap]]:
        """RA_m - RA_f by scope and config, on the same resampled images."""
        found: dict[str, dict[str, Gap]] = {}
        for template, rows in measured[ORIGINAL].items():
            men = np.array([gender == "man" for gender in rows.genders])
            others = np.array([other or "" for other in rows.others])
            single, same = others == "", others == np.array(rows.genders)
            scopes = {"all": np.ones(len(men), bool), "single": single, "two": ~single}
            scopes |= {"same": same, "different": ~single & ~same}
            if template != "occupation":
                scopes = {template: scopes["all"]}
            for scope, chosen in scopes.items():
                # One gender alone, or nobody, has no gap.
                if len(set(men[chosen])) > 1 and (scope == "all" or not chosen.all() or scope == template):
                    found[scope] = {config: self._gap(sets[template], men, chosen) for config, sets in measured.items()}
        return found

    def _gap(self, rows: Pronouns, men: NDArray[np.bool_], chosen: NDArray[np.bool_]) -> Gap:
        width = 2 if self.protocol.candidates == "two" else 3
        resolved, _ = resolve(rows.scores[chosen, :width], self.protocol.ties)
        right = resolved == np.where(men[chosen], PRONOUNS.index("his"), PRONOUNS.index("her"))
        return gaps(
            right[None].astype(np.float64), men[chosen], n_resamples=self.protocol.n_resamples, seed=self.protocol.seed
        ).over([0])

    def notes_on(self, scores: ScoresRecord) -> list[str]:
        """See `Asking.notes_on`."""
        original = {(each.metric, each.scope): each for each in scores.scores if each.config == ORIGINAL}
        notes = [*self.notes]
        if ties := original[METRIC, "all"].counts["ties"]:
            notes.append(f"{ties} images have several pronouns of the same score: counted as {self.protocol.ties}")
        two_way = original.get(("ra_avg_two_way", "all"))
        if two_way is not None:
            shown = (original["ra_avg", "all"].value or 0.0, two_way.value or 0.0)
            notes.append("RA_avg is {:.3f} with three candidates and {:.3f} with his and her alone".format(*shown))
        return notes


def _question(sentence: Sentence) -> Question:
    return Question(sentence.start, PRONOUNS, form="continue", scoring="text")

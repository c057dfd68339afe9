"""Retrieval by occupation: whom does "The doctor and their patient" find first among doctors? (Hall et al. 2023)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from truegap.errors import UserError
from truegap.hub.benchmark import Benchmark
from truegap.models import DualEncoder
from truegap.models.base import FloatArray
from truegap.protocols.base import ORIGINAL, Asking, Columns, Images, Model, Protocol, Session
from truegap.protocols.gap_records import change_records, summary_record
from truegap.protocols.gaps import Gap
from truegap.protocols.sentences import COLUMNS, NEUTRAL, Sentence, sentences
from truegap.results.answers import coded, repeated
from truegap.results.readers_retrieval import score_own_images
from truegap.results.readers_scoring import Scoring
from truegap.results.records import ChangeRecord, ScoreRecord, ScoresRecord
from truegap.scores import ScoreError

K = (5, 10)


@dataclass(frozen=True, slots=True)
class OccupationRetrieval(Protocol):
    """The conventions of a run; all of them are written into its record.

    Every query has images of its own, so few that no interval over images is given: mean and standard deviation are
    over occupations, as published.

    Attributes:
        k: Cuts; the first is the main one. None for 5 and 10, as published.
        target: Desired shares: `uniform` or `dataset`.
        empty: Skew of a gender that is absent from the top k: `clip` or `neg_inf`.
        seed: Not used; every image is ranked.
        n_resamples: Not used: there is no interval.
    """

    name: ClassVar[str] = "retrieval-occupations"

    k: tuple[int, ...] | None = None
    target: str = "uniform"
    empty: str = "clip"
    seed: int = 0
    n_resamples: int = 0

    def __post_init__(self) -> None:
        for name, values in {"target": ("uniform", "dataset"), "empty": ("clip", "neg_inf")}.items():
            if (value := getattr(self, name)) not in values:
                raise UserError(f"{name}={value!r}: use {' or '.join(values)}")
        if self.k is not None and min(self.k) < 1:
            raise UserError(f"k={min(self.k)}: give 1 or more")

    def asking(self, benchmark: Benchmark, model: Model, images: Images) -> OccupationAsking:
        """See `Protocol.asking`."""
        if not isinstance(model, DualEncoder):
            record = model.record()
            raise UserError(
                f"model {record.name} is of the kind {record.kind}, without similarities: use --protocol resolution"
            )
        return OccupationAsking(self, images, sentences(benchmark, images))

    def check(self, benchmark: Benchmark) -> None:
        """See `Protocol.check`."""
        self.check_columns(benchmark, COLUMNS)

    def record(self) -> dict[str, Any]:
        """Every convention and its value."""
        used = {name: value for name, value in asdict(self).items() if name not in ("seed", "n_resamples")}
        return used | {"k": list(self.k or K), "caption": f"The {{}} and {NEUTRAL} {{}}"}


@dataclass(frozen=True, slots=True)
class Query:
    """A caption and the images that it ranks.

    Attributes:
        scope: `single`, `two`, or `participant` for the flipped caption.
        occupation: Of all its images.
        text: The neutral caption.
        numbers: Of the images in the run.
    """

    scope: str
    occupation: str
    text: str
    numbers: tuple[int, ...]

    @property
    def name(self) -> str:
        """Unique in a run."""
        return f"{self.scope}:{self.occupation}"


def queries(asked: Sequence[Sentence]) -> list[Query]:
    """One query per occupation and kind of image; of an occupation's several objects the most frequent is named."""
    found: dict[tuple[str, str], list[Sentence]] = {}
    for each in asked:
        scope = each.template if each.template == "participant" else "single" if each.other is None else "two"
        found.setdefault((scope, each.occupation), []).append(each)
    made = []
    for (scope, occupation), rows in sorted(found.items()):
        texts = [each.whole(NEUTRAL) for each in rows]
        text = max(dict.fromkeys(texts), key=texts.count)
        made.append(Query(scope, occupation, text, tuple(each.number for each in rows)))
    return made


class OccupationAsking(Asking[list[NDArray[np.float32]]]):
    """The queries of a run; what is measured of a config is every query's similarities to its images."""

    columns = ("occupation",)

    def __init__(self, protocol: OccupationRetrieval, images: Images, asked: Sequence[Sentence]) -> None:
        """Binds the queries to images; an occupation that shows one gender has none."""
        super().__init__(images, protocol.record())
        self.protocol = protocol
        every = queries(asked)
        self.queries = [each for each in every if len({images.genders[number] for number in each.numbers}) > 1]
        if lacking := [each.name for each in every if each not in self.queries]:
            self.notes.append(f"left out: {len(lacking)} queries whose images show one gender, such as {lacking[0]}")
        self._texts: FloatArray | None = None

    def check(self) -> None:
        """See `Asking.check`."""
        super().check()
        if not self.queries:
            raise UserError("no occupation has images of both genders: use more images")
        first, most = (self.protocol.k or K)[0], max(len(query.numbers) for query in self.queries)
        if first > most:
            raise UserError(f"k={first}: no occupation has so many images; use 1 to {most}")

    def answers(self, config: str, session: Session) -> tuple[Columns, list[NDArray[np.float32]]]:
        """See `Asking.answers`."""
        features = session.embed(config, meanwhile=lambda: self._encoded(session))
        found = [
            np.asarray(features[list(query.numbers)] @ text, np.float32)
            for query, text in zip(self.queries, self._encoded(session), strict=True)
        ]
        rows = [(query, number) for query in self.queries for number in query.numbers]
        columns = {
            "prompt_set": coded(np.zeros(len(rows), np.int32), ["visogender"]),
            "prompt_id": repeated([query.name for query, _ in rows]),
            "prompt": repeated([query.text for query, _ in rows]),
            "topic": repeated([query.occupation for query, _ in rows]),
            "image_id": repeated([self.images.ids[number] for _, number in rows]),
            "gender": repeated([self.images.genders[number] for _, number in rows]),
            "score": np.concatenate(found),
            "occupation": repeated([query.occupation for query, _ in rows]),
        }
        return columns, found

    def _encoded(self, session: Session) -> FloatArray:
        """Features of the captions, computed once."""
        if self._texts is None:
            self._texts = session.embed_texts([each.text for each in self.queries])
        return self._texts

    def score(self, run_id: str, configs: Iterator[tuple[str, list[NDArray[np.float32]]]]) -> ScoresRecord:
        """See `Asking.score`."""
        main = f"bias@{(self.protocol.k or K)[0]}"
        scores: list[ScoreRecord] = []
        scopes: dict[str, list[int]] = {
            "all": [n for n, query in enumerate(self.queries) if query.scope != "participant"]
        }
        for place, query in enumerate(self.queries):
            scopes.setdefault(query.scope, []).append(place)
        for config, found in configs:
            for scope, places in scopes.items():
                scores += self._scored(config, scope, [found[place] for place in places], places)
        largest = max(self.protocol.k or K)
        short = [
            scope for scope, places in scopes.items() if all(len(self.queries[n].numbers) < largest for n in places)
        ]
        if short:
            self.notes.append(f"no score at k={largest} of {', '.join(short)}: no query has so many images")
        self.notes.append("no interval: every query has images of its own; sd is over queries")
        changes: list[ChangeRecord] = []
        for scope in scopes:
            for metric in dict.fromkeys(each.metric for each in scores):
                changes += _changes(metric, scope, scores)
        first = next(each for each in scores if (each.metric, each.config, each.scope) == (main, ORIGINAL, "all"))
        return ScoresRecord(
            run_id=run_id,
            options=self.options,
            summary=summary_record(first, changes, _gaps(main, "all", scores), 0.95),
            scores=scores,
            changes=changes,
        )

    def _scored(
        self, config: str, scope: str, found: Sequence[NDArray[np.float32]], places: Sequence[int]
    ) -> Iterator[ScoreRecord]:
        chosen = [self.queries[place] for place in places]
        most = max(len(query.numbers) for query in chosen)
        cuts = tuple(k for k in self.protocol.k or K if k <= most)
        if not cuts:
            return
        scoring = Scoring(k=cuts, draws=0, target=self.protocol.target, empty=self.protocol.empty)
        genders = [[self.images.genders[number] for number in query.numbers] for query in chosen]
        try:
            scored = score_own_images(
                [each.tolist() for each in found], genders, [query.occupation for query in chosen], scoring
            )
        except ScoreError as error:
            raise UserError(f"retrieval by occupation, {scope}: {error}") from None
        for each in scored.scores:
            own = scope if each.scope == "all" else f"{scope}:{each.scope}"
            if each.scope == "all" or scope != "all":
                yield each.model_copy(update={"config": config, "scope": own})


def _gaps(metric: str, scope: str, scores: Sequence[ScoreRecord]) -> dict[str, Gap]:
    own = [each for each in scores if (each.metric, each.scope) == (metric, scope)]
    return {each.config: Gap(each.value, None, None) for each in own if each.value is not None}


def _changes(metric: str, scope: str, scores: Sequence[ScoreRecord]) -> Iterator[ChangeRecord]:
    measured = _gaps(metric, scope, scores)
    # As for retrieval over all images, only an original of 0 has no ratio.
    return (
        change_records(metric, scope, measured, threshold=None, confidence=0.95) if ORIGINAL in measured else iter(())
    )

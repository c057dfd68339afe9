"""Retrieval: rank a benchmark's images by each prompt; who comes first, and what moves that?

Source: Hirota et al. 2025, MaxSkew@k over balanced draws; sensitivity between the original and perturbed configs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from truegap.errors import UserError
from truegap.hub.benchmark import Benchmark
from truegap.models import DualEncoder
from truegap.models.base import FloatArray
from truegap.protocols.base import Asking, Columns, Images, Model, Protocol, Session, both_genders
from truegap.protocols.prompts import PACKAGED, PromptSet, packaged
from truegap.protocols.retrieval_records import (
    ORIGINAL,
    change_records,
    context_records,
    contrast_records,
    score_records,
    summary_record,
)
from truegap.results.answers import grid
from truegap.results.records import ChangeRecord, ContextRecord, ContrastRecord, ScoreRecord, ScoresRecord
from truegap.schema import GENDERS
from truegap.scores import RetrievalScores, ScoreError, balanced_draws, default_k, retrieval_scores

ALL = "all"
LARGE = 1000
"""The default k where a balanced draw has at least twice as many images."""

Similarities = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Retrieval(Protocol):
    """The conventions of a retrieval run; all of them are written into its record.

    Attributes:
        prompts: Prompt sets; scores are given for all prompts together and for each set.
        k: Cuts; None for 1000 where a draw has 2,000 images, else a tenth of them. The first is the main one.
        draws: Balanced draws.
        seed: Of draws and resamples.
        target: Desired shares: `uniform` or `dataset`.
        empty: Skew of a gender that is absent from the top k: `clip` or `neg_inf`.
        aggregate: Delta over draws: `mean_of_ratios` or `ratio_of_means`.
        n_resamples: Bootstrap resamples of images within gender; 0 for no intervals.
        confidence: Nominal coverage.
    """

    name: ClassVar[str] = "retrieval"

    prompts: tuple[PromptSet, ...] = field(default_factory=lambda: tuple(map(packaged, PACKAGED)))
    k: tuple[int, ...] | None = None
    draws: int = 5
    seed: int = 0
    target: str = "uniform"
    empty: str = "clip"
    aggregate: str = "mean_of_ratios"
    n_resamples: int = 1000
    confidence: float = 0.95

    def __post_init__(self) -> None:
        allowed = {
            "target": ("uniform", "dataset"),
            "empty": ("clip", "neg_inf"),
            "aggregate": ("mean_of_ratios", "ratio_of_means"),
        }
        for name, values in allowed.items():
            if (value := getattr(self, name)) not in values:
                raise UserError(f"{name}={value!r}: use {' or '.join(values)}")
        if self.draws < 1 or self.n_resamples < 0:
            raise UserError("draws must be at least 1, n_resamples at least 0")

    def texts(self) -> list[tuple[str, str, str, str]]:
        """Per prompt: name of its set, id, text, topic."""
        return [(each.name, prompt.id, prompt.text, prompt.topic) for each in self.prompts for prompt in each.prompts]

    def asking(self, benchmark: Benchmark, model: Model, images: Images) -> RetrievalAsking:  # noqa: ARG002
        """See `Protocol.asking`."""
        if not isinstance(model, DualEncoder):
            record = model.record()
            raise UserError(
                f"model {record.name} is of the kind {record.kind}, which has no similarities: use --protocol vqa"
            )
        return RetrievalAsking(self, images)

    def record(self, k: Sequence[int]) -> dict[str, Any]:
        """Every convention and its value, with the k that was used."""
        return {
            "prompts": {each.name: {"count": len(each.prompts), "sha256": each.sha256} for each in self.prompts},
            "k": list(k),
            "draws": self.draws,
            "seed": self.seed,
            "target": self.target,
            "empty": self.empty,
            "aggregate": self.aggregate,
            "n_resamples": self.n_resamples,
            "confidence": self.confidence,
        }


def cuts(protocol: Retrieval, genders: Sequence[str]) -> tuple[int, ...]:
    """The k's of a run: those asked for, or the default for this many images.

    Raises:
        UserError: One gender is missing, or a k is above the images of a balanced draw: known before anything is
            computed.
    """
    both_genders(genders)
    smallest = min(list(genders).count(gender) for gender in GENDERS)
    k = protocol.k or (_default(genders),)
    if max(k) > 2 * smallest or min(k) < 1:
        raise UserError(
            f"k={max(k)}: a balanced draw has {smallest} women and {smallest} men; "
            f"use 1 to {2 * smallest}, or more images"
        )
    return k


def _default(genders: Sequence[str]) -> int:
    return default_k(2 * min(list(genders).count(gender) for gender in GENDERS))


class RetrievalAsking(Asking[Similarities]):
    """The prompts of a run."""

    def __init__(self, protocol: Retrieval, images: Images) -> None:
        """Binds the prompts to images."""
        self.k = protocol.k or (_default(images.genders),)
        super().__init__(images, protocol.record(self.k))
        self.protocol = protocol
        self._texts: FloatArray | None = None
        if protocol.k is None:
            large = f"{LARGE}, since a draw has at least {2 * LARGE:,} images"
            rule = large if self.k[0] == LARGE else "a tenth of the images of a draw"
            self.notes.append(f"k = {self.k[0]}: {rule}")

    def check(self) -> None:
        """See `Asking.check`."""
        cuts(self.protocol, self.images.genders)

    def costs(self, every: Images) -> list[str]:
        """See `Asking.costs`: a smaller k is another score."""
        with_all = self.protocol.k or (_default(every.genders),)
        if with_all == self.k:
            return super().costs(every)
        return [f"k is {self.k[0]} here and {with_all[0]} with all images: two scores, not to be compared"]

    def answers(self, config: str, session: Session) -> tuple[Columns, Similarities]:
        """See `Asking.answers`."""
        prompts = self.protocol.texts()
        features = session.embed(config, meanwhile=lambda: self._encoded(session))
        similarities = np.asarray(self._encoded(session) @ features.T, np.float32)
        columns = grid(prompts, self.images.ids, self.images.genders)
        return columns | {"score": similarities.reshape(-1)}, similarities

    def _encoded(self, session: Session) -> FloatArray:
        """Features of the prompts, computed once."""
        if self._texts is None:
            self._texts = session.embed_texts([text for _, _, text, _ in self.protocol.texts()])
        return self._texts

    def score(self, run_id: str, configs: Iterator[tuple[str, Similarities]]) -> ScoresRecord:
        """See `Asking.score`."""
        return score(self.protocol, run_id, self.images.ids, self.images.genders, configs)

    def notes_on(self, scores: ScoresRecord) -> list[str]:
        """See `Asking.notes_on`."""
        original = [each for each in scores.scores if each.config == ORIGINAL and each.scope == ALL]
        notes = [
            f"{each.metric}: {each.counts['ties']} of {each.counts['queries']} prompts have equal similarities "
            "at the cut; images were taken in the order of their ids"
            for each in original
            if each.metric.startswith("max_skew@") and each.counts.get("ties")
        ]
        ranked = original[0].counts
        notes.append(
            f"each of {ranked['draws']} balanced draws ranks {ranked['ranked_woman']} women and "
            f"{ranked['ranked_man']} men of {ranked['images_woman']} and {ranked['images_man']}"
        )
        return [*notes, *self.notes]


def score(
    protocol: Retrieval,
    run_id: str,
    image_ids: Sequence[str],
    genders: Sequence[str],
    configs: Iterator[tuple[str, Similarities]],
) -> ScoresRecord:
    """Scores of every config, its changes against the original, and the comparisons of configs in pairs.

    Args:
        protocol: The conventions.
        run_id: Of the run that the scores belong to.
        image_ids: Per image.
        genders: Per image.
        configs: Name and (prompts, images) cosine similarities of each config, `original` first.

    Returns:
        The scores of a run. Its summary is of MaxSkew at the first k over all prompts.

    Raises:
        UserError: One gender is missing, k is too large, or the first config is not the original.
    """
    k = cuts(protocol, genders)
    scopes = _scopes(protocol)
    rule, confidence = protocol.aggregate, protocol.confidence
    scores: list[ScoreRecord] = []
    changes: list[ChangeRecord] = []
    contrasts: list[ContrastRecord] = []
    contexts: list[ContextRecord] = []
    measured: dict[str, RetrievalScores] = {}
    try:
        draws = balanced_draws(genders, draws=protocol.draws, seed=protocol.seed, ids=image_ids)
        for config, similarities in configs:
            measured[config] = retrieval_scores(
                similarities,
                genders,
                k=k,
                draws=draws,
                target=protocol.target,
                empty=protocol.empty,
                n_resamples=protocol.n_resamples,
                seed=protocol.seed,
            )
            if ORIGINAL not in measured:
                raise UserError(f"retrieval: the first config is {config}; {ORIGINAL} must come before all others")
        for scope, queries in scopes.items():
            # One scope after the other: the resamples of a part are held only while it is scored.
            parts = measured if scope == ALL else {name: each.select(queries) for name, each in measured.items()}
            for config, part in parts.items():
                scores += score_records(config, scope, part, confidence)
                if config != ORIGINAL:
                    changes += change_records(config, scope, parts[ORIGINAL], part, rule, confidence)
            contrasts += contrast_records(scope, parts, rule, confidence)
            contexts += context_records(scope, parts, confidence)
    except ScoreError as error:
        raise UserError(f"retrieval: {error}") from None
    return ScoresRecord(
        run_id=run_id,
        options=protocol.record(k),
        summary=summary_record(f"max_skew@{k[0]}", scores, changes, measured, rule, confidence),
        scores=scores,
        changes=changes,
        contrasts=contrasts,
        contexts=contexts,
    )


def _scopes(protocol: Retrieval) -> dict[str, list[int]]:
    """Which prompts each scope holds: all of them, and each set where there are several."""
    names = [name for name, *_ in protocol.texts()]
    scopes = {ALL: list(range(len(names)))}
    if len(protocol.prompts) > 1:
        scopes |= {each.name: [n for n, name in enumerate(names) if name == each.name] for each in protocol.prompts}
    return scopes

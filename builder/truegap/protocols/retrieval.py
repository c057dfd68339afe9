"""Retrieval: rank a benchmark's images by each prompt; who comes first, and what moves that?

Source: Hirota et al. 2025, MaxSkew@k over balanced draws; sensitivity between the original and perturbed configs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truegap.errors import UserError
from truegap.protocols.prompts import PACKAGED, PromptSet, packaged
from truegap.results.records import ChangeRecord, ScoreRecord, ScoresRecord, Summary
from truegap.schema import GENDERS, Feature, Strength
from truegap.scores import (
    RetrievalScores,
    ScoreError,
    balanced_draws,
    default_k,
    retrieval_changes,
    retrieval_mean_delta,
    retrieval_scores,
)

PROTOCOL = "retrieval"
ORIGINAL = "original"

Similarities = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Retrieval:
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
        UserError: A k is above the images of a balanced draw, which is known before anything is computed.
    """
    smallest = min(list(genders).count(gender) for gender in GENDERS)
    k = protocol.k or (default_k(2 * smallest),)
    if smallest == 0:
        counts = ", ".join(f"{list(genders).count(gender)} {gender}" for gender in GENDERS)
        raise UserError(f"the benchmark shows one gender only ({counts}): a gap needs both; use other filters")
    if max(k) > 2 * smallest or min(k) < 1:
        raise UserError(
            f"k={max(k)}: a balanced draw has {smallest} women and {smallest} men; "
            f"use 1 to {2 * smallest}, or more images"
        )
    return k


def score(
    protocol: Retrieval,
    run_id: str,
    image_ids: Sequence[str],
    genders: Sequence[str],
    configs: Iterator[tuple[str, Similarities]],
) -> ScoresRecord:
    """Scores of every config and its changes against the original.

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
    scores: list[ScoreRecord] = []
    changes: list[ChangeRecord] = []
    measured: dict[str, RetrievalScores] = {}
    try:
        draws = balanced_draws(genders, draws=protocol.draws, seed=protocol.seed, ids=image_ids)
        for config, similarities in configs:
            found = retrieval_scores(
                similarities,
                genders,
                k=k,
                draws=draws,
                target=protocol.target,
                empty=protocol.empty,
                n_resamples=protocol.n_resamples,
                seed=protocol.seed,
            )
            measured[config] = found
            for scope, queries in scopes.items():
                part = found.select(queries)
                scores.extend(_scores(config, scope, part, protocol.confidence))
                if config != ORIGINAL:
                    before = measured[ORIGINAL].select(queries)
                    changes.extend(_changes(config, scope, before, part, protocol))
    except ScoreError as error:
        raise UserError(f"retrieval: {error}") from None
    summary = _summary(f"max_skew@{k[0]}", scores, changes, measured, protocol)
    return ScoresRecord(run_id=run_id, options=protocol.record(k), summary=summary, scores=scores, changes=changes)


def _scopes(protocol: Retrieval) -> dict[str, list[int]]:
    """Which prompts each scope holds: all of them, and each set where there are several."""
    names = [name for name, *_ in protocol.texts()]
    scopes = {"all": list(range(len(names)))}
    if len(protocol.prompts) > 1:
        scopes |= {each.name: [n for n, name in enumerate(names) if name == each.name] for each in protocol.prompts}
    return scopes


def _scores(config: str, scope: str, found: RetrievalScores, confidence: float) -> Iterator[ScoreRecord]:
    for each in found.summary(confidence=confidence):
        finite = bool(np.isfinite(each.value))
        yield ScoreRecord(
            metric=each.metric,
            config=config,
            scope=scope,
            value=each.value if finite else None,
            reason=None if finite else "minus infinity: a gender is absent from a top k",
            sd=each.sd,
            ci_low=each.ci_low,
            ci_high=each.ci_high,
            null=each.null,
            counts={**found.counts, **({} if each.ties is None else {"ties": each.ties})},
        )


def _changes(
    config: str, scope: str, before: RetrievalScores, after: RetrievalScores, protocol: Retrieval
) -> Iterator[ChangeRecord]:
    found = retrieval_changes(before, after, aggregate=protocol.aggregate, confidence=protocol.confidence)
    for each in found:
        yield ChangeRecord(
            metric=each.metric,
            scope=scope,
            config=config,
            original=_finite(each.original),
            perturbed=_finite(each.perturbed),
            delta=each.delta,
            reason=each.reason,
            delta_low=each.delta_low,
            delta_high=each.delta_high,
            signed_change=each.signed_change,
            signed_low=each.signed_low,
            signed_high=each.signed_high,
            abs_change=each.abs_change,
        )


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _summary(
    metric: str,
    scores: Sequence[ScoreRecord],
    changes: Sequence[ChangeRecord],
    measured: Mapping[str, RetrievalScores],
    protocol: Retrieval,
) -> Summary:
    main = next(each for each in scores if (each.metric, each.config, each.scope) == (metric, ORIGINAL, "all"))
    delta = {each.config: each.delta for each in changes if (each.metric, each.scope) == (metric, "all")}
    perturbed = [f"{feature}-{strength}" for feature in Feature for strength in Strength]
    present = [config for config in perturbed if config in measured]
    mean = retrieval_mean_delta(
        measured[ORIGINAL],
        [measured[config] for config in present],
        metric,
        aggregate=protocol.aggregate,
        confidence=protocol.confidence,
    )
    return Summary(
        metric=metric,
        bias=main.value,
        bias_low=main.ci_low,
        bias_high=main.ci_high,
        null=main.null,
        mean_delta=mean.delta,
        mean_delta_low=mean.delta_low,
        mean_delta_high=mean.delta_high,
        feature_delta={feature.value: _mean([delta.get(f"{feature}-{s}") for s in Strength]) for feature in Feature},
        floor=delta.get("control"),
        floor_hsv=delta.get("control-hsv"),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean, or None where one is missing: a mean over fewer strengths would not be the same quantity."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None

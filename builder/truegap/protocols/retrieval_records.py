"""Retrieval scores as they are written into `scores.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from truegap.protocols.contrasts import REMOVED, contrasts
from truegap.results.records import ChangeRecord, ContextRecord, ContrastRecord, ScoreRecord, Summary
from truegap.schema import CONTROL_OF, Feature, Strength
from truegap.scores import (
    RetrievalScores,
    retrieval_changes,
    retrieval_contexts,
    retrieval_contrasts,
    retrieval_mean_delta,
)

ORIGINAL = "original"


def score_records(config: str, scope: str, found: RetrievalScores, confidence: float) -> Iterator[ScoreRecord]:
    """Every score of one config."""
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


def change_records(
    config: str, scope: str, before: RetrievalScores, after: RetrievalScores, aggregate: str, confidence: float
) -> Iterator[ChangeRecord]:
    """How far one config moves every score."""
    for each in retrieval_changes(before, after, aggregate=aggregate, confidence=confidence):
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


def contrast_records(
    scope: str, measured: Mapping[str, RetrievalScores], aggregate: str, confidence: float
) -> Iterator[ContrastRecord]:
    """Every score on each pair of configs that differ in a single thing."""
    for config, against in contrasts(measured):
        found = retrieval_contrasts(
            measured[ORIGINAL], measured[config], measured[against], aggregate=aggregate, confidence=confidence
        )
        for each in found:
            yield ContrastRecord(
                metric=each.metric,
                scope=scope,
                config=config,
                against=against,
                difference=each.difference.value,
                difference_low=each.difference.ci_low,
                difference_high=each.difference.ci_high,
                p_value=each.difference.p_value,
                delta_beyond=each.delta_beyond,
                delta_beyond_low=each.delta_beyond_low,
                delta_beyond_high=each.delta_beyond_high,
            )


def context_records(scope: str, measured: Mapping[str, RetrievalScores], confidence: float) -> Iterator[ContextRecord]:
    """What of every score stays with the person removed; nothing where that config was not run."""
    if REMOVED not in measured:
        return
    for metric, each in retrieval_contexts(measured[ORIGINAL], measured[REMOVED], confidence=confidence):
        yield ContextRecord(
            metric=metric,
            scope=scope,
            gap=each.gap,
            gap_low=each.gap_low,
            gap_high=each.gap_high,
            share=each.share,
            share_low=each.share_low,
            share_high=each.share_high,
            reason=each.reason,
        )


def summary_record(
    metric: str,
    scores: Sequence[ScoreRecord],
    changes: Sequence[ChangeRecord],
    measured: Mapping[str, RetrievalScores],
    aggregate: str,
    confidence: float,
) -> Summary:
    """The few numbers that a table shows, of one metric over all prompts."""
    main = next(each for each in scores if (each.metric, each.config, each.scope) == (metric, ORIGINAL, "all"))
    delta = {each.config: each.delta for each in changes if (each.metric, each.scope) == (metric, "all")}
    perturbed = [f"{feature}-{strength}" for feature in Feature for strength in Strength]
    present = [config for config in perturbed if config in measured]
    mean = retrieval_mean_delta(
        measured[ORIGINAL],
        [measured[config] for config in present],
        metric,
        aggregate=aggregate,
        confidence=confidence,
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
        floor=delta.get(CONTROL_OF[Feature.OBJECT]),
        floor_hsv=delta.get(CONTROL_OF[Feature.COLOR]),
    )


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean, or None where one is missing: a mean over fewer strengths would not be the same quantity."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None

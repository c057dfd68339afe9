"""Gaps and their changes as they are written into `scores.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from truegap.protocols.contrasts import REMOVED, contrasts
from truegap.protocols.gaps import Floats, Gap
from truegap.results.records import (
    ChangeRecord,
    ContextRecord,
    ContrastRecord,
    ScoreRecord,
    ScoresRecord,
    Summary,
)
from truegap.schema import CONTROL_OF, Feature, Strength
from truegap.scores import context_gap, feature_sensitivity, interval, paired_difference, score_change

ORIGINAL = "original"
PERTURBED = tuple(f"{feature}-{strength}" for feature in Feature for strength in Strength)


def change_records(
    metric: str, scope: str, measured: Mapping[str, Gap], *, threshold: float | None, confidence: float
) -> Iterator[ChangeRecord]:
    """How far every config moves a gap from the original; with intervals where there are resamples."""
    before = measured[ORIGINAL]
    for config, after in measured.items():
        if config == ORIGINAL:
            continue
        known: dict[str, Any] = {"metric": metric, "scope": scope, "config": config}
        known |= {"original": before.value, "perturbed": after.value}
        if before.resampled is None or after.resampled is None:
            found = feature_sensitivity([before.value], [after.value], threshold=threshold)
            yield ChangeRecord(
                **known,
                delta=found.delta,
                reason=found.excluded[0].reason if found.excluded else None,
                signed_change=found.signed_change,
                abs_change=found.abs_change,
            )
            continue
        change = score_change(
            before.value, after.value, before.resampled, after.resampled, threshold=threshold, confidence=confidence
        )
        fields = {name: getattr(change, name) for name in ChangeRecord.model_fields if hasattr(change, name)}
        yield ChangeRecord(**known, **fields)


def contrast_records(
    metric: str, scope: str, measured: Mapping[str, Gap], *, threshold: float | None, confidence: float
) -> Iterator[ContrastRecord]:
    """Every pair of configs that differ in a single thing, on the same resampled images; none without resamples."""
    before = measured[ORIGINAL]
    for config, against in contrasts(measured):
        first, second = measured[config], measured[against]
        if before.resampled is None or first.resampled is None or second.resampled is None:
            continue
        difference = paired_difference(
            first.value, second.value, first.resampled, second.resampled, confidence=confidence
        )
        beyond, low, high = _beyond(before, first, second, threshold, confidence)
        if low is not None and not difference.clear:
            # Absolute values differ by noise alone: only the signed difference says whether there is one.
            low = min(low, 0.0)
        yield ContrastRecord(
            metric=metric,
            scope=scope,
            config=config,
            against=against,
            difference=difference.value,
            difference_low=difference.ci_low,
            difference_high=difference.ci_high,
            p_value=difference.p_value,
            delta_beyond=beyond,
            delta_beyond_low=low,
            delta_beyond_high=high,
        )


def _beyond(
    before: Gap, first: Gap, second: Gap, threshold: float | None, confidence: float
) -> tuple[float | None, float | None, float | None]:
    """How much further the first config moves the gap than the second, in percent, with both ends."""
    deltas = [feature_sensitivity([before.value], [each.value], threshold=threshold).delta for each in (first, second)]
    if deltas[0] is None or deltas[1] is None:
        return None, None, None
    beyond = deltas[0] - deltas[1]
    with np.errstate(invalid="ignore"):  # infinity less infinity, where a resample of the original has no gap at all
        ratios = _ratios(before, first) - _ratios(before, second)
    if not np.isfinite(ratios).all():
        return beyond, None, None
    # The median of the resamples is moved onto the observed value: a ratio of noisy absolute values is off in them.
    return beyond, *interval(ratios + (beyond - np.median(ratios)), beyond, confidence=confidence)


def _ratios(before: Gap, after: Gap) -> Floats:
    assert before.resampled is not None
    assert after.resampled is not None
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(100 * np.abs(after.resampled - before.resampled) / np.abs(before.resampled))


def context_records(
    metric: str, scope: str, measured: Mapping[str, Gap], *, threshold: float | None, confidence: float
) -> Iterator[ContextRecord]:
    """What of a gap stays with the person removed; nothing where that config was not run, or without resamples."""
    before, removed = measured[ORIGINAL], measured.get(REMOVED)
    if removed is None or before.resampled is None or removed.resampled is None:
        return
    found = context_gap(
        before.value, removed.value, before.resampled, removed.resampled, threshold=threshold, confidence=confidence
    )
    fields = {name: getattr(found, name) for name in ContextRecord.model_fields if hasattr(found, name)}
    yield ContextRecord(metric=metric, scope=scope, **fields)


def scores_record(
    run_id: str,
    options: Mapping[str, Any],
    scores: Sequence[ScoreRecord],
    gaps: Mapping[tuple[str, str], Mapping[str, Gap]],
    *,
    main: str,
    threshold: float | None,
    confidence: float,
) -> ScoresRecord:
    """What a run's gaps say: how every config moves them, what that is beyond its control, what context makes of them.

    Args:
        run_id: Of the run.
        options: Its conventions.
        scores: Every score of every config.
        gaps: By metric and scope, of every config, on the same resampled images.
        main: The metric that stands for the run, over all.
        threshold: There is no delta where the original is nearer to 0.
        confidence: Nominal coverage of the intervals.
    """
    limits: dict[str, Any] = {"threshold": threshold, "confidence": confidence}
    changes: list[ChangeRecord] = []
    contrasts: list[ContrastRecord] = []
    contexts: list[ContextRecord] = []
    for (metric, scope), measured in gaps.items():
        changes += change_records(metric, scope, measured, **limits)
        contrasts += contrast_records(metric, scope, measured, **limits)
        contexts += context_records(metric, scope, measured, **limits)
    shown = next(each for each in scores if (each.metric, each.config, each.scope) == (main, ORIGINAL, "all"))
    return ScoresRecord(
        run_id=run_id,
        options=dict(options),
        summary=summary_record(shown, changes, gaps[main, "all"], confidence),
        scores=list(scores),
        changes=changes,
        contrasts=contrasts,
        contexts=contexts,
    )


def summary_record(
    main: ScoreRecord, changes: Sequence[ChangeRecord], measured: Mapping[str, Gap], confidence: float
) -> Summary:
    """The few numbers that a table shows, of one metric.

    Args:
        main: Its score on the original images.
        changes: Of every metric.
        measured: The metric by config.
        confidence: Nominal coverage of the interval of the mean delta.
    """
    own = [each for each in changes if (each.metric, each.scope) == (main.metric, main.scope)]
    delta = {each.config: each.delta for each in own}
    mean = _mean([delta[config] for config in PERTURBED if config in delta])
    low, high = _mean_ends(measured, mean, confidence)
    return Summary(
        metric=main.metric,
        bias=main.value,
        bias_low=main.ci_low,
        bias_high=main.ci_high,
        null=main.null,
        mean_delta=mean,
        mean_delta_low=low,
        mean_delta_high=high,
        feature_delta={feature.value: _mean([delta.get(f"{feature}-{s}") for s in Strength]) for feature in Feature},
        floor=delta.get(CONTROL_OF[Feature.OBJECT]),
        floor_hsv=delta.get(CONTROL_OF[Feature.COLOR]),
    )


def _mean_ends(measured: Mapping[str, Gap], mean: float | None, confidence: float) -> tuple[float | None, float | None]:
    """The interval of the mean delta: the same resampled images for the original and for every perturbation."""
    present = [measured[config] for config in PERTURBED if config in measured]
    before = measured[ORIGINAL]
    if mean is None or any(each.resampled is None for each in (before, *present)):
        return None, None
    ratios = np.mean([_ratios(before, each) for each in present], axis=0)
    if not np.isfinite(ratios).all():
        return None, None
    return interval(np.maximum(ratios + (mean - np.median(ratios)), 0.0), mean, confidence=confidence)


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean, or None where one is missing or there are none: over fewer it would not be the same quantity."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known and len(known) == len(values) else None

"""YGap as it is written into `scores.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truegap.protocols import gap_records
from truegap.protocols.gaps import Gaps
from truegap.protocols.questions import VisualQuestion
from truegap.results.records import ScoreRecord, ScoresRecord
from truegap.scores import holm

METRIC = "ygap"


@dataclass(frozen=True, slots=True)
class Answered:
    """The answers to one config.

    Attributes:
        yes: (questions, images) p(Yes) under the run's conventions.
        shares: Of the answers, those that are each option.
        no_option: Of the answers, those that are none.
        without: How many answers have no probabilities.
        outside: Mean probability on none of the options, of the answers with probabilities; None where it is not known.
    """

    yes: NDArray[np.float32]
    shares: dict[str, float] = field(default_factory=dict)
    no_option: float = 0.0
    without: int = 0
    outside: float | None = None


def scores_record(
    run_id: str,
    options: Mapping[str, Any],
    questions: Sequence[VisualQuestion],
    measured: Mapping[str, Gaps],
    answered: Mapping[str, Answered],
    *,
    counts: dict[str, int],
    threshold: float,
    confidence: float,
) -> ScoresRecord:
    """Every score of a run: over all questions, by topic and polarity, and of every question.

    Args:
        run_id: Of the run.
        options: Its conventions.
        questions: In the order of the gaps.
        measured: The gaps of every config.
        answered: The answers to every config.
        counts: Of rows, questions and images.
        threshold: There is no delta where the original is nearer to 0.
        confidence: Nominal coverage of the intervals.
    """
    scores: list[ScoreRecord] = []
    families = _families(questions)
    for config, each in measured.items():
        for scopes in families:
            scores += _gap_records(config, scopes, each, counts, confidence)
        scores += _share_records(config, answered[config])
    by_scope = {
        (METRIC, scope): {config: each.over(places) for config, each in measured.items()}
        for scopes in families[:-1]
        for scope, places in scopes.items()
    }
    return gap_records.scores_record(
        run_id, options, scores, by_scope, main=METRIC, threshold=threshold, confidence=confidence
    )


def _families(questions: Sequence[VisualQuestion]) -> list[dict[str, list[int]]]:
    """Which questions each scope holds; scopes that are tested together stand together, single questions last."""
    families: list[dict[str, list[int]]] = [{"all": list(range(len(questions)))}]
    for name in ("topic", "polarity"):
        scopes: dict[str, list[int]] = {}
        for place, question in enumerate(questions):
            if value := getattr(question, name):
                scopes.setdefault(f"{name}:{value}", []).append(place)
        if scopes:
            families.append(scopes)
    return [*families, {f"prompt:{question.id}": [place] for place, question in enumerate(questions)}]


def _gap_records(
    config: str, scopes: Mapping[str, Sequence[int]], measured: Gaps, counts: dict[str, int], confidence: float
) -> list[ScoreRecord]:
    found = {scope: measured.over(places) for scope, places in scopes.items()}
    tested = [each.p_value for each in found.values() if each.p_value is not None]
    adjusted = iter(holm(tested) if len(tested) > 1 else [None] * len(tested))
    records = []
    for scope, gap in found.items():
        low, high = gap.ends(confidence)
        known: dict[str, Any] = {"config": config, "scope": scope, "counts": counts if scope == "all" else {}}
        p = gap.p_value
        records.append(
            ScoreRecord(
                metric=METRIC,
                value=gap.value,
                ci_low=low,
                ci_high=high,
                p_value=p,
                p_adjusted=None if p is None else next(adjusted),
                **known,
            )
        )
        if not scope.startswith("prompt:"):
            records.append(ScoreRecord(metric="mean_abs_ygap", value=measured.absolute(scopes[scope]), **known))
    return records


def _share_records(config: str, answered: Answered) -> list[ScoreRecord]:
    """Whether the model keeps to the format: share of answers per option, and probability on none of them."""
    shares = {f"answered_{name.lower()}": share for name, share in answered.shares.items()}
    counts = {"without_probabilities": answered.without}
    records = [
        ScoreRecord(metric=metric, config=config, value=value, counts=counts)
        for metric, value in {**shares, "answered_no_option": answered.no_option}.items()
    ]
    reason = None
    if answered.outside is None:
        none = answered.without == answered.yes.size
        reason = f"{answered.without} answers without probabilities" if none else "shares of options alone"
    return [
        *records,
        ScoreRecord(metric="outside", config=config, value=answered.outside, counts=counts, reason=reason),
    ]

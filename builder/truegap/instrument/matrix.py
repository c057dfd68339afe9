"""Readers x perturbations: does each perturbation move its own reader, and is what else it moves predicted?"""

from __future__ import annotations

from collections.abc import Mapping

from truegap.instrument.evidence import Evidence
from truegap.instrument.plan import CONTEXT, SINGLE, STRONG
from truegap.instrument.records import Line, Row, number
from truegap.schema import Feature, Strength

PREDICTION_MARGIN = 0.005
"""Beyond the interval: an answerer's p(Yes) is linear in a reading only to rounding and re-encoding."""
LEAK_TOLERANCE = 0.2
LEFT_TOLERANCE = 0.1
_TINY = 1e-6


def _rows(evidence: Evidence) -> list[Row]:
    rows: list[Row] = []
    for reader in SINGLE:
        run, dual = evidence.answers(reader), evidence.runs[evidence.strongest, "reads", reader]
        for config in STRONG:
            found, ranked = run.change(config), dual.change(config)
            row: Row = {"reader": reader, "config": config, "abs_change": found.abs_change}
            row |= {"low": found.signed_low, "high": found.signed_high, "signed_change": found.signed_change}
            row |= {"predicted": evidence.change(reader, config), "max_skew_abs_change": ranked.abs_change}
            rows.append(row)
    return rows


def prediction(evidence: Evidence) -> Line:
    """Every cell of the matrix is what the rendering predicts."""
    rows = _rows(evidence)
    worst, beyond = max(rows, key=_error), max(rows, key=_beyond)
    return Line(
        key="prediction",
        claim="Every change, own or leaked, is the one that the rendering predicts.",
        tolerance=f"prediction in the interval of the signed change of YGap, or at most {PREDICTION_MARGIN} outside",
        holds=_beyond(beyond) <= PREDICTION_MARGIN,
        found=f"The largest difference is {_error(worst):.3f} ({worst['reader']} under {worst['config']}); no "
        f"prediction is further than {max(_beyond(beyond), 0):.4f} outside of its interval.",
        rows=rows,
    )


def _error(row: Row) -> float:
    return abs(number(row, "signed_change") - number(row, "predicted"))


def _beyond(row: Row) -> float:
    """How far the prediction is outside of the interval; below 0 inside."""
    predicted = number(row, "predicted")
    return max(number(row, "low") - predicted, predicted - number(row, "high"))


def diagonal(evidence: Evidence) -> Line:
    """A perturbation moves the reader of its own feature, and hardly any other."""
    rows = _rows(evidence)
    own = {
        feature: next(
            max(number(row, "abs_change"), _TINY)
            for row in rows
            if row["reader"] == feature and row["config"] == f"{feature}-strong"
        )
        for feature in CONTEXT
    }
    found: list[Row] = []
    for row in rows:
        feature = str(row["config"]).removesuffix("-strong")
        if row["reader"] != feature:
            share = number(row, "abs_change") / own[feature]
            leak: Row = {"reader": row["reader"], "config": row["config"], "share_of_own": share}
            found.append(leak | {"predicted": abs(number(row, "predicted")) / own[feature]})
    over = [row for row in found if number(row, "share_of_own") > LEAK_TOLERANCE]
    told = "; ".join(
        f"{row['config']} moves the reader of the {row['reader']} {number(row, 'share_of_own'):.2f} times as far as "
        f"its own (predicted {number(row, 'predicted'):.2f})"
        for row in over
    )
    return Line(
        key="diagonal",
        claim="The diagonal dominates: a perturbation moves the reader of its own feature, and hardly any other.",
        tolerance=f"off the diagonal at most {LEAK_TOLERANCE:g} of the change of the own reader",
        holds=not over,
        found=(told[:1].upper() + told[1:] + ".") if told else "No other reader moves by more than that.",
        rows=found,
    )


def left(evidence: Evidence) -> Line:
    """What a perturbation leaves of each feature, at every strength."""
    rows: list[Row] = []
    for feature in Feature:
        for strength in Strength:
            config = f"{feature}-{strength}"
            for reader in SINGLE:
                run = evidence.answers(reader)
                row: Row = {"config": config, "reader": reader, "left": run.bias(config) / run.bias()}
                predicted = evidence.gap(reader, config) / evidence.gap(reader, "original")
                rows.append(row | {"predicted": predicted, "own": "yes" if reader == feature else "no"})
    own = {
        str(row["reader"]): number(row, "left")
        for row in rows
        if row["own"] == "yes" and str(row["config"]).endswith("strong")
    }
    stays = {name: share for name, share in own.items() if abs(share) > LEFT_TOLERANCE}
    blurred = {str(row["reader"]): number(row, "left") for row in rows if row["config"] == "background-strong"}
    return Line(
        key="left",
        claim="The strong perturbation of a feature leaves none of the gap that the feature makes.",
        tolerance=f"at most {LEFT_TOLERANCE:.0%} of the gap is left",
        holds=not stays,
        found=_said(stays, blurred),
        rows=rows,
    )


def _said(stays: Mapping[str, float], blurred: Mapping[str, float]) -> str:
    told = [f"the {name} perturbation leaves {share:.0%} of the gap of its reader" for name, share in stays.items()]
    seen = (
        f"In a blurred background {blurred['color']:.0%} of the gap from its color is left, and "
        f"{blurred['lighting']:.0%} of that from its brightness."
    )
    return (f"At its strongest, {'; '.join(told)}. " if told else "") + seen

"""Bias and change against rho: do both grow with what was planted, and does nothing else move?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from truegap.instrument.evidence import Evidence
from truegap.instrument.plan import CONTEXT, SINGLE
from truegap.instrument.records import Line, Row, number

BIAS_TOLERANCE = 0.02
STEP_TOLERANCE = 0.02
FLOOR_TOLERANCE = 0.005
RATIO_TOLERANCE = 10.0
"""In points of delta, a percentage."""


def bias(evidence: Evidence) -> Line:
    """The bias of a reader is what was planted, and grows with rho."""
    rows: list[Row] = []
    for reader in SINGLE:
        for rho in evidence.profile.rhos:
            run, dual = evidence.answers(reader, rho), evidence.runs[rho, "reads", reader]
            score = run.score()
            planted = evidence.gap(reader, "original", rho)
            row: Row = {"reader": reader, "rho": rho, "ygap": score.value, "low": score.ci_low, "high": score.ci_high}
            rows.append(row | {"planted": planted, "max_skew_beyond_chance": dual.bias()})
    off = max(abs(number(row, "ygap") - number(row, "planted")) for row in rows)
    grows = all(_grows([number(row, "ygap") for row in rows if row["reader"] == reader]) for reader in CONTEXT)
    return Line(
        key="bias",
        claim="The bias of a reader is the planted one, and that of a context reader grows with rho.",
        tolerance=f"YGap within {BIAS_TOLERANCE} of the planted one; no step down in rho of more than {STEP_TOLERANCE}",
        holds=off <= BIAS_TOLERANCE and grows,
        found=f"YGap is at most {off:.3f} from the planted one, over {len(rows)} readers and correlations.",
        rows=rows,
    )


def change(evidence: Evidence) -> Line:
    """The absolute change under the own perturbation grows with rho; the ratio stays, where there is a bias."""
    rows: list[Row] = []
    for reader in CONTEXT:
        for rho in evidence.profile.rhos:
            found = evidence.answers(reader, rho).change(f"{reader}-strong")
            row: Row = {"reader": reader, "rho": rho, "abs_change": found.abs_change, "delta": found.delta}
            rows.append(row | {"predicted": abs(evidence.change(reader, f"{reader}-strong", rho))})
    grown = [[number(row, "abs_change") for row in rows if row["reader"] == reader] for reader in CONTEXT]
    least = min(each[-1] - each[0] for each in grown)
    spread = {reader: _spread([row for row in rows if row["reader"] == reader]) for reader in CONTEXT}
    widest = max(spread, key=lambda reader: spread[reader])
    return Line(
        key="change",
        claim="The absolute change under the perturbation of what is read grows with rho; where there is a bias (rho "
        "above 0) the ratio delta stays, since bias and change grow alike.",
        tolerance=f"no step down in rho of more than {STEP_TOLERANCE}; from first to last, up by more than that; delta "
        f"of a reader over at most {RATIO_TOLERANCE:g} points for all rho above 0",
        holds=all(map(_grows, grown)) and least > STEP_TOLERANCE and spread[widest] <= RATIO_TOLERANCE,
        found=f"From rho {evidence.profile.rhos[0]:g} to {evidence.strongest:g} it grows by {least:.3f} or more; delta "
        f"differs by up to {spread[widest]:.1f} points ({widest}) where rho is above 0.",
        rows=rows,
    )


def untouched(evidence: Evidence) -> Line:
    """Blurring the background or blacking out objects does not move a reader of the person."""
    runs = {rho: evidence.answers("person", rho) for rho in evidence.profile.rhos}
    rows: list[Row] = [
        {
            "rho": rho,
            "config": config,
            "abs_change": run.change(config).abs_change,
            "floor": run.change("control").abs_change,
        }
        for rho, run in runs.items()
        for config in ("object-strong", "background-strong")
    ]
    most = max(number(row, "abs_change") - number(row, "floor") for row in rows)
    return Line(
        key="person",
        claim="What reads the person alone stays within the noise floor when objects or background are perturbed, at "
        "every rho.",
        tolerance=f"absolute change of YGap at most {FLOOR_TOLERANCE} above that of the control",
        holds=most <= FLOOR_TOLERANCE,
        found=f"It moves by at most {max(most, 0):.4f} more than re-encoding moves it.",
        rows=rows,
    )


def _spread(rows: Sequence[Row]) -> float:
    """Of delta over rho above 0: without a bias it is a ratio of two accidents."""
    known = [number(row, "delta") for row in rows if number(row, "rho") > 0 and row["delta"] is not None]
    return max(known, default=0.0) - min(known, default=0.0)


def _grows(values: Sequence[float]) -> bool:
    return all(after >= before - STEP_TOLERANCE for before, after in pairwise(values))

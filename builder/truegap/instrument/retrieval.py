"""Rankings under perturbations: does MaxSkew see that what a reader lives on is gone?"""

from __future__ import annotations

from truegap.instrument.evidence import Evidence
from truegap.instrument.plan import CONTEXT, SINGLE, STRONG
from truegap.instrument.records import Line, Row, number

LEAK_TOLERANCE = 0.2
_TINY = 1e-6


def moves(evidence: Evidence) -> Line:
    """MaxSkew of a dual encoder moves where its own feature is perturbed, and hardly anywhere else."""
    rows = _rows(evidence)
    own = {str(row["reader"]): row for row in rows if row["config"] == f"{row['reader']}-strong"}
    still = [name for name, row in own.items() if not _moves(row)]
    over = [(row, share) for row in rows if (share := _share(row, own)) > LEAK_TOLERANCE]
    return Line(
        key="retrieval",
        claim="MaxSkew moves under the strong perturbation of what is read further than under the controls; the "
        "diagonal dominates.",
        tolerance="absolute change above that of control-hsv, 0 outside the interval of the paired difference from the "
        f"perturbation's control; off the diagonal at most {LEAK_TOLERANCE:g} of the change of the own reader",
        holds=not still and not over,
        found=_said(own, still, [(str(row["reader"]), str(row["config"]), share) for row, share in over]),
        rows=rows,
    )


def _rows(evidence: Evidence) -> list[Row]:
    rows: list[Row] = []
    for reader in SINGLE:
        run = evidence.runs[evidence.strongest, "reads", reader]
        before, control = run.score(), run.change("control-hsv")
        for config in STRONG:
            after, beyond = run.score(config), run.contrast(config)
            row: Row = {"reader": reader, "config": config, "original": before.value, "perturbed": after.value}
            row |= {"random_ranking": before.null, "abs_change": run.change(config).abs_change}
            row |= {"control_hsv_change": control.abs_change}
            rows.append(row | {"beyond_low": beyond.difference_low, "beyond_high": beyond.difference_high})
    return rows


def _moves(row: Row) -> bool:
    seen = row["beyond_low"] is not None and not number(row, "beyond_low") <= 0 <= number(row, "beyond_high")
    return seen and number(row, "abs_change") > number(row, "control_hsv_change")


def _share(row: Row, own: dict[str, Row]) -> float:
    """Of the change of the config's own reader; nothing for that reader itself."""
    feature = str(row["config"]).removesuffix("-strong")
    if row["reader"] == feature:
        return 0.0
    return number(row, "abs_change") / max(number(own[feature], "abs_change"), _TINY)


def _said(own: dict[str, Row], still: list[str], over: list[tuple[str, str, float]]) -> str:
    from_to = ", ".join(
        f"{number(own[name], 'original'):.3f} to {number(own[name], 'perturbed'):.3f} ({name})" for name in CONTEXT
    )
    told = f"Under the own perturbation it goes from {from_to}."
    if still:
        told += f" Not told from the controls: {', '.join(still)}."
    if over:
        leaks = "; ".join(f"the reader of the {reader} {share:.2f} times ({config})" for reader, config, share in over)
        told += f" A perturbation moves another reader than its own further than allowed: {leaks} as far as its own."
    return told

"""Audit of the printed tables of Xiao et al. (2024), GenderBias-VL, from what is printed alone."""

from __future__ import annotations

from collections.abc import Iterator

from truegap.results.audit_finding import Cell, Finding, Verdict, cell, tally
from truegap.results.audit_rounding import printed
from truegap.results.published import XIAO, rows

CONTEXTS = ("vl", "v", "l")
SCORES = ("ipss", "b_ovl", "b_max", "acc", "delta_acc")
DECIMALS = 2


def findings() -> Iterator[Finding]:
    """Every finding that needs no file of the user's."""
    yield _ipss()
    yield _repeated()
    for key, figure in (
        ("genderbias-vl-table-1", "Table 1: Ipss, B_ovl, B_max, Acc, delta Acc of 15 models in three contexts"),
        ("genderbias-vl-outcome", "outcome difference in the V context"),
    ):
        found = "means over pairs do not give each other; --genderbias-vl DIR recomputes them from the authors' files"
        claim = "225 numbers" if key.endswith("1") else "20 numbers"
        yield Finding(key, XIAO, figure, claim, found, Verdict.OPEN)


def _ipss() -> Finding:
    """Ipss is accuracy less what bias takes from it, so never above the accuracy."""
    cells = []
    for row in rows("genderbias_vl"):
        for context in CONTEXTS:
            ipss, acc = (printed(row[f"{context}_{name}"], DECIMALS) for name in ("ipss", "acc"))
            verdict = Verdict.FOLLOWS if ipss.low <= acc.high else Verdict.FAILS
            text = f"{row[f'{context}_ipss']}, {row[f'{context}_acc']}"
            cells.append(Cell(f"{row['model']}, {context.upper()}", text, None, None, None, verdict))
    return tally("genderbias-vl-ipss", XIAO, "Ipss in Table 1", "at most Acc", cells)


def _repeated() -> Finding:
    """The accuracy under outcome difference is the same answers' accuracy as in Table 1."""
    accuracy = {row["model"]: row["v_acc"] for row in rows("genderbias_vl")}
    cells = [
        cell(
            row["model"], row["acc"], DECIMALS, printed(accuracy[row["model"]], DECIMALS), float(accuracy[row["model"]])
        )
        for row in rows("genderbias_vl_outcome_v")
        if row["model"] in accuracy
    ]
    return tally("genderbias-vl-acc", XIAO, "Acc beside the outcome difference", "that of Table 1, V context", cells)

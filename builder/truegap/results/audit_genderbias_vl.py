"""Audit of the printed tables of Xiao et al. (2024), GenderBias-VL, from what is printed alone."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from truegap.results.audit_finding import Cell, Finding, Verdict, cell, tally
from truegap.results.audit_rounding import Range, printed
from truegap.results.published import XIAO, rows

CONTEXTS = ("vl", "v", "l")
SCORES = ("ipss", "b_ovl", "b_max", "acc", "delta_acc")
DECIMALS = 2
TABLE, OUTCOME = "genderbias_vl", "genderbias_vl_outcome_v"
REPOSITORY = "the authors' result files"

_LARGEST_KOSMOS = "1.37"
"""Largest |B_pair| of Kosmos-2, VL, in the authors' file (the last of its pairs, B_pair -1.37)."""


def findings(repository: bool = False) -> Iterator[Finding]:
    """Every finding that needs no file of the user's.

    Args:
        repository: The authors' files are at hand: what they settle is left to them.
    """
    yield _ipss()
    yield _accuracies()
    yield _repeated()
    if not repository:
        yield _b_max()
        yield from _open()


def _open() -> Iterator[Finding]:
    asked = "--genderbias-vl DIR recomputes"
    averages = "means over pairs do not give each other"
    accuracy = next(row["vl_acc"] for row in rows(TABLE) if row["model"] == "InternLM-XC2")
    for key, figure, claim, found, sources in (
        (
            "table-1",
            "Table 1: Ipss, B_ovl, B_max, Acc, delta Acc of 15 models in three contexts",
            "225 numbers",
            f"{averages}; {asked} them from the authors' files",
            (TABLE,),
        ),
        (
            "internlm-acc",
            "Acc of InternLM-XC2, VL, in Table 1",
            accuracy,
            f"the number is from the authors' files, not from the print; {asked} it",
            (TABLE, REPOSITORY),
        ),
        (
            "outcome",
            "outcome difference in the V context",
            "20 numbers",
            f"{averages}; {asked} them from the authors' files",
            (OUTCOME,),
        ),
    ):
        yield Finding(f"genderbias-vl-{key}", XIAO, figure, claim, found, Verdict.OPEN, sources)


def _ipss() -> Finding:
    """Ipss is accuracy less what bias takes from it, so never above the accuracy."""
    cells = []
    for row in rows(TABLE):
        for context in CONTEXTS:
            ipss, acc = (printed(row[f"{context}_{name}"], DECIMALS) for name in ("ipss", "acc"))
            verdict = Verdict.FOLLOWS if ipss.low <= acc.high else Verdict.FAILS
            text = f"{row[f'{context}_ipss']}, {row[f'{context}_acc']}"
            cells.append(Cell(f"{row['model']}, {context.upper()}", text, None, None, None, verdict))
    return tally("genderbias-vl-ipss", XIAO, "Ipss in Table 1", "at most Acc", cells, sources=(TABLE,))


def _accuracies() -> Finding:
    """Two accuracies in [0, 100] that differ by d have a mean of at least d / 2 and at most 100 - d / 2."""
    cells = []
    for row in rows(TABLE):
        for context in CONTEXTS:
            half = printed(row[f"{context}_delta_acc"], DECIMALS).times(Fraction(1, 2))
            possible = Range(half.low, 100 - half.low)
            cells.append(cell(f"{row['model']}, {context.upper()}", row[f"{context}_acc"], DECIMALS, possible))
    figure, claim = "Acc beside delta Acc in Table 1", "within what two orders that differ so can average to"
    return tally("genderbias-vl-orders", XIAO, figure, claim, cells, sources=(TABLE,))


def _b_max() -> Finding:
    """The words say the largest absolute value; for one model it is known to be another number."""
    text = next(row["vl_b_max"] for row in rows(TABLE) if row["model"] == "Kosmos-2")
    largest = Fraction(_LARGEST_KOSMOS)
    found = cell("Kosmos-2, VL, b_max", text, DECIMALS, Range(largest, largest))
    return Finding(
        "genderbias-vl-b-max",
        XIAO,
        "B_max of Kosmos-2, VL, in Table 1",
        f"{text}, in words the largest |B_pair|",
        f"{_LARGEST_KOSMOS} in the authors' file; {text} is the largest signed value in it",
        found.verdict,
        (TABLE, REPOSITORY),
        (found,),
        note="--genderbias-vl DIR recomputes it, and that of the others",
    )


def _repeated() -> Finding:
    """The accuracy under outcome difference is the same answers' accuracy as in Table 1."""
    accuracy = {row["model"]: row["v_acc"] for row in rows(TABLE)}
    cells = [
        cell(
            row["model"], row["acc"], DECIMALS, printed(accuracy[row["model"]], DECIMALS), float(accuracy[row["model"]])
        )
        for row in rows(OUTCOME)
        if row["model"] in accuracy
    ]
    figure, claim = "Acc beside the outcome difference", "that of Table 1, V context"
    return tally("genderbias-vl-acc", XIAO, figure, claim, cells, sources=(OUTCOME, TABLE))

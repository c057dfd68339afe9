"""Two rows side by side, with a paired test where both have what it needs."""

from __future__ import annotations

from dataclasses import dataclass, field

from truegap.errors import UserError
from truegap.leaderboard.details import Details, compare
from truegap.leaderboard.site.sheet import Cell, Column, Sheet
from truegap.leaderboard.site.shelf import Row
from truegap.leaderboard.site.view import FEATURES, View
from truegap.results.show import interval, number, percent, signed
from truegap.results.show import short as rounded


@dataclass(frozen=True, slots=True)
class ComparePage:
    """What the page shows.

    Attributes:
        first: One row, once it is chosen.
        second: The other.
        sheet: Both, number by number.
        test: What the paired test says.
        no_test: Why there is none.
        rivals: Rows that can be chosen.
    """

    first: Row | None
    second: Row | None
    sheet: Sheet | None = None
    test: str = ""
    no_test: str = ""
    rivals: list[Row] = field(default_factory=list)


def sheet_of(first: Row, second: Row, view: View) -> Sheet:
    """Two rows, number by number."""

    def cell(row: Row, name: str) -> Cell:
        value = row[name]
        if name == "parameters":
            return Cell(rounded(value) if value else "-", (value,))
        if name in ("bias", "mean_delta"):
            show = number if name == "bias" else percent
            ends = interval(row[f"{name}_low"], row[f"{name}_high"], show)
            return Cell("-" if value is None else f"{show(value)} {ends}".rstrip(), (value,))
        if name in ("rank", "delta_rank"):
            return Cell("-" if value is None else str(value), (value,))
        if isinstance(value, float):
            return Cell(number(value) if name == "null" else percent(value), (value,))
        return Cell("-" if value is None else str(value), (value,))

    lines = [[Cell(label, (label,)), cell(first, name), cell(second, name)] for name, label in _LINES.items()]
    columns = [
        Column("", "what is compared", ("what",), number=False),
        Column(first["model"], "", ("first",)),
        Column(second["model"], "", ("second",)),
    ]
    return Sheet("compared", "Two models side by side", columns, [("", lines)], csv=view.query(csv="compared"))


_LINES = {
    "model": "Model",
    "board": "Board",
    "kind": "Source",
    "model_kind": "Type",
    "parameters": "Size",
    "rank": "Rank",
    "bias": "Bias",
    "null": "Blind",
    "delta_rank": "Rank by Δ",
    "mean_delta": "Mean Δ %",
    **{name: f"Δ of {name.removeprefix('delta_')} %" for name in FEATURES},
    "floor": "Floor %",
    "floor_hsv": "HSV floor %",
}


def tested(first: Row, second: Row, details: tuple[Details | None, Details | None]) -> tuple[str, str]:
    """What the paired test says, and where there is none, why.

    The same resampled images are behind both scores, so what both models find hard takes nothing from it.
    """
    if first["key"] == second["key"]:
        return "", "choose two different rows"
    if first["question"] != second["question"]:
        return "", "the two rows are not on the same board: they answered different questions"
    if "published" in (first["kind"], second["kind"]):
        return "", "papers print no answers image by image, so nothing can be resampled"
    try:
        found, sizes = compare(*details, (first["bias"], second["bias"]))
    except UserError as error:
        return "", str(error)
    if not found.clear:
        verdict = "The interval holds 0: which of the two is more biased is not clear."
    elif not sizes.clear:
        verdict = "The scores differ, but not clearly in their size: neither is clearly less biased."
    else:
        less = first if abs(first["bias"]) < abs(second["bias"]) else second
        verdict = f"{less['model']} is clearly less biased."
    ends = interval(found.ci_low, found.ci_high, signed)
    said = f"Difference {signed(found.value)} {ends}, p = {found.p_value:.3f}, on the same resampled images."
    return f"{said} {verdict}", ""

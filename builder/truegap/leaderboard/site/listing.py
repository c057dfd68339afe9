"""The table of models: filtered, sorted within each board, and shown a part at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from truegap.figures.labels import blind, metric_label
from truegap.leaderboard.site.sheet import Cell, Column, Sheet, heat
from truegap.leaderboard.site.shelf import Row, Rows, short
from truegap.leaderboard.site.view import FEATURES, SIZES, View
from truegap.results.show import interval, number, percent
from truegap.results.show import short as rounded
from truegap.schema import Feature

PART = 50
"""Rows of one part."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What the table page shows.

    Attributes:
        sheet: The rows of this part.
        found: How many rows the filters leave.
        held: How many there are.
        start: How many of the found lie before this part.
    """

    sheet: Sheet
    found: int
    held: int
    start: int

    @property
    def last(self) -> int:
        """The number of the last row shown."""
        return min(self.start + PART, self.found)


def chosen(rows: Iterable[Row], view: View) -> list[Row]:
    """The rows that a view's search and filters leave."""
    words = view.q.lower().split()
    sizes = [SIZES[name] for name in view.size]

    def holds(row: Row) -> bool:
        return (
            (not view.board or row["board"] == view.board)
            and (not view.benchmark or row["benchmark"] == view.benchmark)
            and (not view.protocol or row["protocol"] == view.protocol)
            and (not view.kind or row["kind"] in view.kind)
            and (not view.type or row["model_kind"] in view.type)
            and (not sizes or any(_is_of_size(row["parameters"], *each) for each in sizes))
            and all(word in row["words"] for word in words)
        )

    return [row for row in rows if holds(row)]


def _is_of_size(parameters: int | None, low: float, high: float) -> bool:
    return low <= parameters < high if parameters and high else not parameters and not high


def ordered(rows: Iterable[Row], view: View, boards: Iterable[str]) -> list[Row]:
    """Board by board, and within each by what the view asks for; what has no value comes last either way.

    Rows that are equal in it stay in the order in which they come.

    Bias and mean delta go by rank first: rows that their intervals do not separate stand together as a tie.
    """
    place = {board: number for number, board in enumerate(boards)}
    key, descending = _KEYS[view.sort], bool(view.desc)
    within = sorted(rows, key=lambda row: key(row) or (), reverse=descending)
    return sorted(within, key=lambda row: (place[row["board"]], key(row) is None))


def _by(name: str) -> Callable[[Row], Any]:
    return lambda row: None if row[name] is None else (row[name],)


def _ranked(name: str, rank: str) -> Callable[[Row], Any]:
    """Rank first; rows of the papers, which have none, by value after all ranked ones."""
    return lambda row: (
        None if row[name] is None else (row[rank] is None, row[rank] if row[rank] is not None else 0, abs(row[name]))
    )


_KEYS: dict[str, Callable[[Row], Any]] = {
    "bias": _ranked("bias", "rank"),
    "mean_delta": _ranked("mean_delta", "delta_rank"),
    **{name: _by(name) for name in (*FEATURES, "floor", "floor_hsv", "submitted")},
    "size": lambda row: (row["parameters"],) if row["parameters"] else None,
    "model": lambda row: (row["model"].lower(),),
}


def listing(rows: Rows, view: View, *, whole: bool = False) -> Listing:
    """What the table page shows; all rows in one part if `whole`."""
    found = ordered(chosen(rows.every, view), view, rows.boards)
    start = 0 if whole else min(view.start, max(len(found) - 1, 0)) // PART * PART
    shown = found if whole else found[start : start + PART]
    hottest = max((row[name] or 0.0 for row in shown for name in FEATURES), default=0.0)
    groups: dict[str, list[list[Cell]]] = {}
    for row in shown:
        cells = [_rank(row, view), _model(row), *(_CELLS[name](row, hottest) for name in view.show)]
        groups.setdefault(row["board"], []).append(cells)
    columns = [_column(name, view) for name in ("rank", "model", *view.show)]
    sheet = Sheet("rows", "Models", columns, list(groups.items()), csv=view.query(csv="rows"), head=1)
    return Listing(sheet, len(found), len(rows.every), start)


def _rank(row: Row, view: View) -> Cell:
    by = "delta" if view.sort == "mean_delta" else ""
    place, tied = (row["delta_rank"], row["delta_tied"]) if by else (row["rank"], row["tied"])
    if place is None:
        return Cell("-", (None,), title="no interval, so no rank")
    if tied > 1:
        return Cell(f"{place}=", (place,), title=f"shared by {tied}: their intervals do not separate them")
    return Cell(str(place), (place,))


def _model(row: Row) -> Cell:
    return Cell(row["model"], (row["model"],), link=View(tab="model", model=short(row["key"])).query())


def _bias(row: Row, _: float) -> Cell:
    ends = (row["bias_low"], row["bias_high"])
    text = f"{number(row['bias'])} {interval(*ends)}".rstrip()
    return Cell(text, (row["bias"], *ends), title=metric_label(row["metric"]))


def _mean_delta(row: Row, _: float) -> Cell:
    ends = (row["mean_delta_low"], row["mean_delta_high"])
    text = "-" if row["mean_delta"] is None else f"{percent(row['mean_delta'])} {interval(*ends, percent)}".rstrip()
    return Cell(text, (row["mean_delta"], *ends))


def _percent(name: str, *, warm: bool = False) -> Callable[[Row, float], Cell]:
    def cell(row: Row, hottest: float) -> Cell:
        value = row[name]
        return Cell("-" if value is None else percent(value), (value,), heat=heat(value, hottest) if warm else 0)

    return cell


_CELLS: dict[str, Callable[[Row, float], Cell]] = {
    "kind": lambda row, _: Cell(row["kind"], (row["kind"],), badge=True),
    "type": lambda row, _: Cell(row["model_kind"], (row["model_kind"],)),
    "size": lambda row, _: Cell(rounded(row["parameters"]) if row["parameters"] else "-", (row["parameters"],)),
    "bias": _bias,
    "null": lambda row, _: Cell(blind(row["metric"], row["null"]), (row["null"],)),
    "mean_delta": _mean_delta,
    **{name: _percent(name, warm=True) for name in FEATURES},
    "floor": _percent("floor"),
    "floor_hsv": _percent("floor_hsv"),
    "submitted": lambda row, _: Cell((row["submitted"] or "-")[:10], (row["submitted"],)),
    "source": lambda row, _: Cell(row["source"] or "-", (row["source"],)),
}
LABELS = {
    "rank": ("Rank", "1 plus the rows of the same board that are clearly less biased; = marks a tie"),
    "model": ("Model", "name; it leads to the model's page"),
    "kind": ("Source", "verified: run by the leaderboard; community, local: sent by others; published: from a paper"),
    "type": ("Type", "how the model answers"),
    "size": ("Size", "number of parameters"),
    "bias": ("Bias", "main score on unchanged images, with its 95 % interval"),
    "null": ("Blind", "what a model that knows nothing of gender is expected to get"),
    "mean_delta": ("Mean Δ %", "how far the perturbations move the bias, with its 95 % interval"),
    **{f"delta_{each}": (f"{each.value.capitalize()} %", f"mean Δ of {each.value}") for each in Feature},
    "floor": ("Floor %", "Δ of re-encoding alone: the noise floor of object and background"),
    "floor_hsv": ("HSV floor %", "Δ of an HSV round trip: the noise floor of color and lighting"),
    "submitted": ("Submitted", "day on which the row was added"),
    "source": ("Paper", "which paper prints the row"),
}
_WORDS = ("model", "kind", "type", "submitted", "source")
_NAMES = {
    "bias": ("bias", "bias_low", "bias_high"),
    "mean_delta": ("mean_delta", "mean_delta_low", "mean_delta_high"),
}
_SORT = {"rank": "bias"} | {name: name for name in _KEYS}


def _column(name: str, view: View) -> Column:
    label, title = LABELS[name]
    sort = _SORT.get(name, "")
    if name == "rank" and view.sort == "mean_delta":
        label, sort = "Rank by Δ", "mean_delta"
    now = sort == view.sort and name != "rank"
    return Column(
        label=label,
        title=title,
        names=_NAMES.get(name, (name,)),
        number=name not in _WORDS,
        link=view.query(sort=sort, desc="1" if now and not view.desc else "", start=0) if sort else "",
        sorted=("descending" if view.desc else "ascending") if now else "",
    )

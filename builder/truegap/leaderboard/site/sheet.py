"""A table for readers: shown as HTML by a template, or given as CSV that no spreadsheet takes for formulas."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from io import StringIO

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", *map(chr, (0xFF1D, 0xFF0B, 0xFF0D, 0xFF20)))
"""How a cell begins that a spreadsheet may take for a formula, full-width forms too."""
_ENDS = str.maketrans(";\t\r\n\v\f", ",     ")
_HEATS = 10


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell.

    Attributes:
        text: What is shown.
        value: What the CSV holds: several columns' worth where the cell shows a value with its interval.
        link: Where it leads; empty for nowhere.
        title: What is said when it is pointed at.
        heat: 0 to 10, the share of the warmest.
        badge: Whether it is one word of a few.
    """

    text: str
    value: tuple[object, ...] = ()
    link: str = ""
    title: str = ""
    heat: int = 0
    badge: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        label: Its head.
        title: What it holds.
        names: Heads in the CSV, one for each of its cells' values.
        number: Whether it holds numbers, which stand to the right.
        link: Where its head leads, to sort by it.
        sorted: `ascending`, `descending` or empty.
    """

    label: str
    title: str = ""
    names: tuple[str, ...] = ()
    number: bool = True
    link: str = ""
    sorted: str = ""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table, its rows in groups.

    Attributes:
        name: For its file and its element.
        caption: What it shows.
        columns: From left to right; the second is the head of each row where there is a rank, else the first.
        groups: Each with a heading, which may be empty, and its rows.
        csv: Where its CSV is; empty for none.
        head: Which column names the row.
    """

    name: str
    caption: str
    columns: list[Column]
    groups: list[tuple[str, list[list[Cell]]]] = field(default_factory=list)
    csv: str = ""
    head: int = 0


def heat(value: float | None, hottest: float) -> int:
    """The share of the warmest, in tenths.

    >>> heat(5.0, 10.0), heat(None, 10.0), heat(20.0, 10.0)
    (5, 0, 10)
    """
    return round(_HEATS * min(max(value / hottest, 0.0), 1.0)) if value and hottest > 0 else 0


def to_csv(sheet: Sheet) -> str:
    """The sheet as CSV, numbers in full; the heading of a group is its first column where there are several."""
    held = StringIO()
    writer = csv.writer(held)
    grouped = any(heading for heading, _ in sheet.groups)
    writer.writerow([*(["board"] if grouped else []), *(name for each in sheet.columns for name in each.names)])
    for heading, rows in sheet.groups:
        for row in rows:
            values = [value for cell in row for value in cell.value]
            writer.writerow([guarded(value) for value in ([heading, *values] if grouped else values)])
    return held.getvalue()


def guarded(value: object) -> object:
    r"""A cell of a CSV: text that a spreadsheet would take for a formula gets a quote before it.

    What some spreadsheets take for the end of a cell, a semicolon, a tab or the end of a line, is replaced.

    >>> guarded("=1+1"), guarded("  @x"), guarded("clip"), guarded(-0.5), guarded(None)
    ("'=1+1", "'  @x", 'clip', -0.5, '')
    >>> guarded("fine;=1+1"), guarded("fine\t=1+1")
    ('fine,=1+1', 'fine =1+1')
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    text = value.translate(_ENDS)
    return f"'{text}" if (value.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA)) else text

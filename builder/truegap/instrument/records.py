"""What a check of the instrument found: typed, so that a program may read it."""

from __future__ import annotations

from typing import Final, Literal

from truegap.results.records import Environment, Record

FORMAT_VERSION: Final = 1

Cell = str | float | None
Row = dict[str, Cell]


def number(row: Row, name: str) -> float:
    """A figure of a row, which is known."""
    value = row[name]
    assert isinstance(value, (int, float))
    return float(value)


class Line(Record):
    """One thing that must come out where the truth is planted, and whether it does."""

    key: str
    """Short name, such as `matrix`."""
    claim: str
    """What must come out."""
    tolerance: str
    """How far from it still counts."""
    holds: bool | None
    """None where it was not measured."""
    found: str
    """What came out, in a sentence."""
    rows: list[Row]
    """The figures behind it; every row has the same keys."""


class Check(Record):
    """All lines, and what they were measured on."""

    format_version: Literal[1] = FORMAT_VERSION
    profile: str
    seed: int
    images: int
    """Per benchmark."""
    rhos: list[float]
    seconds: float
    """Of the command that finished the check; what an earlier one had finished is not in it."""
    environment: Environment
    lines: list[Line]

    @property
    def failing(self) -> list[Line]:
        """The lines that do not hold."""
        return [line for line in self.lines if line.holds is False]

    @property
    def holding(self) -> list[Line]:
        """The lines that hold; what was not measured is in neither list."""
        return [line for line in self.lines if line.holds]

"""What an audit says of one published figure or claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from truegap.results.audit_rounding import Range, printed
from truegap.results.published import Paper


class Verdict(StrEnum):
    """Whether a figure follows from what is printed beside it."""

    FOLLOWS = "follows"
    FAILS = "does not follow"
    OPEN = "cannot be checked"


@dataclass(frozen=True, slots=True)
class Cell:
    """One printed number.

    Attributes:
        where: Which one.
        printed: As printed.
        value: What comes out of the other printed numbers; None where nothing does.
        low: The least that it can be, given their rounding.
        high: The most.
        verdict: Whether the printed number is among what it can be.
    """

    where: str
    printed: str
    value: float | None
    low: float | None
    high: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Finding:
    """One figure, or one claim over many.

    Attributes:
        key: Stable name.
        paper: Where it is printed.
        figure: What is checked.
        printed: What the paper prints.
        found: What comes out.
        verdict: Follows only where every cell does.
        sources: The published tables that were used (`truegap.results.published`), or files of the user's.
        cells: Every number that was checked.
        note: What explains it; may be empty.
    """

    key: str
    paper: Paper
    figure: str
    printed: str
    found: str
    verdict: Verdict
    sources: tuple[str, ...]
    cells: tuple[Cell, ...] = ()
    note: str = ""

    @property
    def failing(self) -> tuple[Cell, ...]:
        """The cells that do not follow."""
        return tuple(cell for cell in self.cells if cell.verdict is Verdict.FAILS)


def cell(
    where: str, text: str, decimals: int, possible: Range | None, value: float | None = None, *, roundings: int = 1
) -> Cell:
    """Compares a printed number with what it can be.

    Args:
        where: Which number.
        text: As printed.
        decimals: Digits after the point that are printed.
        possible: What comes out, with its rounding; None where nothing does.
        value: What comes out of the printed numbers as they stand; None for the middle of `possible`.
        roundings: How often it was rounded to so many digits on its way.
    """
    if possible is None:
        return Cell(where, text, None, None, None, Verdict.OPEN)
    verdict = Verdict.FOLLOWS if possible.meets(printed(text, decimals, roundings=roundings)) else Verdict.FAILS
    middle = possible.middle if value is None else value
    return Cell(where, text, middle, float(possible.low), float(possible.high), verdict)


def tally(
    key: str,
    paper: Paper,
    figure: str,
    claim: str,
    cells: Sequence[Cell],
    *,
    sources: tuple[str, ...],
    found: str = "",
    note: str = "",
) -> Finding:
    """A finding over cells: it follows where all of them do, and cannot be checked where none can be."""
    counts = {verdict: sum(each.verdict is verdict for each in cells) for verdict in Verdict}
    verdict = Verdict.FAILS if counts[Verdict.FAILS] else Verdict.FOLLOWS
    if counts[Verdict.OPEN] == len(cells):
        verdict = Verdict.OPEN
    said = f"{counts[Verdict.FOLLOWS]} of {len(cells)} follow"
    if counts[Verdict.OPEN]:
        said += f", {counts[Verdict.OPEN]} cannot be checked"
    said = f"{said}; {found}" if found else said
    return Finding(key, paper, figure, claim, said, verdict, sources, tuple(cells), note)

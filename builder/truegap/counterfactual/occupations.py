"""Occupations and the share of women in them, from a table such as that of the Bureau of Labor Statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from truegap.errors import UserError
from truegap.files.tables import rows
from truegap.files.values import is_plain, number, shown
from truegap.schema import Gender

HALF = 50.0
"""Per cent of women from which an occupation is female-dominated; exactly half counts as such (Xiao et al. 2024)."""

_NAMES = ("occupation", "name")
_SHARES = ("women", "women_percent", "percent_women")
_MEANINGFUL = ("|", "(A)", "(B)")


@dataclass(frozen=True, slots=True)
class Occupation:
    """An occupation.

    >>> Occupation("Actor", 50.0).dominated_by, Occupation("Pilot", 9.2).dominated_by
    ('woman', 'man')

    Attributes:
        name: As questions and prompts call it, such as `Flight attendant`.
        women: Share of women in per cent, 0 to 100.
    """

    name: str
    women: float

    @property
    def dominated_by(self) -> Gender:
        """The gender of at least half of those who have it."""
        return "woman" if self.women >= HALF else "man"


def read_occupations(path: Path) -> tuple[list[Occupation], Counter[str]]:
    """Reads a table of occupations.

    Args:
        path: CSV with a column `occupation` (or `name`) and a column `women` (or `women_percent`), in any case.

    Returns:
        The occupations in the file's order, and how many rows were left out, by reason.

    Raises:
        UserError: The file is no such table, or a name or share in it cannot be used.
    """
    left_out: Counter[str] = Counter()
    found: dict[str, Occupation] = {}
    for row in rows(path, []):
        columns = {column.lower(): column for column in row}
        name, women = (row[_column(path, columns, which)] for which in (_NAMES, _SHARES))
        if name in found:
            raise UserError(f"{path}: {row.where}: occupation {name!r} stands twice; keep one row")
        check_name(name, f"{path}: {row.where}")
        share = number(women)
        if share is None:
            left_out["occupation left out: no share of women"] += 1
            continue
        if not 0 <= share <= 100:  # noqa: PLR2004
            raise UserError(f"{path}: {row.where}: {name}: {share:g} % women; give a number from 0 to 100")
        found[name] = Occupation(name, share)
    if not found:
        raise UserError(f"{path}: no occupation with a share of women; each row is a name and a number")
    return list(found.values()), left_out


def check_name(name: str, where: str) -> None:
    """Refuses a name that cannot stand in a question and in a file name.

    Raises:
        UserError: It is empty or too long, or holds a slash, a colon, `|`, `(A)` or `(B)`.
    """
    if not is_plain(name) or len(name) > 120 or any(mark in name for mark in _MEANINGFUL):  # noqa: PLR2004
        raise UserError(
            f"{where}: occupation {shown(name)!r} cannot stand in a question and a file name; "
            "write 1 to 120 characters without slash, colon, |, (A) and (B)"
        )


def check_folders(names: Iterable[str]) -> None:
    """Refuses occupations whose images would lie in one folder, such as `Tax clerk` and `Tax_clerk`.

    Raises:
        UserError: There are two of the kind.
    """
    taken: dict[str, str] = {}
    for name in names:
        if (other := taken.setdefault(slug(name), name)) != name:
            raise UserError(f"occupations {other!r} and {name!r} would share a folder; rename one of them")


def slug(name: str) -> str:
    """An occupation as file names have it.

    >>> slug("Chief executive")
    'Chief_executive'
    """
    return name.replace(" ", "_")


def _column(path: Path, columns: Mapping[str, str], names: tuple[str, ...]) -> str:
    for name in names:
        if name in columns:
            return columns[name]
    found = ", ".join(columns)[:120]
    raise UserError(f"{path}: lacks a column {' or '.join(names)} (found: {found!r}); is it the right file?")

"""What an occupation is called with a woman and with a man: a small table that users may replace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from truegap.counterfactual.occupations import check_name
from truegap.errors import UserError
from truegap.files.tables import rows
from truegap.schema import GENDERS, Gender

DEFAULT = Path(__file__).with_name("gendered_names.csv")
"""`Waiter` is `Waitress` with a woman: the one rule of Xiao et al. 2024."""

GenderedNames = Mapping[str, Mapping[str, str]]
"""By occupation, what it is called by gender."""

WORDS: Mapping[Gender, str] = {"woman": "female", "man": "male"}
"""As questions, prompts and the authors' files write genders."""
OTHER: Mapping[Gender, Gender] = {"woman": "man", "man": "woman"}


def read_names(path: Path = DEFAULT) -> dict[str, dict[str, str]]:
    """Reads a table of gendered names.

    >>> read_names()
    {'Waiter': {'woman': 'Waitress', 'man': 'Waiter'}}

    Args:
        path: CSV with the columns `occupation`, `woman` and `man`; an empty cell leaves the name as it is.

    Raises:
        UserError: The file is no such table, or an occupation stands twice.
    """
    found: dict[str, dict[str, str]] = {}
    for row in rows(path, ["occupation", *GENDERS]):
        name = row["occupation"]
        for each in (name, *(row[gender] or name for gender in GENDERS)):
            check_name(each, f"{path}: {row.where}")
        if name in found:
            raise UserError(f"{path}: {row.where}: occupation {name!r} stands twice; keep one row")
        found[name] = {gender: row[gender] or name for gender in GENDERS}
    return found


def called(occupation: str, gender: Gender, names: GenderedNames) -> str:
    """What an occupation is called with a woman or a man.

    >>> called("Waiter", "woman", read_names()), called("Pilot", "woman", read_names())
    ('Waitress', 'Pilot')
    """
    return names.get(occupation, {}).get(gender, occupation)

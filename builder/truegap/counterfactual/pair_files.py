"""Tables of pairs, with the columns of the authors' `occ_merge_filter_sim.csv`."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path

import numpy as np

from truegap.counterfactual.files import write_text
from truegap.counterfactual.occupations import Occupation, check_name
from truegap.counterfactual.pairs import Pair, combined
from truegap.errors import UserError
from truegap.files.tables import Row, rows
from truegap.files.values import number

FILE = "occ_merge_filter_sim.csv"
"""What the table of pairs is called in a folder that `genderbias-vl` reads."""

_NAMES = ("job_male", "job_female")
_MODALITIES = ("img_similarity", "text_similarity")
_SHARES = ("job_male_ratio", "job_female_ratio")
_COLUMNS = (*_NAMES, "similarity", *_MODALITIES, *_SHARES)


def read_pairs(path: Path, occupations: Sequence[Occupation] = ()) -> list[Pair]:
    """Reads a table of pairs or of similarities made elsewhere.

    Args:
        path: CSV with `job_male`, `job_female`, `img_similarity`, `text_similarity`; `similarity` is taken where it is
            there, else it is computed from the two.
        occupations: Where the shares of women come from; without it, from `job_male_ratio` and `job_female_ratio`.

    Raises:
        UserError: The file is no such table, an occupation is unknown, or a pair is not of a male-dominated and a
            female-dominated occupation.
    """
    known = {each.name: each for each in occupations}
    found: dict[tuple[str, str], tuple[Occupation, Occupation, float | None, float, float]] = {}
    for row in rows(path, [*_NAMES, *_MODALITIES, *(() if occupations else _SHARES)]):
        where = f"{path}: {row.where}"
        male, female = (
            _occupation(row, name, share, known, where) for name, share in zip(_NAMES, _SHARES, strict=True)
        )
        if (male.dominated_by, female.dominated_by) != ("man", "woman"):
            raise UserError(
                f"{where}: {male.name} ({male.women:g} % women) and {female.name} ({female.women:g} %) are not a "
                "male-dominated and a female-dominated occupation, in this order"
            )
        if (male.name, female.name) in found:
            raise UserError(f"{where}: the pair {male.name}, {female.name} stands twice; keep one row")
        image, text = (_similarity(row, column, where) for column in _MODALITIES)
        both = _similarity(row, "similarity", where) if row.get("similarity") else None
        found[male.name, female.name] = (male, female, both, image, text)
    if not found:
        raise UserError(f"{path}: no pair of occupations; each row is one")
    return _completed(path, list(found.values()))


def read_known(path: Path) -> list[tuple[str, str]]:
    """Reads a list of known pairs.

    Args:
        path: CSV with the columns `job_male` and `job_female`; others are left aside.

    Raises:
        UserError: The file is no such table.
    """
    return [(row["job_male"], row["job_female"]) for row in rows(path, _NAMES)]


def write_pairs(path: Path, pairs: Iterable[Pair]) -> None:
    """Writes a table that `read_pairs` and `genderbias-vl` read."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for each in pairs:
        shares = (each.male.women, each.female.women)
        writer.writerow([*each.names, each.similarity, each.image_similarity, each.text_similarity, *shares])
    write_text(path, text.getvalue())


def _completed(path: Path, rows_: list[tuple[Occupation, Occupation, float | None, float, float]]) -> list[Pair]:
    given = [both for *_, both, _, _ in rows_ if both is not None]
    if 0 < len(given) < len(rows_):
        raise UserError(f"{path}: similarity is there for {len(given)} of {len(rows_)} pairs; give it for all or none")
    try:
        similarities = given or combined([row[3] for row in rows_], [row[4] for row in rows_]).tolist()
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    return [
        Pair(male, female, similarity, image, text)
        for (male, female, _, image, text), similarity in zip(rows_, similarities, strict=True)
    ]


def _occupation(row: Row, name: str, share: str, known: dict[str, Occupation], where: str) -> Occupation:
    if known:
        if row[name] not in known:
            raise UserError(f"{where}: {name} {row[name]!r} is not in the table of occupations; mend one of the two")
        return known[row[name]]
    check_name(row[name], where)
    women = number(row[share])
    if women is None or not 0 <= women <= 100:  # noqa: PLR2004
        raise UserError(f"{where}: {share} is not a number from 0 to 100")
    return Occupation(row[name], women)


def _similarity(row: Row, column: str, where: str) -> float:
    value = number(row[column])
    if value is None or not np.isfinite(value):
        raise UserError(f"{where}: {column} is not a number")
    return value

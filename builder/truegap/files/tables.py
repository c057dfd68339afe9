"""Tables as archives hold them (CSV, TSV, words apart by blanks), row by row, with the line in every error."""

from __future__ import annotations

import csv
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any

from truegap.errors import UserError
from truegap.files.text import opened


class Row(dict[str, str]):
    """The cells of a row by column, stripped; a row that ends early has empty cells.

    Attributes:
        where: File name and line, for messages.
    """

    __slots__ = ("where",)

    def __init__(self, cells: Any, where: str) -> None:
        super().__init__(cells)
        self.where = where


def rows(
    path: Path,
    required: Sequence[str],
    *,
    delimiter: str = ",",
    header: Sequence[str] = (),
    only: tuple[str, Container[str]] | None = None,
) -> Iterator[Row]:
    """The rows of a table whose first line names its columns.

    Args:
        path: A file in UTF-8.
        required: Columns that it must have; others are passed on too.
        delimiter: What stands between cells.
        header: Names of the columns where the file has no such line.
        only: A required column and the cells that are wanted there. The tables of Open Images have millions of rows.

    Raises:
        UserError: The file is absent, not text in UTF-8, not a table, or lacks a column.
    """
    lines = cells(path, delimiter)
    columns = list(header) or [name.strip() for name in next(lines, (0, []))[1]]
    if missing := [name for name in required if name not in columns]:
        found = ", ".join(columns[:8])[:120] or "nothing"
        raise UserError(f"{path}: lacks the column {', '.join(missing)} (found: {found!r}); is it the right file?")
    if twice := sorted({name for name in columns if name and columns.count(name) > 1}):
        raise UserError(f"{path}: the column {', '.join(twice)} stands twice; name each column once")
    blank = [""] * len(columns)
    place, wanted = (columns.index(only[0]), only[1]) if only else (0, None)
    for line, values in lines:
        if wanted is not None and (len(values) <= place or values[place].strip() not in wanted):
            continue
        if values:
            stripped = [value.strip() for value in values]
            yield Row(zip(columns, stripped + blank[len(stripped) :], strict=False), f"{path.name} line {line}")


def cells(path: Path, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every row of a table, its header too.

    Raises:
        UserError: The file is absent, not text in UTF-8, or not a table.
    """
    line = 0
    try:
        with opened(path, "a table", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter)
            for values in reader:
                line = reader.line_num
                yield line, values
    except csv.Error as error:
        raise UserError(f"{path}: not a table: {error} (after line {line})") from None


def words(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and words of every line that is not blank.

    Raises:
        UserError: The file is absent or not text in UTF-8.
    """
    with opened(path, "a table") as file:
        for line, text in enumerate(file, start=1):
            if parts := text.split():
                yield line, parts


def one_file(name: str, folder: Path, patterns: Sequence[str], what: str) -> Path:
    """The one file of an archive that fits the first pattern that any file fits.

    Args:
        name: Of the source, for the message.
        folder: Where the archive is.
        patterns: As `Path.glob` takes them, the likeliest first.
        what: What is looked for, for the message.

    Raises:
        UserError: There is none, or several fit.
    """
    if found := maybe_file(name, folder, patterns, what):
        return found
    raise UserError(f"{name}: {folder} holds no {what}; expected {' or '.join(patterns)}")


def maybe_file(name: str, folder: Path, patterns: Sequence[str], what: str) -> Path | None:
    """As `one_file`, but None if there is none."""
    for pattern in patterns:
        found = sorted(path for path in folder.glob(pattern) if path.is_file())
        if len(found) > 1:
            names = ", ".join(path.name for path in found[:4])
            raise UserError(f"{name}: {folder} holds several files of {what}: {names}; keep one")
        if found:
            return found[0]
    return None

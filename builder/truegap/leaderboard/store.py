"""Rows on disk: one JSON file each, and the table made of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from truegap.errors import UserError
from truegap.files.atomic import written_aside
from truegap.leaderboard.row import Row
from truegap.leaderboard.table import schema, table
from truegap.results.runs import read_record, write_record

if TYPE_CHECKING:
    import pyarrow as pa

RESULTS = "results"
TABLE = "table.parquet"
_LOCK = ".lock"
_LARGEST = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a submission.

    Attributes:
        row: The row that the store holds now.
        path: Its file.
        added: False where the store held it already.
        differs: Whether it was held with other numbers, which stay.
    """

    row: Row
    path: Path
    added: bool
    differs: bool = False


@dataclass(frozen=True, slots=True)
class Contents:
    """What a store holds.

    Attributes:
        rows: Every readable row.
        broken: Why a file is not read, by its name: malformed, too large, or not named after its row.
    """

    rows: list[Row] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)


def default_store() -> Path:
    """`$TRUEGAP_STORE`, else `truegap/leaderboard` in the user's data folder (`$XDG_DATA_HOME`)."""
    if chosen := os.environ.get("TRUEGAP_STORE"):
        return Path(chosen).expanduser()
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data).expanduser() / "truegap" / "leaderboard"


class LocalStore:
    """A store in a folder: `results/<key>.json`, one file per row, and `table.parquet`, made anew after each change.

    Any number of processes may submit at the same time: a lock lets one write after the other.
    """

    def __init__(self, folder: Path) -> None:
        """Names the folder; it is made when a row is first submitted."""
        self.folder = folder
        self.results = folder / RESULTS
        self.path = folder / TABLE

    def submit(self, row: Row) -> Receipt:
        """Adds a row. The same model on the same question is one row, however often it is submitted: the first stays.

        Raises:
            UserError: The folder cannot be written, or the row's file is there and broken.
        """
        path = self.results / f"{row.key}.json"
        with self._locked():
            if path.exists():
                held = read_record(path, Row)
                receipt = Receipt(held, path, added=False, differs=not row.says_the_same(held))
            else:
                write_record(path, row)
                receipt = Receipt(row, path, added=True)
            # Also for a row that is there already: a writer killed between the two left a table without it.
            self._prepare()
        return receipt

    def refresh(self) -> Contents:
        """Makes the table anew from the rows' files, for changes that were made by hand.

        Raises:
            UserError: The folder cannot be written.
        """
        with self._locked():
            return self._prepare()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        from filelock import FileLock

        try:
            self.results.mkdir(parents=True, exist_ok=True)
            with FileLock(self.folder / _LOCK):
                yield
        except OSError as error:
            reason = f"the store {self.folder} cannot be written: {error.strerror}; choose another --store"
            raise UserError(reason) from None

    def read(self) -> Contents:
        """Every row, and every file that is not one: a broken file hides no other."""
        contents = Contents()
        for path in sorted(self.results.glob("*.json")):
            reason = self._read(path, contents)
            if reason:
                contents.broken[path.name] = reason
        return contents

    def _read(self, path: Path, contents: Contents) -> str:
        """Adds one file's row; else the reason why not."""
        if not path.is_file() or path.is_symlink():
            return "not a plain file"
        if path.stat().st_size > _LARGEST:
            return f"larger than {_LARGEST} bytes"
        try:
            row = read_record(path, Row)
        except UserError as error:
            return str(error)
        if path.stem != row.key:
            return "its name is not the key of the row in it"
        contents.rows.append(row)
        return ""

    def table(self) -> pa.Table:
        """The prepared table, as `truegap.leaderboard.table` describes it; empty where nothing was submitted.

        Raises:
            UserError: The file is broken.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not self.path.is_file():
            return schema().empty_table()
        try:
            found = pq.read_table(self.path)
        except (OSError, pa.ArrowException) as error:
            raise UserError(f"{self.path} cannot be read ({error}): remove it and submit again") from None
        if found.schema.names != schema().names:
            raise UserError(f"{self.path} is of another version: remove it and submit again")
        return found

    def _prepare(self) -> Contents:
        import pyarrow.parquet as pq

        contents = self.read()
        with written_aside(self.path) as aside:
            pq.write_table(table(contents.rows), aside)
        return contents

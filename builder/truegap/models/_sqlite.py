"""An SQLite file that outlives any kill and that several processes share: the part that is the same for all caches."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from truegap.errors import UserError
from truegap.resources import cache_folder

TIMEOUT = 120.0  # seconds to wait for another process's commit
SCHEMA = 1


class SqliteFile:
    """One table in a file. A subclass names the file, what it holds, and the table.

    Use one object per thread; several processes may share the file, on a local disk (SQLite's write-ahead log does not
    work over a network).
    """

    FILE: ClassVar[str]
    """Name of the file in `cache_folder()`."""
    HOLDS: ClassVar[str]
    """What is computed again where the file is deleted, such as `embeddings`."""
    NAME: ClassVar[str]
    """What error messages call it."""
    TABLE: ClassVar[str]
    """The statement that makes the table, where it is not there."""

    def __init__(self, path: Path | None = None) -> None:
        """Open or create the file.

        Args:
            path: By default `FILE` in `cache_folder()`.

        Raises:
            UserError: The file is damaged, of a newer version, or cannot be written.
        """
        self.path = path or cache_folder() / self.FILE
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{self.NAME} {self.path}: {error}; set TRUEGAP_CACHE to a folder of yours") from error
        with self._readable_errors():
            self._db = sqlite3.connect(self.path, timeout=TIMEOUT, isolation_level=None)
            try:
                self._prepare()
            except BaseException:
                self._db.close()
                raise

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _prepare(self) -> None:
        """Make the table, or check that it is ours."""
        self._db.execute("PRAGMA synchronous = NORMAL")  # a kill loses nothing; a power cut may lose the last batches
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version == SCHEMA:
            return
        if version:
            raise UserError(
                f"{self.NAME} {self.path}: version {version} is not {SCHEMA}; "
                "delete it, or set TRUEGAP_CACHE to another folder"
            )
        self._db.execute("PRAGMA journal_mode = WAL")
        with self._transaction():
            self._db.execute(self.TABLE)
            self._db.execute(f"PRAGMA user_version = {SCHEMA}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    @contextmanager
    def _readable_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:  # locked, read-only, disk full
            raise UserError(f"{self.NAME} {self.path}: {error}; set TRUEGAP_CACHE to another folder") from error
        except sqlite3.DatabaseError as error:
            raise self._damaged(str(error)) from error

    def _damaged(self, why: str) -> UserError:
        return UserError(f"{self.NAME} {self.path}: damaged ({why}); delete it, and {self.HOLDS} are computed again")


def digest_of(sha: str) -> bytes:
    """A SHA-256 as bytes.

    Raises:
        ValueError: It is none in hexadecimal.
    """
    try:
        return bytes.fromhex(sha)
    except ValueError as error:
        raise ValueError(f"{sha!r} is not a SHA-256 in hexadecimal") from error

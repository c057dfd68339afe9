"""A store in a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from truegap.errors import UserError
from truegap.files.atomic import write_bytes, written_aside
from truegap.leaderboard.request import Request
from truegap.leaderboard.row import Row
from truegap.leaderboard.store import Contents, Queue, Receipt
from truegap.leaderboard.stored import (
    LARGEST,
    LARGEST_DETAILS,
    LARGEST_SCORES,
    File,
    contents_of,
    parsed,
    queue_of,
    written,
)
from truegap.leaderboard.table import schema, table
from truegap.results.records import ScoresRecord
from truegap.results.runs import parse_record, write_record

if TYPE_CHECKING:
    import pyarrow as pa

RESULTS = "results"
SCORES = "scores"
DETAILS = "details"
REQUESTS = "requests"
LOGS = "logs"
TABLE = "table.parquet"
_LOCK = ".lock"


class LocalStore:
    """A `Store` in a folder, for any number of processes of one machine: a lock lets one write after the other.

    `results/<key>.json`, `scores/<key>.json` and `details/<key>.json`, one per row; `table.parquet`, made anew after
    each change; `requests/<key>.json` and `logs/<key>.txt`, one per request.
    """

    def __init__(self, folder: Path) -> None:
        """Names the folder; it is made when something is first written."""
        self.folder = folder
        self.results = folder / RESULTS
        self.path = folder / TABLE

    @property
    def where(self) -> str:
        """The folder."""
        return str(self.folder)

    def submit(self, row: Row, scores: ScoresRecord | None = None) -> Receipt:
        """See `Store.submit`."""
        path = self.results / f"{row.key}.json"
        with self._locked(self.results, self.folder / SCORES):
            held = parsed(_bytes(path), Row, path.name) if path.exists() else None
            if held is not None and not row.outranks(held):
                receipt = Receipt(held, path, added=False, differs=not row.says_the_same(held))
            else:
                if scores is not None:
                    write_record(self._scores(row.key), scores)
                write_bytes(path, written(row))
                receipt = Receipt(row, path, added=True)
            # Also for a row that is there already: a writer killed between the two left a table without it.
            self._prepare()
        return receipt

    def refresh(self) -> Contents:
        """See `Store.refresh`."""
        with self._locked(self.results):
            return self._prepare()

    def read(self) -> Contents:
        """See `Store.read`."""
        return contents_of(_files(self.results))

    def scores(self, key: str) -> ScoresRecord | None:
        """See `Store.scores`."""
        try:
            return parse_record(_bytes(self._scores(key), LARGEST_SCORES), ScoresRecord, key)
        except UserError:
            return None

    def details(self, key: str) -> str:
        """See `Store.details`."""
        try:
            return _bytes(self._details(key), LARGEST_DETAILS).decode(errors="replace")
        except UserError:
            return ""

    def put_details(self, key: str, text: str) -> None:
        """See `Store.put_details`."""
        path = self._details(key)
        with self._locked(path.parent):
            write_bytes(path, text.encode())

    def table(self) -> pa.Table:
        """See `Store.table`."""
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

    def queue(self) -> Queue:
        """See `Store.queue`."""
        return queue_of(_files(self.folder / REQUESTS))

    def requests(self) -> list[Request]:
        """See `Store.requests`."""
        return self.queue().requests

    def put_request(self, request: Request, expected: Request | None) -> bool:
        """See `Store.put_request`."""
        path = self.folder / REQUESTS / f"{request.key}.json"
        with self._locked(path.parent):
            held = parsed(_bytes(path), Request, path.name) if path.exists() else None
            if held != expected:
                return False
            write_bytes(path, written(request))
            return True

    def log(self, key: str) -> str:
        """See `Store.log`."""
        try:
            return _bytes(self._log(key)).decode(errors="replace")
        except UserError:
            return ""

    def put_log(self, key: str, text: str) -> None:
        """See `Store.put_log`."""
        path = self._log(key)
        with self._locked(path.parent):
            write_bytes(path, text.encode())

    def _scores(self, key: str) -> Path:
        return self.folder / SCORES / f"{Path(key).name}.json"

    def _details(self, key: str) -> Path:
        return self.folder / DETAILS / f"{Path(key).name}.json"

    def _log(self, key: str) -> Path:
        return self.folder / LOGS / f"{Path(key).name}.txt"

    @contextmanager
    def _locked(self, *folders: Path) -> Iterator[None]:
        from filelock import FileLock

        try:
            for folder in folders:
                folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self.folder / _LOCK):
                yield
        except OSError as error:
            reason = f"the store {self.folder} cannot be written: {error.strerror}; choose another --store"
            raise UserError(reason) from None

    def _prepare(self) -> Contents:
        import pyarrow.parquet as pq

        contents = self.read()
        with written_aside(self.path) as aside:
            pq.write_table(table(contents.rows), aside)
        return contents


def _files(folder: Path) -> Iterator[File]:
    for path in sorted(folder.glob("*.json")):
        reader: Callable[[], bytes] = partial(_bytes, path)
        yield path.name, reader


def _bytes(path: Path, largest: int = LARGEST) -> bytes:
    """The bytes of a plain file of believable size.

    Raises:
        UserError: It is none.
    """
    try:
        if not path.is_file() or path.is_symlink():
            raise UserError("not a plain file")
        if path.stat().st_size > largest:
            raise UserError(f"larger than {largest} bytes")
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None

"""A store in two dataset repositories on the Hub."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from truegap.errors import UserError
from truegap.hub.commit import AbsentError, MovedError, Repository
from truegap.hub.snapshots import is_repository
from truegap.hub.tree import Held
from truegap.leaderboard import stored
from truegap.leaderboard.local_store import DETAILS, LOGS, REQUESTS, RESULTS, SCORES, TABLE
from truegap.leaderboard.request import Request
from truegap.leaderboard.row import Row
from truegap.leaderboard.store import HUB, Contents, Queue, Receipt
from truegap.leaderboard.stored import LARGEST, LARGEST_DETAILS, LARGEST_SCORES, contents_of, parsed, queue_of, written
from truegap.leaderboard.table import schema, table
from truegap.results.records import ScoresRecord
from truegap.results.runs import parse_record

if TYPE_CHECKING:
    import pyarrow as pa

_TRIES = 60
"""How often a write begins again because somebody else wrote; the waits grow to some seconds."""
_LONGEST_WAIT = 4.0
_AT_ONCE = 8
"""Files that are brought at a time."""

Done = TypeVar("Done")


class HubStore:
    """A `Store` in the dataset repositories `ORG/results` and `ORG/requests`, for any number of machines.

    Every write is one commit on top of the one that was read; where another came between, it is read and tried again.
    The files are those of `LocalStore`: `results/`, `scores/`, `details/` and `table.parquet` in one repository,
    `requests/` and `logs/` in the other. Each repository is made when something is first written.
    """

    def __init__(self, organization: str) -> None:
        """Names the organisation or user.

        Raises:
            UserError: It is no such name.
        """
        if not is_repository(f"{organization}/x"):
            raise UserError(f"{HUB}{organization}: give {HUB}ORG, a user or organisation on the Hub")
        self.where = f"{HUB}{organization}"
        self._results = _Mirror(Repository(f"{organization}/results"))
        self._requests = _Mirror(Repository(f"{organization}/requests"))

    def submit(self, row: Row, scores: ScoresRecord | None = None) -> Receipt:
        """See `Store.submit`."""
        path = f"{RESULTS}/{row.key}.json"

        def change(head: str) -> tuple[Receipt, Mapping[str, bytes]]:
            data = self._results.repository.read(path, head, limit=LARGEST + 1)
            held = None if data is None else parsed(data, Row, path)
            if held is not None and not row.outranks(held):
                return Receipt(held, Path(path), added=False, differs=not row.says_the_same(held)), {}
            others = [each for each in self._contents(head).rows if each.key != row.key]
            files = {path: written(row), TABLE: _parquet([*others, row])}
            if scores is not None:
                files[f"{SCORES}/{row.key}.json"] = (scores.model_dump_json() + "\n").encode()
            return Receipt(row, Path(path), added=True), files

        return self._results.update(change, f"Add {row.key[:12]}")

    def refresh(self) -> Contents:
        """See `Store.refresh`."""

        def change(head: str) -> tuple[Contents, Mapping[str, bytes]]:
            contents = self._contents(head)
            made, held = _parquet(contents.rows), self._results.repository.read(TABLE, head, limit=LARGEST_SCORES)
            return contents, {} if made == held else {TABLE: made}

        return self._results.update(change, "Prepare the table")

    def read(self) -> Contents:
        """See `Store.read`."""
        head = self._results.head()
        return Contents() if head is None else self._contents(head)

    def scores(self, key: str) -> ScoresRecord | None:
        """See `Store.scores`."""
        data = self._results.read(f"{SCORES}/{Path(key).name}.json", LARGEST_SCORES)
        try:
            return None if data is None else parse_record(data, ScoresRecord, key)
        except UserError:
            return None

    def details(self, key: str) -> str:
        """See `Store.details`."""
        data = self._results.read(f"{DETAILS}/{Path(key).name}.json", LARGEST_DETAILS)
        return "" if data is None else data.decode(errors="replace")

    def put_details(self, key: str, text: str) -> None:
        """See `Store.put_details`."""
        path = f"{DETAILS}/{Path(key).name}.json"
        self._results.keep(path, text.encode(), f"Details of {key[:12]}")

    def table(self) -> pa.Table:
        """See `Store.table`."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        data = self._results.read(TABLE, LARGEST_SCORES)
        if data is None:
            return schema().empty_table()
        try:
            found = pq.read_table(BytesIO(data))
        except pa.ArrowException:
            found = None
        if found is None or found.schema.names != schema().names:
            raise UserError(f"{self.where}: {TABLE} is broken or of another version; `refresh` makes it anew")
        return found

    def queue(self) -> Queue:
        """See `Store.queue`."""
        head = self._requests.head()
        return Queue() if head is None else queue_of(self._requests.files(head, REQUESTS))

    def requests(self) -> list[Request]:
        """See `Store.requests`."""
        return self.queue().requests

    def put_request(self, request: Request, expected: Request | None) -> bool:
        """See `Store.put_request`."""
        path = f"{REQUESTS}/{request.key}.json"

        def change(head: str) -> tuple[bool, Mapping[str, bytes]]:
            data = self._requests.repository.read(path, head, limit=LARGEST + 1)
            held = None if data is None else parsed(data, Request, path)
            return (False, {}) if held != expected else (True, {path: written(request)})

        return self._requests.update(change, f"{request.state} {request.key[:12]}")

    def log(self, key: str) -> str:
        """See `Store.log`."""
        data = self._requests.read(f"{LOGS}/{Path(key).name}.txt", LARGEST)
        return "" if data is None else data.decode(errors="replace")

    def put_log(self, key: str, text: str) -> None:
        """See `Store.put_log`."""
        path = f"{LOGS}/{Path(key).name}.txt"
        self._requests.keep(path, text.encode(), f"Log of {key[:12]}")

    def _contents(self, head: str) -> Contents:
        return contents_of(self._results.files(head, RESULTS))


class _Mirror:
    """A repository, and the small files of it that were read: by their content, so that only news are brought."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self._blobs: dict[str, bytes] = {}
        self._listed: tuple[str, dict[str, Held]] = ("", {})

    def head(self) -> str | None:
        """The newest commit; None where there is no repository yet."""
        try:
            return self.repository.head()
        except AbsentError:
            return None

    def read(self, path: str, limit: int) -> bytes | None:
        """One file of the newest commit."""
        head = self.head()
        return None if head is None else self.repository.read(path, head, limit=limit)

    def files(self, head: str, folder: str) -> Iterator[stored.File]:
        """The JSON files of a folder; safe in threads, which may ask for different commits."""
        listed = self._listed
        if listed[0] != head:
            listed = self._listed = (head, self.repository.files(head))
        chosen = [
            (path, file)
            for path, file in sorted(listed[1].items())
            if path.startswith(f"{folder}/") and path.endswith(".json")
        ]
        blobs = {file.git_id: b"" for _, file in chosen if file.size <= LARGEST}
        held = self._blobs
        new = {file.git_id: path for path, file in chosen if file.git_id in blobs and file.git_id not in held}
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            brought = pool.map(lambda path: self.repository.read(path, head, limit=LARGEST) or b"", new.values())
            blobs |= {blob: held[blob] for blob in blobs.keys() & held.keys()} | dict(zip(new, brought, strict=True))
        self._blobs = blobs
        for path, file in chosen:
            reader: Callable[[], bytes] = partial(_blob, blobs, file)
            yield path, reader

    def keep(self, path: str, data: bytes, message: str) -> None:
        """Writes one file, in place of an earlier one; what is there already is no commit.

        Raises:
            UserError: As `update`.
        """

        def change(head: str) -> tuple[None, Mapping[str, bytes]]:
            held = self.repository.read(path, head, limit=len(data) + 1)
            return None, {} if held == data else {path: data}

        self.update(change, message)

    def update(self, change: Callable[[str], tuple[Done, Mapping[str, bytes]]], message: str) -> Done:
        """Reads, decides and commits, until nobody came between.

        Args:
            change: Given the newest commit: what to return, and the files to write; none where nothing is to be done.
            message: Of the commit.

        Raises:
            UserError: Others write all the time, or the Hub does not let this user write.
        """
        head = self.head()
        if head is None:
            self.repository.create()
        for attempt in range(_TRIES):
            head = self.repository.head()
            done, files = change(head)
            if not files:
                return done
            try:
                self.repository.commit(files, head, message)
            except MovedError:
                # Writers that met wait for different times.
                time.sleep(random.uniform(0, min(_LONGEST_WAIT, 0.05 * 2**attempt)))  # noqa: S311  # no secret
                continue
            return done
        raise UserError(f"{self.repository.name}: others wrote each of {_TRIES} times; try again later")


def _blob(blobs: Mapping[str, bytes], file: Held) -> bytes:
    if file.size > LARGEST:
        raise UserError(f"larger than {LARGEST} bytes")
    return blobs[file.git_id]


def _parquet(rows: Iterable[Row]) -> bytes:
    import pyarrow.parquet as pq

    held = BytesIO()
    pq.write_table(table(rows), held)
    return held.getvalue()

"""The rows that pages show: the store's prepared table and the papers', read once and kept until the store changes."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from truegap.errors import UserError
from truegap.hub.snapshots import is_repository
from truegap.leaderboard.details import Details, read_details
from truegap.leaderboard.local_store import REQUESTS, LocalStore
from truegap.leaderboard.published_rows import published_rows
from truegap.leaderboard.request import Request
from truegap.leaderboard.store import Store
from truegap.results.records import ScoresRecord

Row = dict[str, Any]
"""One row: by column of `truegap.leaderboard.table`."""
_SECONDS = 30.0
_BRIEF = 3.0
"""Seconds after which the queue page asks again."""
_MOST_KEPT = 128
_SHORT = 16
Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True)
class Rows:
    """Every row, and what the pages look up often.

    Attributes:
        every: Own rows and published ones, by name.
        by_key: By the beginning of their key.
        boards: Each board with its number of rows: those with own rows first, then with deltas,
            then the larger.
        papers: Boards of published rows.
        benchmarks: Names.
        protocols: Names.
    """

    every: tuple[Row, ...]
    by_key: dict[str, Row]
    boards: dict[str, int]
    papers: frozenset[str]
    benchmarks: tuple[str, ...]
    protocols: tuple[str, ...]

    def find(self, key: str) -> Row | None:
        """The row of a key, or of its first sixteen digits."""
        return self.by_key.get(key[:_SHORT])


def short(key: str) -> str:
    """How an address names a row.

    >>> short("0123456789abcdef" * 4)
    '0123456789abcdef'
    """
    return key[:_SHORT]


def gathered(own: list[Row]) -> Rows:
    """A store's rows, with the papers'."""
    every = tuple(
        row | {"model": _name(row), "words": f"{row['model']} {row['spec']}".lower()}
        for row in sorted((*own, *published_rows()), key=lambda each: (each["model"], each["key"]))
    )
    sizes, mine = Counter(row["board"] for row in every), {row["board"] for row in own}
    moved = {row["board"] for row in every if row["mean_delta"] is not None}
    boards = dict(
        sorted(sizes.items(), key=lambda each: (each[0] not in mine, each[0] not in moved, -each[1], each[0]))
    )
    return Rows(
        every=every,
        by_key={short(row["key"]): row for row in every},
        boards=boards,
        papers=frozenset(row["board"] for row in every if row["kind"] == "published"),
        benchmarks=tuple(sorted({row["benchmark"] for row in every})),
        protocols=tuple(sorted({row["protocol"] for row in every})),
    )


def _name(row: Row) -> str:
    """A model of the Hub by its whole id: several people's may have the same short name."""
    spec: str = row["spec"]
    return spec if is_repository(spec) else str(row["model"])


class Shelf:
    """The rows of a store, safe in threads: a folder's as new as its table, the Hub's not older than half a minute."""

    def __init__(self, store: Store) -> None:
        """Reads nothing yet."""
        self.store = store
        self._lock, self._reading = threading.Lock(), threading.Lock()
        self._stamp: object = None
        self._rows: Rows | None = None
        self._brief: OrderedDict[str, tuple[float, object, Any]] = OrderedDict()
        """By name: when it was read, what of the store, and what it was."""
        self._read: OrderedDict[tuple[str, str], tuple[object, Any]] = OrderedDict()

    def rows(self) -> Rows:
        """The rows as they are now.

        Raises:
            UserError: The store's table is broken, or cannot be read for the first time.
        """
        with self._lock:
            stamp = self._now()
            if self._rows is None or stamp != self._stamp:
                try:
                    self._rows = gathered(self.store.table().to_pylist())
                except (UserError, OSError):
                    # A Hub that fails for a while takes nothing away that was there.
                    if self._rows is None or isinstance(self.store, LocalStore):
                        raise
                self._stamp = stamp
            return self._rows

    def requests(self) -> list[Request]:
        """Every readable request, oldest first, however many look: a folder's as it is, the Hub's some seconds old."""
        stamp = _files(self.store.folder / REQUESTS) if isinstance(self.store, LocalStore) else None
        return self._briefly("", self.store.requests, stamp)

    def offer(self, run_id: str) -> str:
        """What became of the pull request with the numbers of a run; a page goes without where nobody can tell."""
        with suppress(UserError, OSError):
            return next((each.offer for each in self.requests() if each.run_id == run_id and each.offer), "")
        return ""

    def log(self, key: str) -> str:
        """What the last attempt at a request printed, likewise."""
        if isinstance(self.store, LocalStore):
            return self.store.log(key)
        return self._briefly(key, lambda: self.store.log(key))

    def _briefly(self, name: str, read: Callable[[], Kept], stamp: object = None) -> Kept:
        """What was read a few seconds ago, if the stamp is the same, or is read now; what was there if that fails."""
        with self._reading:
            moment, held = time.monotonic(), self._brief.get(name)
            if held is None or held[0] + _BRIEF <= moment or held[1] != stamp:
                try:
                    held = (moment, stamp, read())
                except (UserError, OSError):
                    if held is None:
                        raise
                    held = (moment, stamp, held[2])
                self._brief[name] = held
                self._brief.move_to_end(name)
                while len(self._brief) > _MOST_KEPT:
                    self._brief.popitem(last=False)
            found: Kept = held[2]
            return found

    def scores(self, key: str) -> ScoresRecord | None:
        """All that a row's run says, where that is known."""
        return self.kept(("scores", key), lambda: self.store.scores(key))

    def details(self, key: str) -> Details | None:
        """What a row's page shows beyond that."""
        return self.kept(("details", key), lambda: read_details(self.store, key))

    def kept(self, name: tuple[str, str], read: Callable[[], Kept | None]) -> Kept | None:
        """What was read or made lately; a newer table forgets it.

        Args:
            name: What it is.
            read: Reads or makes it; None is not kept.
        """
        stamp = self._now()
        with self._lock:
            held = self._read.get(name)
        if held is None or held[0] != stamp:
            held = (stamp, read())
        if held[1] is None:
            # Details come a little after their row: what is not there yet is looked for again.
            return None
        with self._lock:
            self._read[name] = held
            self._read.move_to_end(name)
            while len(self._read) > _MOST_KEPT:
                self._read.popitem(last=False)
        found: Kept = held[1]
        return found

    def _now(self) -> object:
        if not isinstance(self.store, LocalStore):
            return int(time.monotonic() / _SECONDS)
        try:
            found = self.store.path.stat()
        except OSError:
            return "absent"
        return (found.st_ino, found.st_mtime_ns, found.st_size)


def _files(folder: Path) -> object:
    """Another value whenever a file of a folder is written aside and renamed, as the store does it."""
    try:
        with os.scandir(folder) as found:
            return folder.stat().st_mtime_ns, frozenset((each.name, each.inode()) for each in found)
    except OSError:
        return None

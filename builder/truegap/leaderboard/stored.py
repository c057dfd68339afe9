"""From the files of a store to its rows and requests: whatever is wrong with one hides no other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import PurePosixPath
from typing import TypeVar

from truegap.errors import UserError
from truegap.leaderboard.request import Request
from truegap.leaderboard.row import Row
from truegap.leaderboard.store import Contents, Queue
from truegap.results.runs import parse_record

LARGEST = 1024 * 1024
"""Bytes of one row or request."""
LARGEST_SCORES = 32 * 1024 * 1024
LARGEST_DETAILS = 4 * 1024 * 1024

File = tuple[str, Callable[[], bytes]]
"""Its name, and what gives its bytes or raises a UserError."""

RecordT = TypeVar("RecordT", Row, Request)


def contents_of(files: Iterable[File]) -> Contents:
    """The rows among the files of `results/`."""
    contents = Contents()
    for name, read in files:
        try:
            contents.rows.append(parsed(read(), Row, name))
        except UserError as error:
            contents.broken[name] = str(error)
    return contents


def queue_of(files: Iterable[File]) -> Queue:
    """The requests among the files of `requests/`, oldest first."""
    queue = Queue()
    for name, read in files:
        try:
            queue.requests.append(parsed(read(), Request, name))
        except UserError as error:
            queue.broken[name] = str(error)
    queue.requests.sort(key=lambda each: (each.submitted, each.key))
    return queue


def parsed(data: bytes, kind: type[RecordT], name: str) -> RecordT:
    """The record of a file that is named after its key.

    Raises:
        UserError: It is broken, too large, or named otherwise.
    """
    if len(data) > LARGEST:
        raise UserError(f"larger than {LARGEST} bytes")
    record = parse_record(data, kind, name)
    if PurePosixPath(name).name != f"{record.key}.json":
        raise UserError(f"its name is not the key of the {kind.__name__.lower()} in it")
    return record


def written(record: Row | Request) -> bytes:
    """A record as its file holds it."""
    return (record.model_dump_json(indent=1) + "\n").encode()

"""A store: rows, the requests for more, and the table made of the rows. One face over a folder and the Hub."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from truegap.leaderboard.request import Request
from truegap.leaderboard.row import Row
from truegap.results.records import ScoresRecord

if TYPE_CHECKING:
    import pyarrow as pa

HUB = "hf://"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a submission.

    Attributes:
        row: The row that the store holds now.
        path: Its file; on the Hub, within the repository.
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


@dataclass(frozen=True, slots=True)
class Queue:
    """The requests of a store.

    Attributes:
        requests: Every readable one, oldest first.
        broken: Why a file is not read, by its name; none of these is ever run.
    """

    requests: list[Request] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)


class Store(Protocol):
    """Where rows and requests are kept; any number of processes may use one at a time, and none loses a write."""

    @property
    def where(self) -> str:
        """What `open_store` takes to open it again."""

    def submit(self, row: Row, scores: ScoresRecord | None = None) -> Receipt:
        """Adds a row: the same model on the same question is one row, and the first stays.

        Only a `verified` row takes the place of another, if that is not verified itself.

        Args:
            row: The row.
            scores: All that the run says, for the model's page.

        Raises:
            UserError: The store cannot be written, or the row's file is there and broken.
        """

    def read(self) -> Contents:
        """Every row, and every file that is not one: a broken file hides no other."""

    def scores(self, key: str) -> ScoresRecord | None:
        """All that the run of a row says; None where that was not submitted with it, or cannot be read."""

    def details(self, key: str) -> str:
        """What the page of a row shows beyond that, as `put_details` kept it; empty where there is nothing."""

    def put_details(self, key: str, text: str) -> None:
        """Keeps that, in place of an earlier one.

        Raises:
            UserError: The store cannot be written.
        """

    def table(self) -> pa.Table:
        """The prepared table, as `truegap.leaderboard.table` describes it; empty where nothing was submitted.

        Raises:
            UserError: The file is broken.
        """

    def refresh(self) -> Contents:
        """Makes the table anew from the rows, for changes that were made by hand.

        Raises:
            UserError: The store cannot be written.
        """

    def queue(self) -> Queue:
        """Every request, and every file that is not one."""

    def requests(self) -> list[Request]:
        """Every readable request, oldest first."""

    def put_request(self, request: Request, expected: Request | None) -> bool:
        """Writes a request if the store still holds what the caller last saw: compare and swap.

        Args:
            request: What to write.
            expected: What is there; None for nothing.

        Returns:
            Whether it was written; False where somebody else was faster.

        Raises:
            UserError: The store cannot be written.
        """

    def log(self, key: str) -> str:
        """What the last attempt at a request printed; empty where there is nothing."""

    def put_log(self, key: str, text: str) -> None:
        """Keeps that, in place of an earlier one.

        Raises:
            UserError: The store cannot be written.
        """

"""One row: a model's answer to one question."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any, Literal

from truegap.results.compare import question
from truegap.results.records import BenchmarkRecord, ModelRecord, Record, Summary
from truegap.results.runs import Run


class Row(Record):
    """A line of the leaderboard: who was asked what, and the few numbers that came out."""

    format_version: Literal[1] = 1
    kind: Literal["local"] = "local"
    """Where it comes from: `local`, a run on somebody's own machine."""
    submitted: str
    """UTC, ISO 8601."""
    run_id: str
    protocol: str
    options: dict[str, Any]
    configs: list[str]
    model: ModelRecord
    benchmark: BenchmarkRecord
    truegap: str
    """The version that computed the numbers."""
    summary: Summary

    @property
    def question(self) -> str:
        """What was asked, as a SHA-256: rows with the same one can be ranked against each other."""
        return question(self.benchmark.content, self.protocol, self.options, self.configs)

    @property
    def key(self) -> str:
        """The row's identity, as a SHA-256: this model, by its weights, on this question."""
        return hashlib.sha256(f"{self.model.content} {self.question}".encode()).hexdigest()

    def says_the_same(self, other: Row) -> bool:
        """Whether both give the same numbers."""
        return self.summary == other.summary


def row_of(run: Run, *, submitted: datetime | None = None) -> Row:
    """The row of a finished run.

    Args:
        run: The run.
        submitted: When; now by default.
    """
    record = run.record
    return Row(
        submitted=(submitted or datetime.now(UTC)).isoformat(timespec="seconds"),
        run_id=record.run_id,
        protocol=record.protocol,
        options=record.options,
        configs=record.configs,
        model=record.model,
        benchmark=record.benchmark,
        truegap=record.environment.truegap,
        summary=run.scores.summary,
    )

"""One row: a model's answer to one question."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import Field

from truegap.results.compare import question
from truegap.results.records import BenchmarkRecord, ModelRecord, Record, Summary
from truegap.results.runs import Run

Kind = Literal["local", "published", "community", "verified"]
Ends = tuple[float | None, float | None, float | None]
"""A score, and the lower and upper end of its interval."""


class Row(Record):
    """A line of the leaderboard: who was asked what, and the few numbers that came out."""

    format_version: Literal[1] = 1
    kind: Kind = "local"
    """Where it comes from: `local`, a run on the machine of the store; `community`, a run that somebody sent to a
    shared store; `verified`, a run of the store's own worker; `published`, a figure that a paper prints."""
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
    perturbed: dict[str, Ends] = Field(default_factory=dict)
    """By perturbed config: the main score there, and the ends of its interval."""
    request: str | None = None
    """Key of the request that it answers."""

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

    def outranks(self, other: Row) -> bool:
        """Whether it takes the other's place: only what the store's own worker found does, and nothing takes its."""
        return self.kind == "verified" and other.kind != "verified"


def row_of(
    run: Run,
    *,
    submitted: datetime | None = None,
    kind: Kind = "local",
    request: str | None = None,
    benchmark: str | None = None,
) -> Row:
    """The row of a finished run.

    Args:
        run: The run.
        submitted: When; now by default.
        kind: Where it comes from.
        request: Key of the request that it answers.
        benchmark: What its benchmark is called everywhere, where the run was told a folder of one machine.
    """
    record = run.record
    asked = record.benchmark if benchmark is None else record.benchmark.model_copy(update={"spec": benchmark})
    return Row(
        kind=kind,
        request=request,
        submitted=(submitted or datetime.now(UTC)).isoformat(timespec="seconds"),
        run_id=record.run_id,
        protocol=record.protocol,
        options=record.options,
        configs=record.configs,
        model=record.model,
        benchmark=asked,
        truegap=record.environment.truegap,
        summary=run.scores.summary,
        perturbed={
            each.config: (each.value, each.ci_low, each.ci_high)
            for each in run.scores.scores
            if (each.metric, each.scope) == (run.scores.summary.metric, "all") and each.config != "original"
        },
    )

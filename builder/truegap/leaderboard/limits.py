"""What a leaderboard takes, and how long its worker waits; the defaults suit a Space of 2 cores and 16 GB."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

DEFAULT_BENCHMARK = "synthetic@v1"
"""What a leaderboard offers that was told of no benchmark, see `truegap.leaderboard.default_benchmark`."""


def _offered() -> tuple[str, ...]:
    listed = os.environ.get("TRUEGAP_BENCHMARKS", "")
    return tuple(each.strip() for each in listed.split(",") if each.strip())


@dataclass(frozen=True, slots=True)
class Limits:
    """What is accepted, and how it is run.

    Attributes:
        benchmarks: Those that may be asked for, as folders, `ORG/NAME[@TAG]` or `synthetic@v1`; by default those of
            `$TRUEGAP_BENCHMARKS`, separated by commas. If empty, `synthetic@v1`, and on a machine of one's own any.
        folders: Whether a model may be a folder of this machine: only where the users are those of the machine.
        parameters: Of a model, at most.
        weight_bytes: Of its weight files together, at most.
        header_bytes: Of the headers of its weight files together, at most.
        requests_per_day: Of one user within 24 hours.
        waiting: Requests of one user that are not finished.
        again: Seconds until a request that failed may be made once more.
        attempts: How many workers may take a request before it fails.
        rest: Seconds that a request waits after an attempt, times the attempts so far.
        lease: Seconds for which a worker holds a request; it is renewed after a third of them.
        patience: Seconds by which the clocks of two workers may differ.
        writes: How often a worker tries to write a result to a store that is out of reach.
        pause: Seconds between two of these.
        seconds: For one evaluation.
        memory: Bytes of address space of one evaluation on a CPU; None for no limit.
        disk: Bytes of the largest file that an evaluation may write.
        log: Characters of a request's log.
    """

    benchmarks: tuple[str, ...] = field(default_factory=_offered)
    folders: bool = False
    parameters: int = 2_000_000_000
    weight_bytes: int = 8 * 1024**3
    header_bytes: int = 16 * 1024**2
    requests_per_day: int = 10
    waiting: int = 5
    again: float = 24 * 3600.0
    attempts: int = 3
    rest: float = 60.0
    lease: float = 900.0
    patience: float = 120.0
    writes: int = 40
    pause: float = 15.0
    seconds: float = 6 * 3600.0
    memory: int | None = 14 * 1024**3
    disk: int = 8 * 1024**3
    log: int = 100_000

    @property
    def offered(self) -> tuple[str, ...]:
        """The benchmarks that are named to who asks; on a machine of one's own, where none is set, any may be typed."""
        return self.benchmarks or (DEFAULT_BENCHMARK,)

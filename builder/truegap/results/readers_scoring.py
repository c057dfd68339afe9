"""The conventions by which answers are scored, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truegap.results.readers_table import Columns
from truegap.results.records import ChangeRecord, ScoreRecord

ORIGINAL = "original"

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Scoring:
    """The conventions; each is the option of that name of the functions in `truegap.scores`.

    `k` and `draws` are None for the defaults: of one set of images 1000 or a tenth, and five draws, as a run has them;
    where every query has its own images 5 and 10, and none. `aggregate` is of retrieval's deltas, over draws;
    `threshold` of YGap's: without a delta where |original| is below it.
    """

    k: tuple[int, ...] | None = None
    draws: int | None = None
    target: str = "uniform"
    empty: str = "clip"
    candidates: str = "three"
    ties: str = "wrong"
    round_intermediate: bool = False
    ipss: str = "per_order"
    b_max: str = "abs"
    difference: str = "probability"
    delta_acc: str = "pair"
    aggregate: str = "mean_of_ratios"
    threshold: float | None = 0.005
    n_resamples: int = 1000
    confidence: float = 0.95
    seed: int = 0

    def record(self, *names: str) -> dict[str, Any]:
        """Some of the conventions, with those of the intervals."""
        return {name: getattr(self, name) for name in (*names, "n_resamples", "confidence", "seed")}


@dataclass(slots=True)
class Scored:
    """What the answers say.

    Attributes:
        protocol: Which was scored.
        options: Every convention and its value.
        scores: Each score, by config and scope.
        changes: From the original config to each other one, where there are any.
        notes: What a reader must know.
    """

    protocol: str
    options: dict[str, Any]
    scores: list[ScoreRecord] = field(default_factory=list)
    changes: list[ChangeRecord] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def configs(table: Columns) -> dict[str, Ints]:
    """The rows of every config; one config where none is named."""
    if "config" not in table:
        return {ORIGINAL: np.arange(len(table))}
    found, names = table.codes("config")
    return {name: np.flatnonzero(found == code) for code, name in enumerate(names)}

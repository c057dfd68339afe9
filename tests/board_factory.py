"""A small leaderboard for tests of what shows it: two boards, one of them with a tie and a hostile name."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np

from run_factory import BACKGROUND_READER, HOSTILE, QUIET, run_record, scores_record
from truegap.leaderboard import LocalStore, Row, row_of
from truegap.leaderboard.details import RESAMPLES, Details, keep_details
from truegap.results.records import ScoreRecord
from truegap.results.runs import Run

HOSTILE_NAME = f"{{{{7*7}}}}${{alert(3)}}{HOSTILE} **b**"
FORMULA_NAME = '=HYPERLINK("http://evil.example","x")'
BOARD = "synthetic 1.0.0, retrieval, max_skew@100"


def submit(store: LocalStore, name: str, benchmark: str = "synthetic", *, kind: Any = "local", **scores: Any) -> Row:
    """A row with its scores: also of one question, and of every perturbed config."""
    parameters = scores.pop("parameters", 151_277_313)
    record = run_record(name, benchmark=benchmark)
    record = record.model_copy(update={"model": record.model.model_copy(update={"parameters": parameters})})
    found = scores_record(record.run_id, **scores)
    gap = ScoreRecord(
        metric=found.summary.metric, config="original", scope="prompt:a doctor", value=0.4, ci_low=0.3, ci_high=0.5
    )
    on = [
        ScoreRecord(
            metric=each.metric,
            config=each.config,
            value=each.perturbed,
            ci_low=(each.perturbed or 0.0) - 0.02,
            ci_high=(each.perturbed or 0.0) + 0.02,
        )
        for each in found.changes
    ]
    found = found.model_copy(update={"scores": [*found.scores, gap, *on]})
    row = row_of(Run(record, found, store.folder), kind=kind)
    store.submit(row, found)
    return row


def resampled(store: LocalStore, row: Row, noise: float = 0.01, *, answered: str = "same", seed: int = 0) -> None:
    """Gives a row resamples, in part common to all rows that `answered` the same."""
    common = np.random.default_rng(7).normal(0, 0.03, RESAMPLES)
    own = np.random.default_rng(seed).normal(0, noise, RESAMPLES)
    values = (row.summary.bias + common + own).astype("<f4")
    text = base64.b64encode(values.tobytes()).decode()
    keep_details(store, row.key, Details(answered=answered, resampled=text))


def small_board(folder: Path) -> tuple[LocalStore, dict[str, str]]:
    """The store, and the key of each of its rows by name."""
    store = LocalStore(folder)
    rows = {
        "person-reader": submit(store, "person-reader", bias=0.5, deltas=QUIET),
        "background-reader": submit(store, "background-reader", kind="verified", deltas=BACKGROUND_READER),
        "near-reader": submit(
            store, "near-reader", kind="community", bias=0.33, deltas=QUIET, parameters=8_000_000_000
        ),
        "hostile": submit(store, HOSTILE_NAME, bias=0.15),
        "formula": submit(store, FORMULA_NAME, "coco-gender", bias=0.2),
    }
    for seed, name in enumerate(("person-reader", "background-reader", "near-reader")):
        resampled(store, rows[name], seed=seed)
    return store, {name: row.key[:16] for name, row in rows.items()}

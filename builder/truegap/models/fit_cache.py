"""Trained classifiers' answers, kept: an SQLite file, keyed by everything that decides them, that outlives any kill."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from truegap.models._sqlite import SqliteFile
from truegap.models.classifier import Fitted


class FitCache(SqliteFile):
    """What came of every training, so that none is done twice.

    The weights are not kept: only which test images were right, and when training stopped.
    """

    FILE = "fits.sqlite"
    HOLDS = "classifiers"
    NAME = "cache of classifiers"
    TABLE = "CREATE TABLE IF NOT EXISTS fits (fit BLOB PRIMARY KEY, result TEXT NOT NULL) WITHOUT ROWID"

    def find(self, asked: Any) -> Fitted | None:
        """A training's result, if it is known.

        Args:
            asked: Everything that decides it, as JSON takes it.

        Raises:
            UserError: The cache is damaged.
        """
        with self._readable_errors():
            row = self._db.execute("SELECT result FROM fits WHERE fit = ?", [_digest(asked)]).fetchone()
        if row is None:
            return None
        try:
            kept = json.loads(row[0])
            correct = np.array([{"0": False, "1": True}[each] for each in kept["correct"]], np.bool_)
            return Fitted(correct, int(kept["epochs"]), int(kept["best_epoch"]))
        except (ValueError, KeyError, TypeError):
            raise self._damaged("a row is not readable") from None

    def keep(self, asked: Any, fitted: Fitted) -> None:
        """Commits a training's result; where another process was faster its result stands.

        Raises:
            UserError: The cache is damaged or full.
        """
        correct = "".join(map(str, fitted.correct.astype(int)))
        result = json.dumps({"correct": correct, "epochs": fitted.epochs, "best_epoch": fitted.best_epoch})
        with self._readable_errors(), self._transaction():
            self._db.execute("INSERT OR IGNORE INTO fits VALUES (?, ?)", [_digest(asked), result])


def _digest(asked: Any) -> bytes:
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).digest()

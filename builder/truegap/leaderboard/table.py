"""The prepared table: every row flat, ranked within its question, ready to be shown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from truegap.leaderboard.rank import ranks
from truegap.leaderboard.row import Row
from truegap.results.show import plain
from truegap.schema import Feature

if TYPE_CHECKING:
    import pyarrow as pa

_TEXT = ("key", "question", "board", "kind", "model", "model_kind", "spec", "revision", "content", "benchmark")
_MORE_TEXT = ("version", "benchmark_content", "protocol", "metric", "submitted", "truegap")
_NUMBERS = ("bias", "bias_low", "bias_high", "null", "mean_delta", "mean_delta_low", "mean_delta_high")
_FEATURES = tuple(f"delta_{feature}" for feature in Feature)
_FLOORS = ("floor", "floor_hsv")

COLUMNS = (*_TEXT, *_MORE_TEXT, "rank", "parameters", *_NUMBERS, *_FEATURES, *_FLOORS)
"""Of the table: the fields of `Row` and its summary, flat.

`rank` is within the rows of the same question (see `truegap.leaderboard.rank`), `board` names that question in a few
words, deltas and floors are in percent. A missing number is null.
"""


def schema() -> pa.Schema:
    """The Arrow schema of the table."""
    import pyarrow as pa

    texts, counts = {*_TEXT, *_MORE_TEXT}, {"rank", "parameters"}
    types = {name: pa.string() if name in texts else pa.int64() if name in counts else pa.float64() for name in COLUMNS}
    return pa.schema(list(types.items()))


def table(rows: Iterable[Row]) -> pa.Table:
    """Flat, ranked and sorted: by board, then by rank, then by the size of the bias, what has no number last."""
    import pyarrow as pa

    of_question: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        of_question[row.question].append(row)
    names = boards({key: found[0] for key, found in of_question.items()})
    flat = []
    for key, found in of_question.items():
        places = ranks([(row.summary.bias_low, row.summary.bias_high) for row in found])
        flat += [_flat(row, names[key], place) for row, place in zip(found, places, strict=True)]
    flat.sort(key=_order)
    return pa.Table.from_pylist(flat, schema=schema())


def boards(questions: dict[str, Row]) -> dict[str, str]:
    """A name for each question: benchmark, version and metric, with a piece of its hash where several share them."""
    names = {
        key: plain(f"{row.benchmark.name} {row.benchmark.version}, {row.protocol}, {row.summary.metric}", 120)
        for key, row in questions.items()
    }
    taken = list(names.values())
    return {key: name if taken.count(name) == 1 else f"{name} ({key[:8]})" for key, name in names.items()}


def search(rows: pa.Table, *, text: str = "", board: str | None = None) -> pa.Table:
    """The rows whose model name or spec holds every word of `text`, on one board or on all; the order stays."""
    import pyarrow as pa

    words = text.lower().split()
    names, specs, of = (rows[name].to_pylist() for name in ("model", "spec", "board"))
    kept = [
        (board is None or here == board) and all(word in name.lower() or word in spec.lower() for word in words)
        for name, spec, here in zip(names, specs, of, strict=True)
    ]
    return rows.filter(pa.array(kept, pa.bool_()))


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    rank, bias = row["rank"], row["bias"]
    return (row["board"], rank is None, rank or 0, bias is None, abs(bias or 0.0), row["model"], row["key"])


def _flat(row: Row, board: str, rank: int | None) -> dict[str, Any]:
    model, benchmark, summary = row.model, row.benchmark, row.summary
    return {
        "key": row.key,
        "question": row.question,
        "board": board,
        "kind": row.kind,
        "model": plain(model.name, 120),
        "model_kind": model.kind,
        "spec": plain(model.spec),
        "revision": model.revision and plain(model.revision),
        "content": plain(model.content),
        "benchmark": plain(benchmark.name, 120),
        "version": plain(benchmark.version),
        "benchmark_content": plain(benchmark.content),
        "protocol": plain(row.protocol),
        "metric": plain(summary.metric),
        "submitted": plain(row.submitted),
        "truegap": plain(row.truegap),
        "rank": rank,
        "parameters": model.parameters,
        **{name: getattr(summary, name) for name in (*_NUMBERS, *_FLOORS)},
        **{f"delta_{feature}": summary.feature_delta.get(feature) for feature in Feature},
    }

"""The prepared table: every row flat, ranked within its question, ready to be shown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from truegap.leaderboard.rank import ranks, shared
from truegap.leaderboard.row import Ends, Row
from truegap.results.show import plain
from truegap.schema import CONFIGS, Feature

if TYPE_CHECKING:
    import pyarrow as pa

_TEXT = ("key", "question", "board", "kind", "model", "model_kind", "spec", "revision", "content", "benchmark")
_MORE_TEXT = ("version", "benchmark_content", "protocol", "metric", "submitted", "truegap", "source")
_RANKS = ("rank", "tied", "delta_rank", "delta_tied")
_NUMBERS = ("bias", "bias_low", "bias_high", "null", "mean_delta", "mean_delta_low", "mean_delta_high")
_FEATURES = tuple(f"delta_{feature}" for feature in Feature)
_FLOORS = ("floor", "floor_hsv")
_PERTURBED = CONFIGS[1:]
_ON = tuple(f"bias_{config}" for config in _PERTURBED)
_RANKS_ON = tuple(f"rank_{config}" for config in _PERTURBED)
_NOTHING: Ends = (None, None, None)

COLUMNS = (*_TEXT, *_MORE_TEXT, *_RANKS, "parameters", *_NUMBERS, *_FEATURES, *_FLOORS, *_ON, *_RANKS_ON)
"""Of the table: the fields of `Row` and its summary, flat.

`rank` is within the rows of the same question (see `truegap.leaderboard.rank`) and `tied` says how many rows have it;
`delta_rank` and `delta_tied` are the same of the mean delta; `bias_<config>` and `rank_<config>` are bias and rank on
the perturbed images. `board` names the question in a few words, `source` the paper that prints a published row, deltas
and floors are in percent. A missing number is null.
"""


def schema() -> pa.Schema:
    """The Arrow schema of the table."""
    import pyarrow as pa

    texts, counts = {*_TEXT, *_MORE_TEXT}, {*_RANKS, *_RANKS_ON, "parameters"}
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
        flat += [_flat(row, names[key]) | places for row, places in zip(found, _places(found), strict=True)]
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


def _places(rows: Sequence[Row]) -> list[dict[str, int | None]]:
    """The ranks of each row among those of the same question: by bias, by mean delta, and by bias on every config."""
    columns = {
        "rank": ranks([(row.summary.bias_low, row.summary.bias_high) for row in rows]),
        "delta_rank": ranks([(row.summary.mean_delta_low, row.summary.mean_delta_high) for row in rows]),
    }
    columns |= {"tied": shared(columns["rank"]), "delta_tied": shared(columns["delta_rank"])}
    for config in _PERTURBED:
        columns[f"rank_{config}"] = ranks([row.perturbed.get(config, _NOTHING)[1:] for row in rows])
    return [{name: column[place] for name, column in columns.items()} for place in range(len(rows))]


def _flat(row: Row, board: str) -> dict[str, Any]:
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
        "source": "",
        "parameters": model.parameters,
        **{name: getattr(summary, name) for name in (*_NUMBERS, *_FLOORS)},
        **{f"delta_{feature}": summary.feature_delta.get(feature) for feature in Feature},
        **{f"bias_{config}": row.perturbed.get(config, _NOTHING)[0] for config in _PERTURBED},
    }

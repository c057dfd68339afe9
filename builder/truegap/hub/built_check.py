"""Whether a built benchmark is what its manifest says, row by row, and under which licences its images stand."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truegap.build.manifest import FILE, Manifest
from truegap.build.rows import row_hash
from truegap.errors import UserError, first_line
from truegap.schema import Split

MADE_AT_PUBLICATION = ("eval.yaml", "croissant.json")
"""May be there from an earlier time; they are made anew."""
CARD = "README.md"

Held = tuple[str, bool]
"""A licence, and whether it is said whose the image is."""


@dataclass(frozen=True, slots=True)
class RowsTask:
    """A parquet file of a built benchmark; picklable.

    Attributes:
        path: The file.
        config: What it is of.
        split: Which part of it.
        number: Its place among the files of its config and split.
    """

    path: Path
    config: str
    split: Split
    number: int


@dataclass(frozen=True, slots=True)
class RowsResult:
    """What is in the file.

    Attributes:
        task: The task.
        rows: Image id and hash of every row, in order.
        terms: How many images stand under which licence, with or without an attribution.
    """

    task: RowsTask
    rows: list[tuple[str, str]]
    terms: Counter[Held]


Run = Callable[[Callable[[RowsTask], RowsResult], Sequence[RowsTask]], Iterable[RowsResult]]
"""Runs a function over tasks, in any order, as `truegap.engine.run_tasks` does."""


def rows_tasks(folder: Path, files: dict[str, Path], manifest: Manifest) -> list[RowsTask]:
    """One task for each parquet file that the manifest speaks of.

    Raises:
        UserError: A file is missing, or one is there that belongs to no build.
    """
    expected = {
        f"data/{config}/{split}-{number:05d}-of-{part.files:05d}.parquet": (config, split, number)
        for config in manifest.configs
        for split, part in manifest.splits.items()
        for number in range(part.files)
    }
    if missing := [path for path in (*expected, CARD) if path not in files]:
        raise UserError(f"{folder}: {missing[0]} is missing ({len(missing)} in all): build the benchmark again")
    known = {*expected, FILE, CARD, ".gitattributes", *MADE_AT_PUBLICATION}
    if stray := [path for path in files if path not in known]:
        more = f", and {len(stray) - 1} more," if len(stray) > 1 else ""
        raise UserError(f"{folder}: {stray[0]}{more} is no part of the benchmark: move it elsewhere")
    return [RowsTask(files[path], *what) for path, what in expected.items()]


def read_rows(task: RowsTask) -> RowsResult:
    """Hashes every row of a file.

    Raises:
        UserError: The file is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows: list[tuple[str, str]] = []
    terms: Counter[Held] = Counter()
    try:
        with pq.ParquetFile(task.path) as file:
            for number in range(file.num_row_groups):
                for row in file.read_row_group(number).to_pylist():
                    rows.append((row["image_id"], _hash(row)))
                    terms[str(row["license"]), bool(str(row["attribution"] or "").strip())] += 1
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{task.path}: {first_line(error)}; build the benchmark again") from None
    return RowsResult(task, rows, terms)


def _hash(row: dict[str, Any]) -> str:
    fields = dict(row)
    return row_hash(hashlib.sha256(fields.pop("image")["bytes"]).hexdigest(), fields)


def check_rows(
    folder: Path, manifest: Manifest, tasks: Sequence[RowsTask], run: Run, advance: Callable[[int], object]
) -> dict[str, Counter[Held]]:
    """Compares every row with the manifest.

    Args:
        folder: For messages.
        manifest: What should be there.
        tasks: From `rows_tasks`.
        run: Runs them.
        advance: Called with the number of rows just looked at.

    Returns:
        For each config, how many images stand under which terms.

    Raises:
        UserError: A row is another than the manifest says.
    """
    terms: dict[str, Counter[Held]] = {config: Counter() for config in manifest.configs}
    found: dict[str, dict[tuple[Split, int], list[tuple[str, str]]]] = {config: {} for config in manifest.configs}
    for done in run(read_rows, tasks):
        task = done.task
        found[task.config][task.split, task.number] = done.rows
        terms[task.config] += done.terms
        advance(len(done.rows))
    for config, parts in found.items():
        rows = [
            row
            for split, part in manifest.splits.items()
            for number in range(part.files)
            for row in parts[split, number]
        ]
        _check_config(folder, manifest, config, rows)
    return terms


def _check_config(folder: Path, manifest: Manifest, config: str, rows: list[tuple[str, str]]) -> None:
    said = list(zip(manifest.rows.image_id, manifest.rows.sha256.get(config, ()), strict=False))
    lines = "".join(f"{image_id} {digest}\n" for image_id, digest in said)
    if hashlib.sha256(lines.encode()).hexdigest() != manifest.configs[config].sha256:
        raise UserError(f"{folder}: {FILE} contradicts itself about config {config}: build the benchmark again")
    if rows != said:
        other = next((one for one, two in zip(rows, said, strict=False) if one != two), None)
        what = f"row {other[0][:60]!r}" if other else f"{len(rows)} of {len(said)} rows"
        raise UserError(f"{folder}: config {config} is not what {FILE} says ({what}): build the benchmark again")

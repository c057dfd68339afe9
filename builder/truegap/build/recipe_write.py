"""A built benchmark becomes a recipe."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from truegap.build.cells import averages
from truegap.build.images import UnusableImageError
from truegap.build.manifest import Manifest, read_manifest, write_json
from truegap.build.recipe import FILE, REGIONS, Masks, Recipe, Terms
from truegap.build.recipe_card import recipe_card
from truegap.build.recipe_regions import drawn_by, published
from truegap.build.recipe_tables import digests, field_lines, region_schema, row_schema, write_table
from truegap.build.shard import NO_DONOR
from truegap.errors import UserError, first_line
from truegap.sources import NAMES, BenchmarkSpec, load_benchmark

UNUSABLE = ("not a JPEG", "image file ", "size of the image", "too large", NO_DONOR)
"""How the reasons begin for which a build, and not the source, leaves an image out."""

_LENT = ("image_id", "source", "license", "attribution", "perturbation")


@dataclass(frozen=True, slots=True)
class FileTask:
    """A parquet file of a built benchmark; picklable.

    Attributes:
        path: The file.
        config: What it is of.
        first: Whether what all configs share is read from it too.
        drawer: See `drawn_by`.
        masks: Which masks are published.
        hidden: Parts of a draw that are not published.
    """

    path: Path
    config: str
    first: bool
    drawer: str
    masks: Masks
    hidden: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileResult:
    """What a recipe tells of the file.

    Attributes:
        task: The task.
        rows: Of the config's table.
        regions: Of the table of regions.
        masks_left_out: Masks drawn inside of annotated boxes.
        lines: Digests of the rows' fields, by image id.
    """

    task: FileTask
    rows: list[dict[str, Any]]
    regions: list[Mapping[str, Any]]
    masks_left_out: int
    lines: dict[str, dict[str, str]]


Run = Callable[[Callable[[FileTask], FileResult], Sequence[FileTask]], Iterable[FileResult]]
"""Runs a function over tasks, in any order, as `truegap.engine.run_tasks` does."""


def write_recipe(
    built: Path,
    out: Path,
    *,
    masks: Masks = "found",
    run: Run = map,
    advance: Callable[[int], object] = lambda _images: None,
) -> Recipe:
    """Makes the recipe of a built benchmark.

    Args:
        built: The benchmark.
        out: The folder that becomes the recipe; it is there whole or not at all.
        masks: Which masks are published, see `truegap.build.recipe_regions`.
        run: Runs the tasks.
        advance: Called with the number of images just looked at; each counts once per config.

    Raises:
        UserError: The benchmark cannot be read or is of no source, or `out` exists.
    """
    manifest = read_manifest(built)
    if manifest.benchmark not in NAMES:
        raise UserError(f"{built}: {manifest.benchmark} has no source to repeat it from: publish it as it is")
    if out.exists():
        raise UserError(f"{out} exists: choose another --out")
    out.resolve().parent.mkdir(parents=True, exist_ok=True)
    spec = load_benchmark(manifest.benchmark)
    hidden = hidden_parts(spec, manifest.selection)
    drawer = drawn_by(manifest.selection.get("regions"))
    first = next(iter(manifest.configs))
    tasks = [
        FileTask(path, config, config == first, drawer, masks, hidden)
        for config in manifest.configs
        for path in sorted((built / "data" / config).glob("*.parquet"))
    ]
    aside = Path(mkdtemp(prefix=f".{out.name}.", dir=out.resolve().parent))
    try:
        aside.chmod(0o755)
        shared: list[FileResult] = []
        hashes: dict[str, dict[str, str]] = {config: {} for config in manifest.configs}
        for done in run(describe_file, tasks):
            config = done.task.config
            hashes[config] |= {row["image_id"]: row["image_sha256"] for row in done.rows}
            write_table(aside / "data" / config / done.task.path.name, done.rows, row_schema())
            if done.task.first:
                shared.append(done)
            advance(len(done.rows))
        _check(built, manifest, hashes)
        shared.sort(key=lambda each: each.task.path)
        regions = [row for done in shared for row in done.regions]
        terms = _terms(manifest, shared, masks)
        if regions:
            write_table(aside / REGIONS, regions, region_schema())
        card = recipe_card(spec, manifest, terms, drawer=drawer, regions=len(regions), hidden="donor" in hidden)
        (aside / "README.md").write_text(card, encoding="utf-8")
        write_json(aside / FILE, terms)
        aside.rename(out)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return Recipe(out, terms)


def hidden_parts(spec: BenchmarkSpec, options: Mapping[str, Any]) -> tuple[str, ...]:
    """The parts of a draw that are drawn again rather than published.

    The rectangles of a placebo tell how large the annotated objects are. Whose background was taken tells who has the
    same label and who has the other; that may be said only where the labels may.
    """
    rule = spec.labels.get(str(options.get("labels"))) or (*spec.labels.values(),)[0]
    known = str(options.get("labels")) in spec.labels or len(spec.labels) == 1
    return ("boxes",) if known and rule.redistribution else ("boxes", "donor")


def describe_file(task: FileTask) -> FileResult:
    """What a recipe tells of a file.

    Raises:
        UserError: The file is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = []
    regions: list[Mapping[str, Any]] = []
    lines: dict[str, dict[str, str]] = {}
    left_out = 0
    try:
        with pq.ParquetFile(task.path) as file:
            for number in range(file.num_row_groups):
                for row in file.read_row_group(number).to_pylist():
                    rows.append(_row(row, task))
                    if task.first:
                        lines[row["image_id"]] = field_lines(row)
                        some, without = published(row, task.drawer, task.masks)
                        regions += some
                        left_out += without
    except (pa.ArrowException, OSError, KeyError, TypeError, UnusableImageError) as error:
        raise UserError(f"{task.path}: {first_line(error)}; build the benchmark again") from None
    return FileResult(task, rows, regions, left_out, lines)


def _row(row: Mapping[str, Any], task: FileTask) -> dict[str, Any]:
    encoded: bytes = row["image"]["bytes"]
    lent = {name: row[name] for name in _LENT}
    return {
        **lent,
        "perturbation": {**lent["perturbation"], **dict.fromkeys(task.hidden)},
        "image_sha256": hashlib.sha256(encoded).hexdigest(),
        "averages": None if task.config == "original" else averages(encoded),
    }


def _check(built: Path, manifest: Manifest, hashes: Mapping[str, Mapping[str, str]]) -> None:
    """That the files hold what the manifest says: a recipe of something else could never be repeated."""
    for config, found in hashes.items():
        if found != dict(zip(manifest.rows.image_id, manifest.rows.image_sha256[config], strict=True)):
            raise UserError(f"{built}: the images of config {config} are not those of its manifest: build it again")


def _terms(manifest: Manifest, shared: Sequence[FileResult], masks: Masks) -> Terms:
    lines = {image_id: line for done in shared for image_id, line in done.lines.items()}
    unreadable = [
        image_id for reason, ids in manifest.dropped.items() for image_id in ids if reason.startswith(UNUSABLE)
    ]
    return Terms(
        benchmark=manifest.benchmark,
        version=manifest.version,
        seed=manifest.seed,
        configs=list(manifest.configs),
        images=len(manifest.rows.image_id),
        perturbations=manifest.perturbations,
        encoder=manifest.encoder,
        selection=manifest.selection,
        versions=manifest.versions,
        unreadable=sorted(unreadable),
        sha256=digests(lines),  # type: ignore[arg-type]  # the keys are checked there
        masks=masks,
        masks_to_draw=sum(done.masks_left_out for done in shared),
    )

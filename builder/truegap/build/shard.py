"""One shard of a build: examples in, one parquet file per config out."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truegap.build.images import Encoder, UnusableImageError, decode
from truegap.build.manifest import write_json
from truegap.build.rows import columns, fields_of, perturbation_field, regions_of, row_hash
from truegap.perturbations import Options, draw, redo_all
from truegap.schema import CONTROLS, Example, Perturbation

ROW_GROUP = 32
"""Rows that wait in memory per config before they are written."""

SUMMARY = "shard.json"

_IMAGE = "image.bytes"
_FIELDS = [f"perturbation.{name}" for name in ("feature", "strength", "options")] + ["license"]
_PARQUET: dict[str, Any] = {
    # Encoded images do not compress further, and nobody asks for their minimum.
    "compression": {_IMAGE: "none"},
    "use_dictionary": _FIELDS,
    "write_statistics": ["image_id", "gender", *_FIELDS],
}
"""How parquet files are written."""


@dataclass(frozen=True, slots=True)
class ShardTask:
    """All that a worker needs for a shard; picklable.

    Attributes:
        folder: Where the shard's files go.
        examples: The shard's images.
        benchmark: Part of the random keys.
        configs: Which configs to build.
        seed: Part of the random keys.
        options: Of the perturbations.
        encoder: How images are stored.
        extra: Arrow types of the columns that this benchmark adds, by name, as `datasets` features.
    """

    folder: Path
    examples: Sequence[Example]
    benchmark: str
    configs: tuple[str, ...]
    seed: int
    options: Options
    encoder: Encoder
    extra: Mapping[str, Any]


def build_shard(task: ShardTask) -> dict[str, Any]:
    """Builds a shard, or takes it as it is where it is finished.

    The files are written to a folder beside, which is then renamed: a shard is there whole or not at all.

    Returns:
        What `shard.json` holds: row hashes and counts per config, and dropped images.
    """
    import cv2

    done = task.folder / SUMMARY
    if done.exists():
        finished: dict[str, Any] = json.loads(done.read_bytes())
        return finished
    # The shards are the parallelism; threads inside OpenCV would fight over the same cores.
    cv2.setNumThreads(1)
    aside = task.folder.with_name(f".{task.folder.name}")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    summary = _write(task, aside)
    write_json(aside / SUMMARY, summary)
    aside.rename(task.folder)
    return summary


def _write(task: ShardTask, folder: Path) -> dict[str, Any]:
    from pyarrow import Table
    from pyarrow.parquet import ParquetWriter

    schema = columns(task.extra).arrow_schema
    images: list[str] = []
    genders: list[str] = []
    hashes: dict[str, list[str]] = {config: [] for config in task.configs}
    image_hashes: dict[str, list[str]] = {config: [] for config in task.configs}
    drawn: dict[str, list[int]] = {config: [0, 0] for config in task.configs}
    dropped: dict[str, str] = {}
    waiting: dict[str, list[dict[str, Any]]] = {config: [] for config in task.configs}
    with ExitStack() as stack:
        writers = {
            config: stack.enter_context(ParquetWriter(folder / f"{config}.parquet", schema, **_PARQUET))
            for config in task.configs
        }

        def flush() -> None:
            for config, rows in waiting.items():
                if rows:
                    writers[config].write_table(Table.from_pylist(rows, schema=schema))
                    rows.clear()

        for example in task.examples:
            try:
                rows = list(_rows(task, example))
            except UnusableImageError as reason:
                dropped[example.image_id] = str(reason)
                continue
            images.append(example.image_id)
            genders.append(example.gender)
            for config, encoded, perturbation in rows:
                fields = {**fields_of(example), "perturbation": perturbation_field(perturbation)}
                image_hashes[config].append(hashlib.sha256(encoded).hexdigest())
                hashes[config].append(row_hash(image_hashes[config][-1], fields))
                waiting[config].append({**fields, "image": {"bytes": encoded, "path": None}})
                drawn[config][0] += perturbation.n_objects or 0
                drawn[config][1] += len(perturbation.object_ids or ())
            if len(images) % ROW_GROUP == 0:
                flush()
        flush()
    return {
        "image_id": images,
        "gender": genders,
        "sha256": hashes,
        "image_sha256": image_hashes,
        "objects": drawn,
        "dropped": dropped,
    }


def _rows(task: ShardTask, example: Example) -> Iterator[tuple[str, bytes, Perturbation]]:
    """Config, encoded image and what was drawn, for every config of one image."""
    try:
        source = example.image.read()
    except OSError as error:
        raise UnusableImageError(f"image file cannot be read: {error.strerror}") from None
    pixels = decode(source)
    if pixels.shape[:2] != example.size:
        # Masks and boxes would not lie where they belong.
        raise UnusableImageError("size of the image differs from its annotation")
    regions = regions_of(example.persons, example.objects, example.size, with_masks=task.options.shape == "mask")
    drawn = {
        config: drawn_for(config, example, benchmark=task.benchmark, seed=task.seed, options=task.options)
        for config in task.configs
    }
    # What comes out equal is computed and encoded once: no object drawn, a shift of 0, the same objects twice.
    effects = {config: _effect(perturbation) for config, perturbation in drawn.items()}
    distinct = {effect: drawn[config] for config, effect in effects.items() if config != "original"}
    changed = redo_all(
        pixels,
        list(distinct.values()),
        person_mask=regions.person_mask,
        objects=regions.objects,
        object_masks=regions.object_masks,
    )
    encoded = {effect: task.encoder.encode(image) for effect, image in zip(distinct, changed, strict=True)}
    for config, perturbation in drawn.items():
        yield config, source if config == "original" else encoded[effects[config]], perturbation


def _effect(drawn: Perturbation) -> tuple[object, ...]:
    """What decides the pixels of a perturbation: equal effects give equal images."""
    if drawn.feature == "object":
        return ("object", frozenset(drawn.object_ids)) if drawn.object_ids else ("control", None)
    if drawn.feature in ("color", "lighting"):
        return (drawn.feature, drawn.shift) if drawn.shift else ("control-hsv", None)
    return (drawn.feature, drawn.radius)


def drawn_for(config: str, example: Example, *, benchmark: str, seed: int, options: Options) -> Perturbation:
    """What a config does to an example."""
    if config in CONTROLS:
        return Perturbation(feature="none" if config == "original" else config, seed=seed)
    feature, strength = config.split("-")
    return draw(
        feature,
        strength,
        benchmark=benchmark,
        image_id=example.image_id,
        seed=seed,
        objects=example.objects,
        options=options,
    )

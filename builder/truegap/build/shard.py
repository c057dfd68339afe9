"""One shard of a build: examples in, one parquet file per config out."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truegap.build.draws import Donors, donor_key, draw_config, effect
from truegap.build.images import Encoder, UnusableImageError, opened
from truegap.build.manifest import write_json
from truegap.build.row_group import IMAGE, PERTURBATION, Own, RowGroup
from truegap.build.rows import Regions, fields_of, hash_written, perturbation_field, regions_of, written
from truegap.perturbations import Options, redo_all
from truegap.perturbations.pictures import Pixels, pixels_of
from truegap.schema import SWAP, Example, Perturbation

SUMMARY = "shard.json"

NO_DONOR = "no image to take a background from"
"""Why an image is left out that is usable itself."""

_IMAGE = "image.bytes"
_FIELDS = [f"perturbation.{name}" for name in ("feature", "strength", "options")] + ["split", "license"]
_PARQUET: dict[str, Any] = {
    # Encoded images do not compress further, and nobody asks for their minimum.
    "compression": {_IMAGE: "none"},
    "use_dictionary": _FIELDS,
    "write_statistics": ["image_id", "gender", *_FIELDS],
    # Rows between two looks at the size of a page: with more, pages outgrow the cache (twice the time).
    "write_batch_size": 8,
}
"""How parquet files are written."""


@dataclass(frozen=True, slots=True)
class ShardTask:
    """All that a worker needs for a shard; picklable.

    Attributes:
        folder: Where the shard's files go.
        examples: The shard's images, all of one split.
        benchmark: Part of the random keys.
        configs: Which configs to build.
        seed: Part of the random keys.
        options: Of the perturbations.
        encoder: How images are stored.
        schema: Of the parquet files, made once: workers need not load `datasets`, which takes a second.
        donors: Images whose background may be taken, for background swaps.
    """

    folder: Path
    examples: Sequence[Example]
    benchmark: str
    configs: tuple[str, ...]
    seed: int
    options: Options
    encoder: Encoder
    schema: Any
    donors: Donors = field(default_factory=dict)


def build_shard(task: ShardTask) -> dict[str, Any]:
    """Builds a shard, or takes it as it is where it is finished.

    The files are written to a folder beside, which is then renamed: a shard is there whole or not at all.

    Returns:
        What `shard.json` holds: split, row hashes and counts per config, and dropped images.
    """
    import cv2

    done = task.folder / SUMMARY
    if done.exists():
        finished: dict[str, Any] = json.loads(done.read_bytes())
        return finished
    # The shards are the parallelism; threads inside OpenCV would fight over the same cores.
    cv2.setNumThreads(1)
    # A folder of its own: a worker that outlived its build may still be writing the same shard.
    aside = Path(mkdtemp(prefix=f".{task.folder.name}-", suffix=".aside", dir=task.folder.parent))
    try:
        aside.chmod(0o755)
        summary = _write(task, aside)
        write_json(aside / SUMMARY, summary)
        aside.rename(task.folder)
    except OSError:
        if not done.exists():
            raise
        return dict(json.loads(done.read_bytes()))
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return summary


def _write(task: ShardTask, folder: Path) -> dict[str, Any]:
    from pyarrow.parquet import ParquetWriter

    images: list[str] = []
    genders: list[str] = []
    hashes: dict[str, list[str]] = {config: [] for config in task.configs}
    image_hashes: dict[str, list[str]] = {config: [] for config in task.configs}
    drawn: dict[str, list[int]] = {config: [0, 0] for config in task.configs}
    dropped: dict[str, str] = {}
    waiting = RowGroup(task.configs, task.schema)
    with ExitStack() as stack:
        writers = {
            config: stack.enter_context(ParquetWriter(folder / f"{config}.parquet", task.schema, **_PARQUET))
            for config in task.configs
        }

        def flush() -> None:
            for config, table in waiting.taken():
                writers[config].write_table(table)

        for example in task.examples:
            try:
                rows = list(_rows(task, example))
            except UnusableImageError as reason:
                dropped[example.image_id] = str(reason)
                continue
            images.append(example.image_id)
            genders.append(example.gender)
            shared = fields_of(example)
            shared_text = written(shared)
            own: dict[str, Own] = {}
            hashed: dict[int, str] = {}
            for config, encoded, perturbation in rows:
                # Equal images of several configs are one object.
                if id(encoded) not in hashed:
                    hashed[id(encoded)] = hashlib.sha256(encoded).hexdigest()
                image_hashes[config].append(hashed[id(encoded)])
                own[config] = encoded, perturbation_field(perturbation)
                text = written({IMAGE: hashed[id(encoded)], PERTURBATION: own[config][1]})
                hashes[config].append(hash_written({**shared_text, **text}))
                drawn[config][0] += perturbation.n_objects or 0
                drawn[config][1] += len(perturbation.object_ids or ())
            waiting.add(shared, own)
            if waiting.full:
                flush()
        flush()
    return {
        "split": task.examples[0].split,
        "image_id": images,
        "gender": genders,
        "sha256": hashes,
        "image_sha256": image_hashes,
        "objects": drawn,
        "dropped": dropped,
    }


def _rows(task: ShardTask, example: Example) -> Iterator[tuple[str, bytes, Perturbation]]:
    """Config, encoded image and what was drawn, for every config of one image."""
    source, pixels, regions = _opened(example, with_masks=task.options.shape == "mask")
    donors = {config: _donor(task, config, example) for config in task.configs if config.startswith(SWAP)}
    drawn = {
        config: draw_config(
            config,
            example,
            regions,
            benchmark=task.benchmark,
            seed=task.seed,
            options=task.options,
            donor=donors[config][0] if config in donors else None,
        )
        for config in task.configs
    }
    # What comes out equal is computed and encoded once: no object drawn, a shift of 0, the same objects twice.
    effects = {config: effect(perturbation) for config, perturbation in drawn.items()}
    distinct = {effects[config]: perturbation for config, perturbation in drawn.items() if config != "original"}
    changed = redo_all(
        pixels,
        list(distinct.values()),
        person_mask=regions.person_mask,
        objects=regions.objects,
        object_masks=regions.object_masks,
        donors=dict(donors.values()),
    )
    encoded = {effect: task.encoder.encode(image) for effect, image in zip(distinct, changed, strict=True)}
    for config, perturbation in drawn.items():
        yield config, source if config == "original" else encoded[effects[config]], perturbation


def is_usable(example: Example) -> bool:
    """Whether an image can be read and is what its annotation says."""
    try:
        _opened(example)
    except UnusableImageError:
        return False
    return True


def _opened(example: Example, *, with_masks: bool = False) -> tuple[bytes, Pixels, Regions]:
    """An image's bytes, pixels and regions."""
    try:
        source = example.image.read()
    except OSError as error:
        raise UnusableImageError(f"image file cannot be read: {error.strerror}") from None
    pixels = pixels_of(opened(source))
    if pixels.shape[:2] != example.size:
        # Masks and boxes would not lie where they belong.
        raise UnusableImageError("size of the image differs from its annotation")
    return source, pixels, regions_of(example.persons, example.objects, example.size, with_masks=with_masks)


def _donor(task: ShardTask, config: str, example: Example) -> tuple[str, tuple[Pixels, NDArray[np.bool_]]]:
    """Id, pixels and person mask of the first usable image whose background may be taken."""
    for candidate in task.donors[donor_key(config, example.image_id)]:
        try:
            _, pixels, regions = _opened(candidate)
        except UnusableImageError:
            continue
        return candidate.image_id, (pixels, regions.person_mask)
    raise UnusableImageError(NO_DONOR)

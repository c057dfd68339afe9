"""Perturbs a loaded dataset as it is read; nothing is stored."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np

from truegap.build.draws import draw_config
from truegap.build.live_rows import PERSONS, Row, check_size, row_id, row_pixels, row_regions
from truegap.build.plan import choose_configs
from truegap.build.rows import Regions, perturbation_field
from truegap.cores import cores
from truegap.errors import UserError
from truegap.perturbations import Options, redo_all
from truegap.perturbations.pictures import picture_of
from truegap.regions.masks import MaskError
from truegap.schema import PLACEBO, SWAP, Example, Feature, ImageBytes

DatasetT = TypeVar("DatasetT")

STORED = "image_unperturbed"
"""What the column `image` is called below a dataset that is perturbed on the fly."""

_WITH_PERSONS = (Feature.BACKGROUND, Feature.OBJECT, PLACEBO, "person")
_WITH_OBJECTS = (Feature.OBJECT, PLACEBO)

Batch = Mapping[str, list[Any]]


def perturbed(
    dataset: DatasetT,
    config: str,
    *,
    benchmark: str | None = None,
    seed: int | None = None,
    options: Options | None = None,
) -> DatasetT:
    """A dataset whose images are perturbed as they are read.

    With the benchmark's name and seed, which rows of a built benchmark carry, every image gets what the built config of
    this name has, before encoding.

    A format that the dataset has (`with_format("torch")`, a transform) is kept and applied to the perturbed images.
    Choose it before: a format set afterwards replaces the perturbation. So that nobody then takes the images as they
    were for perturbed ones, their column below is called `image_unperturbed`, and rows have no `image` any more.

    Reading rows makes glibc keep more freed memory, up to 62 MiB for each thread, unless `MALLOC_TRIM_THRESHOLD_` is
    set.

    Args:
        dataset: A `datasets.Dataset` or `IterableDataset`, or a dictionary of them. Config `original` of a built
            benchmark has all columns that are needed; in general these are `image` and `image_id`, and where persons
            and objects play a part, the columns that `truegap.build.live_rows` describes.
        config: Such as `background-strong`; any but the background swaps, which need a second image.
        benchmark: Part of the random key; default: what the row says.
        seed: Part of the random key; default: what the row says, else 0.
        options: Of the perturbation; default: the paper's.

    Returns:
        A dataset of the same kind. Its column `perturbation` says what was drawn; where the format names columns, it is
        there if it is named.

    Raises:
        UserError: The config cannot be made on the fly, or a column is missing. What is wrong with a row is said when
            it is read.
    """
    from datasets import Dataset, IterableDataset

    (name, *more) = choose_configs([config])
    if more or name.startswith(SWAP):
        raise UserError(f"{config} cannot be made on the fly: build it with `truegap build --configs {config}`")
    change = _Change(name, benchmark, seed, options or Options())
    if isinstance(dataset, dict):
        parts = {
            key: perturbed(each, config, benchmark=benchmark, seed=seed, options=options)
            for key, each in dataset.items()
        }
        together: DatasetT = type(dataset)(parts)
        return together
    if not isinstance(dataset, Dataset | IterableDataset):
        raise UserError(f"dataset is {type(dataset).__name__}: give a datasets.Dataset or IterableDataset")
    if STORED in (dataset.column_names or ()):
        raise UserError("the dataset is perturbed on the fly already: begin with the one that was loaded")
    if dataset.column_names is not None:
        change.check(dataset.column_names)
    changed: DatasetT = (_streamed if isinstance(dataset, IterableDataset) else _lazy)(dataset, change)
    return changed


def _streamed(dataset: Any, change: _Change) -> Any:
    formatting = dataset._formatting  # noqa: SLF001  # there is no other way to ask
    changed = dataset.with_format(None).map(change)
    return changed.with_format(formatting.format_type) if formatting else changed


def _lazy(dataset: Any, change: _Change) -> Any:
    from datasets import Image

    wanted = dataset.format["columns"]
    shown = None if set(wanted) == set(dataset.column_names) else tuple(wanted)
    transform = _Batched(change, _after(dataset.format), shown)
    below = dataset.with_format(None).rename_column("image", STORED)
    if isinstance(below.features[STORED], Image):
        # Decoding is half of the work: it is left to the transform, which has all cores for a batch.
        below = below.cast_column(STORED, Image(decode=False))
    return below.with_transform(transform)


def _after(form: Mapping[str, Any]) -> Any:
    """What applies the format that a dataset had to a batch."""
    kind, kwargs = form["type"], form["format_kwargs"]
    if kind is None or kind == "python":
        return None
    if kind == "custom":
        return kwargs["transform"]
    from datasets.formatting import get_formatter

    formatter = get_formatter(kind, **kwargs)
    if not hasattr(formatter, "recursive_tensorize"):
        raise UserError(f"format {kind} holds no pictures: take with_format(None), torch or numpy")
    return formatter.recursive_tensorize


@dataclass(frozen=True, slots=True)
class _Batched:
    """The perturbation as a transform of batches; picklable, so that loaders with several processes can take it."""

    change: _Change
    after: Callable[[dict[str, list[Any]]], Any] | None
    shown: tuple[str, ...] | None

    def __call__(self, batch: Batch) -> Any:
        if STORED not in batch:
            # Somebody reads another column alone.
            return batch if self.after is None else self.after(dict(batch))
        columns = {"image" if name == STORED else name: values for name, values in batch.items()}
        self.change.check(columns)
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        rows = [{**row, **changed} for row, changed in zip(rows, self._changed(rows), strict=True)]
        names = [name for name in rows[0] if self.shown is None or name in self.shown]
        changed = {name: [row[name] for row in rows] for name in names}
        return changed if self.after is None else self.after(changed)

    def _changed(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rows' new columns, in order; several rows are done on all cores."""
        # The processes of a loader share the cores already.
        threads = 1 if multiprocessing.parent_process() else min(cores(), len(rows))
        if threads == 1:
            return [self.change(row) for row in rows]
        # A pool of its own for each batch: a kept one would not survive a fork.
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(self.change, rows))


@cache
def _keep_freed_memory() -> None:
    """Lets glibc keep the memory that a row frees for the next one; without glibc, nothing happens.

    glibc returns to the system what a thread has free beyond twice the largest block that the process ever freed, of
    those up to 32 MiB. With rows of a megabyte that is nearly everything, every time, and fetching it back takes a
    fifth of a row. A large block that is never touched costs nothing; from then on the process keeps up to 62 MiB per
    thread.
    """
    np.empty(31 << 20, np.uint8)


@dataclass(frozen=True, slots=True)
class _Change:
    """The perturbation of one row."""

    config: str
    benchmark: str | None
    seed: int | None
    options: Options

    def check(self, columns: Any) -> None:
        """That the columns are there which the config needs."""
        missing = [name for name in ("image", "image_id") if name not in columns]
        if self.config.startswith(_WITH_PERSONS) and not any(name in columns for name in PERSONS):
            missing.append("person_boxes")
        if self.config.startswith(_WITH_OBJECTS) and "objects" not in columns:
            missing.append("objects")
        if missing:
            raise UserError(
                f"{self.config}: the dataset has no column {', '.join(missing)}: load config `original` of a built "
                "benchmark, and remove no column before perturbing (a Trainer does so: remove_unused_columns=False)"
            )

    def __call__(self, row: Row) -> dict[str, Any]:
        _keep_freed_memory()
        image_id = row_id(row)
        said = row.get("perturbation") or {}
        if said.get("feature", "none") != "none":
            raise UserError(f"image {image_id!r} is perturbed already ({said['feature']}): load config `original`")
        try:
            pixels = row_pixels(row["image"])
            size = (pixels.shape[0], pixels.shape[1])
            check_size(row, size)
            regions = row_regions(self._seen(row), size, with_masks=self.options.shape == "mask")
        except (MaskError, TypeError, ValueError, IndexError) as problem:
            raise UserError(f"image {image_id!r}: {problem}") from None
        if self.config.startswith(_WITH_PERSONS) and not regions.person_mask.any():
            raise UserError(f"image {image_id!r}: nobody is marked, so {self.config} would hit the person")
        drawn = self._draw(image_id, size, regions, said)
        (changed,) = redo_all(
            pixels,
            [drawn],
            person_mask=regions.person_mask,
            objects=regions.objects,
            object_masks=regions.object_masks,
        )
        return {"image": picture_of(changed), "perturbation": perturbation_field(drawn)}

    def _seen(self, row: Row) -> Row:
        """The columns of a row that play a part: reading masks and boxes costs half as much as a change of colours."""
        persons = PERSONS if self.config.startswith(_WITH_PERSONS) else ()
        objects = ("objects",) if self.config.startswith(_WITH_OBJECTS) else ()
        return {name: row[name] for name in (*persons, *objects) if name in row}

    def _draw(self, image_id: str, size: tuple[int, int], regions: Regions, said: Mapping[str, Any]) -> Any:
        example = Example(
            image_id=image_id,
            gender="woman",  # plays no part in what is drawn
            image=ImageBytes(b""),
            size=size,
            persons=(),
            objects=regions.objects,
        )
        return draw_config(
            self.config,
            example,
            regions,
            benchmark=said.get("benchmark", "") if self.benchmark is None else self.benchmark,
            seed=said.get("seed", 0) if self.seed is None else self.seed,
            options=self.options,
        )

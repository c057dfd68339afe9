"""Perturbs a loaded dataset as it is read; nothing is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from PIL import Image

from truegap.build.draws import draw_config
from truegap.build.plan import choose_configs
from truegap.build.rows import perturbation_field, row_regions
from truegap.perturbations import Options, redo
from truegap.schema import SWAP, Example, ImageBytes, Region

DatasetT = TypeVar("DatasetT")

NEEDED = ("image", "image_id", "height", "width", "person_boxes", "person_masks", "objects")
"""Columns that a perturbation needs, as every built benchmark has them."""

Row = Mapping[str, Any]


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

    Args:
        dataset: A `datasets.Dataset` or `IterableDataset` with the columns `NEEDED`, such as config `original` of a
            built benchmark.
        config: Such as `background-strong`; any but the background swaps, which need a second image.
        benchmark: Part of the random key; default: what the row says.
        seed: Part of the random key; default: what the row says, else 0.
        options: Of the perturbation; default: the paper's.

    Returns:
        A dataset of the same kind. Its column `perturbation` says what was drawn.

    Raises:
        ValueError: The config cannot be made on the fly, or a column is missing.
    """
    from datasets import IterableDataset

    (name,) = choose_configs([config])
    if name.startswith(SWAP):
        raise ValueError(f"{config} needs a second image: build it with `truegap build --configs {config}`")
    columns = getattr(dataset, "column_names", None)
    if columns is not None and (missing := [each for each in NEEDED if each not in columns]):
        raise ValueError(f"the dataset has no column {', '.join(missing)}: load config `original` of a built benchmark")

    def change(row: Row) -> dict[str, Any]:
        return _change(row, name, benchmark, seed, options or Options())

    if isinstance(dataset, IterableDataset):
        streamed: DatasetT = dataset.map(change)
        return streamed
    lazy: DatasetT = dataset.with_transform(_batched(change))  # type: ignore[attr-defined]
    return lazy


def _batched(change: Callable[[Row], dict[str, Any]]) -> Callable[[Mapping[str, list[Any]]], dict[str, list[Any]]]:
    def transform(batch: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
        rows = [dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)]
        rows = [{**row, **change(row)} for row in rows]
        return {name: [row[name] for row in rows] for name in rows[0]}

    return transform


def _change(row: Row, config: str, benchmark: str | None, seed: int | None, options: Options) -> dict[str, Any]:
    said = row.get("perturbation") or {}
    regions = row_regions(row, with_masks=options.shape == "mask")
    example = Example(
        image_id=row["image_id"],
        gender="woman",  # plays no part in what is drawn
        image=ImageBytes(b""),
        size=(row["height"], row["width"]),
        persons=(),
        objects=tuple(Region(each["id"], each["label"], tuple(each["box"]), each["mask"]) for each in row["objects"]),
    )
    drawn = draw_config(
        config,
        example,
        regions,
        benchmark=said.get("benchmark", "") if benchmark is None else benchmark,
        seed=said.get("seed", 0) if seed is None else seed,
        options=options,
    )
    image: Image.Image = row["image"]
    changed = redo(
        np.asarray(image.convert("RGB")),
        drawn,
        person_mask=regions.person_mask,
        objects=regions.objects,
        object_masks=regions.object_masks,
    )
    return {"image": Image.fromarray(changed), "perturbation": perturbation_field(drawn)}

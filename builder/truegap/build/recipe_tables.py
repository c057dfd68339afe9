"""The tables of a recipe: a row per image and config, and the regions that are published with it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from truegap.build.cells import CELLS
from truegap.build.rows import columns, written
from truegap.errors import UserError, first_line

MOST = 2_000_000
"""Rows of a table; Open Images has 1.7 million photographs."""

GROUPS = {
    "regions": ("person_boxes", "person_masks", "person_origins", "objects"),
    "terms": ("source", "license", "attribution"),
}
"""Columns of a built benchmark whose content has a digest of its own; all others but image and draw are `labels`."""

NOT_SHARED = ("image", "perturbation")
"""Columns that the configs do not share."""


def row_schema() -> Any:
    """The table of a config: which image, under which terms, what was drawn, and how the result is known again."""
    import pyarrow as pa

    text = pa.string()
    return pa.schema(
        [
            pa.field("image_id", text, nullable=False),
            pa.field("source", text),
            pa.field("license", text),
            pa.field("attribution", text),
            pa.field("perturbation", columns({}).arrow_schema.field("perturbation").type, nullable=False),
            pa.field("image_sha256", text, nullable=False),
            # None for the original, whose bytes are those of the source.
            pa.field("averages", pa.list_(pa.uint16(), CELLS)),
        ]
    )


def region_schema() -> Any:
    """The table of regions; without a box, it is the mask of a region that the source annotates."""
    import pyarrow as pa

    text = pa.string()
    return pa.schema(
        [
            pa.field("image_id", text, nullable=False),
            pa.field("kind", text, nullable=False),
            pa.field("place", pa.int32(), nullable=False),
            pa.field("id", pa.int64()),
            pa.field("label", text),
            pa.field("box", pa.list_(pa.float64(), 4)),
            pa.field("mask", text),
            pa.field("origin", text, nullable=False),
        ]
    )


def write_table(path: Path, rows: Iterable[Mapping[str, Any]], schema: Any) -> None:
    """Writes a table into a folder that is made for it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), path, compression="zstd")


def read_table(path: Path, schema: Any) -> list[dict[str, Any]]:
    """Reads a table that somebody else may have made.

    Raises:
        UserError: It is no parquet file, is torn, has other columns, or empty cells where there must be something.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            if file.metadata.num_rows > MOST:
                raise UserError(f"{path}: more than {MOST:,} rows")
            table = file.read().select(schema.names).cast(schema)
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise UserError(f"{path}: {first_line(error)}; get the recipe again") from None
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def field_lines(row: Mapping[str, Any]) -> dict[str, str]:
    """The content of a built row but for image and draw, a line per group; `digests` makes one number of them."""
    grouped = {name for names in GROUPS.values() for name in names}
    groups = {**GROUPS, "labels": [name for name in row if name not in grouped and name not in NOT_SHARED]}
    lines = {}
    for group, names in groups.items():
        text = written({name: row[name] for name in sorted(names)})
        lines[group] = hashlib.sha256("\n".join(text.values()).encode()).hexdigest()
    return lines


def digests(lines: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """One SHA-256 per group over the rows of all images, in the order of their ids: `lines` by image id.

    It says whether two builds agree in labels, regions and terms, and tells nothing about any one image.
    """
    return {
        group: hashlib.sha256("".join(f"{each} {lines[each][group]}\n" for each in sorted(lines)).encode()).hexdigest()
        for group in (*GROUPS, "labels")
    }

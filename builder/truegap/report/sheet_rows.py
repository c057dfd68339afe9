"""What a contact sheet shows: the rows that it needs, read from the row groups that hold them alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

from truegap.build.images import UnusableImageError, decode
from truegap.build.manifest import Manifest
from truegap.build.rows import perturbation_of
from truegap.errors import UserError
from truegap.results.show import plain
from truegap.schema import GENDERS, Perturbation

_EXPLAINED = {"control": "re-encoded", "control-hsv": "HSV and back"}


@dataclass(frozen=True, slots=True)
class Tile:
    """One picture of the sheet, at its size there, and what was drawn for it."""

    picture: Image.Image
    caption: str


@dataclass(frozen=True, slots=True)
class Credit:
    """Whose an image is."""

    image_id: str
    license: str
    attribution: str


@dataclass(frozen=True, slots=True)
class Shown:
    """One row of the sheet.

    Attributes:
        image_id: As in the benchmark.
        gender: The label.
        tiles: One per config.
        credits: Of the image, and of those whose background is seen in it.
    """

    image_id: str
    gender: str
    tiles: tuple[Tile, ...]
    credits: tuple[Credit, ...]


def caption(drawn: Perturbation) -> str:
    """What was drawn for an image, in a few words; the values come first, since narrow columns cut what follows.

    Args:
        drawn: As the row's column `perturbation` has it.
    """
    if drawn.shift is not None and drawn.feature in ("color", "lighting"):
        return f"shift {drawn.shift:+d}"
    if drawn.radius is not None:
        return f"radius {drawn.radius:g}"
    if drawn.donor is not None:
        return f"from {plain(drawn.donor, 40)}"
    if drawn.n_objects is not None:
        if drawn.boxes is None:
            return f"{len(drawn.object_ids or ())} of {drawn.n_objects} objects"
        said = f"{len(drawn.boxes)} of {drawn.n_objects} elsewhere"
        return f"{said}, {drawn.overlapping} overlapping" if drawn.overlapping else said
    return _EXPLAINED.get(drawn.feature, "")


def read_shown(
    folder: Path, manifest: Manifest, configs: Sequence[str], places: Sequence[int], column: int
) -> tuple[Shown, ...]:
    """The rows of a sheet.

    Args:
        folder: Of the built benchmark.
        manifest: Its manifest.
        configs: One tile each.
        places: Positions in `manifest.rows.image_id`.
        column: No tile is wider or higher, in pixels.

    Raises:
        UserError: The build is damaged.
    """
    tiles: dict[int, list[Tile]] = {place: [] for place in places}
    sources: dict[int, list[str]] = {place: [manifest.rows.image_id[place]] for place in places}
    genders: dict[int, str] = {}
    for config in configs:
        for place, row in _rows(folder, manifest, config, places, ["gender", "perturbation", "image"]).items():
            drawn = perturbation_of(row["perturbation"])
            tiles[place].append(Tile(_small(row, config, column), caption(drawn)))
            sources[place] += [drawn.donor] if drawn.donor is not None else []
            genders[place] = GENDERS[row["gender"]]
    owners = _credits(folder, manifest, configs[0], {each for some in sources.values() for each in some})
    return tuple(
        Shown(
            manifest.rows.image_id[place],
            genders[place],
            tuple(tiles[place]),
            tuple(owners[each] for each in dict.fromkeys(sources[place])),
        )
        for place in places
    )


def _credits(folder: Path, manifest: Manifest, config: str, image_ids: set[str]) -> dict[str, Credit]:
    places = [place for place, image_id in enumerate(manifest.rows.image_id) if image_id in image_ids]
    rows = _rows(folder, manifest, config, places, ["license", "attribution"])
    found = {
        row["image_id"]: Credit(row["image_id"], plain(row["license"], 80), plain(row["attribution"], 400))
        for row in rows.values()
    }
    return {each: found.get(each, Credit(each, "unknown", "")) for each in image_ids}


def _rows(
    folder: Path, manifest: Manifest, config: str, places: Sequence[int], columns: Sequence[str]
) -> dict[int, Mapping[str, Any]]:
    """These columns of the rows at these positions, from the row groups that hold them alone.

    Raises:
        UserError: They are not the rows of which the manifest tells.
    """
    import pyarrow.parquet as pq

    data = folder / "data" / config
    found: dict[int, Mapping[str, Any]] = {}
    start = 0
    for file in (file for split in manifest.splits for file in sorted(data.glob(f"{split}-*.parquet"))):
        with pq.ParquetFile(file) as parquet:
            for group in range(parquet.num_row_groups):
                end = start + parquet.metadata.row_group(group).num_rows
                here = [place for place in places if start <= place < end]
                if here:
                    table = parquet.read_row_group(group, columns=["image_id", *columns])
                    found |= {place: table.slice(place - start, 1).to_pylist()[0] for place in here}
                start = end
    if any(place not in found or found[place]["image_id"] != manifest.rows.image_id[place] for place in places):
        raise UserError(f"{folder}: rows of {config} differ from its manifest: build the benchmark again")
    return found


def _small(row: Mapping[str, Any], config: str, column: int) -> Image.Image:
    """The picture, no wider and no higher than a column."""
    try:
        picture = Image.fromarray(decode(row["image"]["bytes"]))
    except UnusableImageError as problem:
        raise UserError(f"image {plain(row['image_id'], 60)} of {config}: {problem}; build it again") from None
    scale = column / max(picture.size)
    size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
    return picture.resize(size, Image.Resampling.LANCZOS)

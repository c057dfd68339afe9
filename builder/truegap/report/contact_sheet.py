"""The contact sheet of a built benchmark: a row per image, a column per config, and under each picture what was drawn.

Only the rows that are shown are read, so that the sheet of a build of any size costs the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from truegap.build.manifest import Manifest
from truegap.errors import UserError
from truegap.report.sheet_rows import Shown, read_shown
from truegap.results.show import plain
from truegap.schema import Strength
from truegap.sources import load_benchmark

COLUMN = 160
"""Width of a picture in pixels where no width is asked for."""
NARROWEST = 48
MOST_PIXELS = 120_000_000

_MARGIN, _GAP, _GROUP_GAP, _LABEL = 20, 6, 18, 120
_TITLE, _TEXT, _SMALL = 18, 14, 12
_LINE = 18
_INDENT = "    "
_DARK, _GREY, _RULE, _PAPER = "#1f2328", "#6b7280", "#c9ced6", "#ffffff"
_ARMS = (*Strength, "same", "cross", "hsv")


def choose_places(manifest: Manifest, images: int, sample_ids: Sequence[str] = ()) -> list[int]:
    """Which rows of a benchmark are shown.

    Args:
        manifest: Of the benchmark.
        images: How many, spread evenly over the benchmark; all if it has fewer.
        sample_ids: Ids of images instead, in the order wanted.

    Returns:
        Positions in `manifest.rows.image_id`.

    Raises:
        UserError: The benchmark has no image of such an id.
    """
    ids = manifest.rows.image_id
    if not sample_ids:
        return [number * len(ids) // images for number in range(images)] if images < len(ids) else [*range(len(ids))]
    places = {image_id: place for place, image_id in enumerate(ids)}
    if absent := [plain(each, 60) for each in sample_ids if each not in places]:
        some = ", ".join(plain(each, 60) for each in ids[:3])
        raise UserError(f"{manifest.benchmark} has no image {', '.join(absent)}; its ids are like {some}")
    return [places[each] for each in dict.fromkeys(sample_ids)]


def contact_sheet(
    folder: Path,
    manifest: Manifest,
    configs: Sequence[str],
    places: Sequence[int],
    *,
    width: int | None = None,
) -> Image.Image:
    """Draws the sheet.

    Args:
        folder: Of the built benchmark.
        manifest: Its manifest.
        configs: One column each; all must be in the benchmark.
        places: The rows, as `choose_places` gives them.
        width: Of the whole sheet in pixels; by default `COLUMN` per config.

    Returns:
        RGB. At its foot stand licence and attribution of every image shown, which must travel with it, and which of
        them may not be published.

    Raises:
        UserError: The width is too small for so many configs, the sheet too large, or the build damaged.
    """
    lefts, column = _layout(configs, width)
    total = lefts[-1] + column + _MARGIN
    if total * len(places) * column > MOST_PIXELS:
        raise UserError(f"a sheet of {len(places)} images x {len(configs)} configs is too large: give fewer --images")
    shown = read_shown(folder, manifest, configs, places, column)
    notes = _foot(shown, manifest.benchmark, configs, total - 2 * _MARGIN)
    heights = [max(tile.picture.height for tile in row.tiles) + _LINE + _GAP for row in shown]
    head = _MARGIN + 5 * _LINE + _GAP
    sheet = Image.new("RGB", (total, head + sum(heights) + _GAP + len(notes) * _LINE + _MARGIN), _PAPER)
    pen = _Pen(ImageDraw.Draw(sheet))
    _draw_head(pen, manifest, configs, lefts, column, len(places))
    top = head
    for row, height in zip(shown, heights, strict=True):
        _draw_row(sheet, pen, row, lefts, column, top)
        top += height
    for number, line in enumerate(notes):
        pen.write((_MARGIN, top + _GAP + number * _LINE), line, total, _SMALL, _GREY)
    return sheet


def _layout(configs: Sequence[str], width: int | None) -> tuple[list[int], int]:
    """Left edge of every column, and the width of a column."""
    groups = [len(list(members)) for _, members in groupby(configs, key=lambda config: _words(config)[0])]
    fixed = 2 * _MARGIN + _LABEL + len(groups) * _GROUP_GAP + (len(configs) - len(groups)) * _GAP
    column = COLUMN if width is None else (width - fixed) // len(configs)
    if column < NARROWEST:
        least = fixed + NARROWEST * len(configs)
        raise UserError(f"--width {width} is too narrow for {len(configs)} configs: give at least {least}")
    lefts = []
    left = _MARGIN + _LABEL
    for group in groups:
        left += _GROUP_GAP
        lefts += [left + number * (column + _GAP) for number in range(group)]
        left = lefts[-1] + column
    return lefts, column


def _words(config: str) -> tuple[str, str]:
    """A config's name in two lines: what stands over a group of columns, and what over its own."""
    group, _, arm = config.rpartition("-")
    return (group, arm) if group and arm in _ARMS else (config, "")


class _Pen:
    """Writes text that never leaves its space: smaller first, then cut."""

    def __init__(self, draw: ImageDraw.ImageDraw) -> None:
        self.draw = draw

    def write(
        self, at: tuple[float, float], text: str, room: float, size: int, colour: str = _DARK, *, centre: bool = False
    ) -> None:
        """Writes a line from `at`, or around the middle of the `room` that begins there."""
        font, line = _fitted(text, room, size)
        left = at[0] + (room - font.getlength(line)) / 2 if centre else at[0]
        self.draw.text((left, at[1]), line, colour, font)

    def rule(self, left: float, right: float, top: float) -> None:
        """Draws a thin line."""
        self.draw.line((left, top, right, top), _RULE)


@cache
def _font(size: int) -> Any:
    """Pillow's own font: unpacking it takes milliseconds."""
    return ImageFont.load_default(size)


def _fitted(text: str, room: float, size: int) -> tuple[Any, str]:
    font = _font(size)
    while size > _SMALL - 3 and font.getlength(text) > room:
        size -= 1
        font = _font(size)
    line = text
    while len(line) > 1 and font.getlength(line) > room:
        line = f"{line.rstrip('…')[:-1]}…"
    return font, line


def _draw_head(
    pen: _Pen, manifest: Manifest, configs: Sequence[str], lefts: Sequence[int], column: int, count: int
) -> None:
    name = f"{plain(manifest.benchmark, 60)} {plain(manifest.version, 20)}"
    there = len(manifest.rows.image_id)
    room = lefts[-1] + column - _MARGIN
    pen.write((_MARGIN, _MARGIN), name, room, _TITLE)
    pen.write(
        (_MARGIN, _MARGIN + 1.3 * _LINE), f"{count} of {there:,} images, seed {manifest.seed}", room, _TEXT, _GREY
    )
    top = _MARGIN + 3 * _LINE
    for group, members in groupby(zip(configs, lefts, strict=True), key=lambda pair: _words(pair[0])[0]):
        edges = list(members)
        left, right = edges[0][1], edges[-1][1] + column
        pen.write((left, top - 2), group, right - left, _TEXT, centre=True)
        pen.rule(left, right, top + _LINE - 2)
        for config, edge in edges:
            pen.write((edge, top + _LINE), _words(config)[1], column, _SMALL, _GREY, centre=True)


def _draw_row(sheet: Image.Image, pen: _Pen, row: Shown, lefts: Sequence[int], column: int, top: int) -> None:
    for number, (text, size) in enumerate(((plain(row.image_id, 60), _TEXT), (row.gender, _SMALL))):
        pen.write((_MARGIN, top + number * _LINE), text, _LABEL, size, _GREY if number else _DARK)
    deepest = max(tile.picture.height for tile in row.tiles)
    for tile, left in zip(row.tiles, lefts, strict=True):
        sheet.paste(tile.picture, (left + (column - tile.picture.width) // 2, top))
        pen.write((left, top + deepest + 2), tile.caption, column, _SMALL, _GREY, centre=True)


def _foot(shown: Sequence[Shown], benchmark: str, configs: Sequence[str], room: int) -> list[str]:
    """Whose the images are: one line for all that share licence and author, none of it cut."""
    owners = list(dict.fromkeys(each for row in shown for each in row.credits))
    perturbed = set(configs) != {"original"}
    private = [each.image_id for each in owners if not _publishable(benchmark, each.license, perturbed=perturbed)]
    lines = [f"Not for publication, by their licence or for lack of one: {_listed(private)}"] if private else []
    for terms in dict.fromkeys((each.license, each.attribution) for each in owners):
        ids = [each.image_id for each in owners if (each.license, each.attribution) == terms]
        lines.append(f"{_listed(ids)}: {', '.join(filter(None, terms))}")
    font = _font(_SMALL)
    return [part for line in lines for part in _wrapped(line, room, font)]


def _publishable(benchmark: str, license_name: str, *, perturbed: bool) -> bool:
    """Whether an image under this licence may be published; not in a benchmark that nobody knows."""
    try:
        return load_benchmark(benchmark).publishable(license_name, perturbed=perturbed)
    except UserError:
        return False


def _listed(image_ids: Sequence[str]) -> str:
    return ", ".join(plain(each, 60) for each in image_ids)


def _wrapped(text: str, room: int, font: Any) -> list[str]:
    """The text in lines that fit, cut between words where that is possible; all but the first are indented."""
    lines, line = [], ""
    for character in text:
        line += character
        if font.getlength(line) > room:
            space = line.rfind(" ", len(_INDENT) + 1, -1)
            end = space + 1 if space > 0 else len(line) - 1
            lines.append(line[:end])
            line = _INDENT + line[end:]
    return [*lines, line]

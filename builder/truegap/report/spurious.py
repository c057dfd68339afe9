"""Acc_b against Δ as a picture: one PNG per association, and a page with all of them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from markupsafe import Markup

from truegap.errors import UserError
from truegap.figures.labels import metric_label
from truegap.files.atomic import write_bytes
from truegap.results.runs import write_record
from truegap.results.show import NONE, interval, percent, plain, signed
from truegap.schema import Feature
from truegap.spurious.records import AssociationRecord, AssociationsRecord, CellRecord, PearsonRecord

JSON, HTML = "association.json", "association.html"

COLOURS = {
    Feature.COLOR: "#c2410c",
    Feature.LIGHTING: "#b45ec9",
    Feature.OBJECT: "#0f766e",
    Feature.BACKGROUND: "#1d4ed8",
}
_INK, _RULE = "#374151", "#e5e7eb"
_WIDTH, _HEIGHT = 640, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 40, 48
_TICKS = 6
_SCALE = 2
_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}


@dataclass(frozen=True, slots=True)
class _Line:
    start: tuple[float, float]
    end: tuple[float, float]
    colour: str
    width: float = 1

    def svg(self) -> Markup:
        pattern = Markup('<line x1="{}" y1="{}" x2="{}" y2="{}" stroke="{}" stroke-width="{}"/>')
        return pattern.format(*self.start, *self.end, self.colour, self.width)


@dataclass(frozen=True, slots=True)
class _Text:
    at: tuple[float, float]
    text: str
    anchor: str = "start"

    def svg(self) -> Markup:
        pattern = Markup('<text x="{}" y="{}" text-anchor="{}" font-size="13" fill="{}">{}</text>')
        return pattern.format(*self.at, self.anchor, _INK, self.text)


@dataclass(frozen=True, slots=True)
class _Dot:
    at: tuple[float, float]
    colour: str
    title: str = ""

    def svg(self) -> Markup:
        pattern = Markup('<circle cx="{}" cy="{}" r="4" fill="{}" fill-opacity="0.75"><title>{}</title></circle>')
        return pattern.format(*self.at, self.colour, self.title)


def write_association(found: AssociationsRecord, out: Path) -> Path:
    """Writes the numbers, a PNG per association, and a page.

    Args:
        found: From `truegap.spurious.associate`.
        out: A folder, made where it is absent.

    Returns:
        The page.

    Raises:
        UserError: `out` cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_record(out / JSON, found)
        for each in found.associations:
            write_bytes(out / f"{name_of(each)}.png", scatter_png(each))
        write_bytes(out / HTML, _page(found).encode())
    except OSError as error:
        raise UserError(f"{out} cannot be written: {error.strerror}; choose another --out") from None
    return out / HTML


def name_of(association: AssociationRecord) -> str:
    """A file name of our own: nothing foreign gets into it."""
    parts = re.findall(r"[a-z0-9_]+", f"association {association.metric} {association.reader}".lower())
    return "-".join(parts)[:100]


def sentence(association: AssociationRecord) -> str:
    """The association in words."""
    cells = f"{metric_label(association.metric)}, Acc_b of {plain(association.reader)}: {_said(association.over_cells)}"
    return f"{cells}; over features, strengths averaged, {_said(association.over_features)}"


def _said(pearson: PearsonRecord) -> str:
    if pearson.r is None:
        return f"no r over {pearson.n} cells"
    span = f" {interval(pearson.low, pearson.high, signed)}" if pearson.low is not None else ""
    p_value = NONE if pearson.p_value is None else f"{pearson.p_value:.2g}"
    return f"r = {signed(pearson.r)}{span} over {pearson.n} cells, p = {p_value}"


def scatter_svg(association: AssociationRecord) -> Markup:
    """The scatter as inline SVG; a dot tells its cell when pointed at."""
    whole = Markup('<svg role="img" viewBox="0 0 {} {}" aria-label="{}" font-family="sans-serif">{}</svg>')
    shapes = Markup().join(each.svg() for each in _shapes(association))
    return whole.format(_WIDTH, _HEIGHT, sentence(association), shapes)


def scatter_png(association: AssociationRecord) -> bytes:
    """The scatter as a PNG."""
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", (_WIDTH * _SCALE, _HEIGHT * _SCALE), "white")
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(13 * _SCALE)

    def at(point: tuple[float, float]) -> tuple[float, float]:
        return point[0] * _SCALE, point[1] * _SCALE

    for each in _shapes(association):
        match each:
            case _Line():
                pen.line([at(each.start), at(each.end)], each.colour, round(each.width * _SCALE))
            case _Dot():
                pen.circle(at(each.at), 4 * _SCALE, each.colour, outline="white", width=_SCALE)
            case _Text():
                pen.text(at(each.at), each.text, _INK, font, anchor=_ANCHORS[each.anchor])
    stream = BytesIO()
    picture.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _shapes(association: AssociationRecord) -> list[_Line | _Text | _Dot]:
    """What is drawn, from back to front: Acc_b in percent across, Δ in percent upwards."""
    cells = association.cells
    across = _Axis([100 * each.accuracy for each in cells], _LEFT, _WIDTH - _RIGHT, least=(45.0, 60.0))
    upwards = _Axis([each.delta for each in cells], _HEIGHT - _BOTTOM, _TOP, least=(0.0, 1.0))
    left, right, bottom = _LEFT, _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    shapes: list[_Line | _Text | _Dot] = []
    for tick in across.ticks:
        x = across(tick)
        shapes += [_Line((x, _TOP), (x, bottom), _RULE), _Text((x, bottom + 18), f"{tick:,.10g}", "middle")]
    for tick in upwards.ticks:
        y = upwards(tick)
        shapes += [_Line((left, y), (right, y), _RULE), _Text((left - 8, y + 4), f"{tick:,.10g}", "end")]
    shapes += [
        _Text(((left + right) / 2, _HEIGHT - 10), "Acc_b, % (50: the feature tells nothing)", "middle"),
        _Text((8, 20), "Δ, %"),
    ]
    for place, (feature, colour) in enumerate(COLOURS.items()):
        x = left + 60 + 120 * place
        shapes += [_Dot((x, 15), colour), _Text((x + 10, 20), feature.value)]
    shapes += _fitted(cells, across, upwards)
    for cell in cells:
        title = (
            f"{plain(cell.model)} on {plain(cell.benchmark)}, {cell.feature}, {cell.strength}: "
            f"Acc_b {percent(100 * cell.accuracy)} %, Δ {percent(cell.delta)} %"
        )
        where = (across(100 * cell.accuracy), upwards(cell.delta))
        shapes.append(_Dot(where, COLOURS.get(Feature(cell.feature), _INK), title))
    return shapes


def _fitted(cells: Sequence[CellRecord], across: _Axis, upwards: _Axis) -> list[_Line | _Text | _Dot]:
    """The least-squares line, within the picture."""
    x, y = np.array([[100 * each.accuracy, each.delta] for each in cells]).reshape(-1, 2).T
    if len(cells) < 2 or np.ptp(x) == 0:  # noqa: PLR2004  a line needs two points
        return []
    slope, level = np.polyfit(x, y, 1)
    ends = np.array([x.min(), x.max()])
    if slope:
        ends = np.clip(ends, *sorted((np.array([upwards.low, upwards.high]) - level) / slope))
    start, end = ((across(each), upwards(level + slope * each)) for each in ends.tolist())
    return [_Line(start, end, _INK, 1.5)]


class _Axis:
    """Values along a line of pixels, with round ticks around all of them."""

    def __init__(self, values: Sequence[float], start: float, end: float, *, least: tuple[float, float]) -> None:
        low, high = min([*values, least[0]]), max([*values, least[1]])
        size = 10.0 ** math.floor(math.log10((high - low) / _TICKS))
        step = next(size * each for each in (1, 2, 5, 10) if (high - low) / (size * each) <= _TICKS)
        first, last = math.floor(low / step), math.ceil(high / step)
        self.ticks = [step * place for place in range(first, last + 1)]
        self.low, self.high = self.ticks[0], self.ticks[-1]
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(self._start + share * (self._end - self._start), 1)


_PAGE = Markup("""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>What features give away, and what moves scores</title>
<style>
body {{ font: 16px/1.5 sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #1f2328 }}
svg {{ width: 100% }}
</style>
<h1>What features give away, and what moves scores</h1>
<p>Acc_b is how well a classifier tells gender from one feature of the images alone: 50 % is chance. Δ is how far a
perturbation of that feature moves a model's bias score. Every dot is a model, a feature and a strength.</p>
{}
<p>Intervals (Fisher) and p-values take the dots as independent. They are not: the strengths of a feature share their
Acc_b, and the models their images. So they say less than they seem to; r over features, with the strengths averaged,
stands beside. A Δ is large, too, where the original score is near 0.</p>
</html>
""")
_SECTION = Markup("<h2>{}</h2>\n{}\n<p>{}.</p>\n{}")


def foreign_runs(found: AssociationsRecord) -> str:
    """How many runs are not in it, in words; empty where all are."""
    count = len(found.foreign_run_ids)
    if not count:
        return ""
    runs = "1 run is" if count == 1 else f"{count} runs are"
    return f"{runs} left out: no result is of the benchmark and of a backbone or the model"


def _page(found: AssociationsRecord) -> str:
    foreign = foreign_runs(found)
    sections = [Markup("<p>{}.</p>").format(foreign)] if foreign else []
    for each in found.associations:
        left_out = "; ".join(f"{count} without a number: {plain(reason)}" for reason, count in each.left_out.items())
        more = Markup("<p>{}.</p>").format(left_out) if left_out else ""
        title = f"{metric_label(each.metric)}, {plain(each.reader)}"
        sections.append(_SECTION.format(title, scatter_svg(each), sentence(each), more))
    return _PAGE.format(Markup("\n").join(sections))

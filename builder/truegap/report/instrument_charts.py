"""Charts of a check of the instrument, as inline SVG: bias against rho, and tables of shares as heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from truegap.figures.svg import line, text

_PANEL = 176
_HEIGHT = 168
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 8, 24, 30
_CELL_WIDTH, _CELL_HEIGHT, _NAME = 108, 36, 124
_HEAD = 26


@dataclass(frozen=True, slots=True)
class Step:
    """One correlation of `growth`.

    Attributes:
        rho: The correlation.
        bias: Measured.
        low: Lower end of its interval.
        high: Upper end.
        planted: What was planted.
        change: Absolute change under the own perturbation; None where there is none.
        predicted: What the rendering predicts of it.
    """

    rho: float
    bias: float
    low: float
    high: float
    planted: float
    change: float | None
    predicted: float | None


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of `heat`.

    Attributes:
        value: In percent, or in points.
        under: What stands below it, such as the prediction.
        own: Whether it is outlined.
    """

    value: float
    under: float
    own: bool


def growth(panels: Sequence[tuple[str, Sequence[Step]]], title: str) -> Markup:
    """A panel per reader, correlation across: bias (dots with whiskers) and own change (squares), predictions as lines.

    Args:
        panels: Name and steps of each reader.
        title: What the chart shows, for those who do not see it.
    """
    top = max(max(step.high, step.planted) for _, steps in panels for step in steps) * 1.05
    bottom = min(0.0, *(step.low for _, steps in panels for step in steps))
    parts = []
    for place, (name, steps) in enumerate(panels):
        left = place * _PANEL + _LEFT
        width, height = _PANEL - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

        def x(rho: float, left: int = left, width: int = width) -> float:
            return round(left + 6 + rho * (width - 12), 1)

        def y(value: float, height: int = height) -> float:
            return round(_TOP + (top - value) / (top - bottom) * height, 1)

        parts.append(text(left + width / 2, 14, name, "label", "middle"))
        for tick in (0.0, 0.2, 0.4):
            parts.append(line(left, y(tick), left + width, y(tick), "grid"))
            parts.append(text(left - 4, y(tick) + 4, f"{tick:g}", "tick", "end"))
        parts += [text(x(step.rho), _HEIGHT - 16, f"{step.rho:g}", "tick", "middle") for step in steps]
        parts.append(text(left + width / 2, _HEIGHT - 3, "rho", "axis", "middle"))
        parts.append(_path([(x(step.rho), y(step.planted)) for step in steps], "planted"))
        parts.append(_path([(x(s.rho), y(s.predicted)) for s in steps if s.predicted is not None], "planted"))
        for step in steps:
            parts.append(line(x(step.rho), y(step.low), x(step.rho), y(step.high), "whisker"))
            parts.append(Markup('<circle class="dot" cx="{}" cy="{}" r="3.5"/>').format(x(step.rho), y(step.bias)))
            if step.change is not None:
                square = Markup('<rect class="square" x="{}" y="{}" width="7" height="7"/>')
                parts.append(square.format(x(step.rho) - 3.5, y(step.change) - 3.5))
    return _svg(parts, _PANEL * len(panels), _HEIGHT, title)


def heat(
    rows: Sequence[tuple[str, Sequence[Cell]]],
    columns: Sequence[str],
    title: str,
    *,
    unit: str = " %",
    full: float = 100.0,
) -> Markup:
    """A table of percentages or points; the fuller the colour the more, what belongs together is outlined.

    Args:
        rows: Name and cells of each row.
        columns: Their names.
        title: What the chart shows, for those who do not see it.
        unit: What stands behind each value.
        full: Value of the fullest colour.
    """
    parts = [
        text(_NAME + (place + 0.5) * _CELL_WIDTH, _HEAD - 9, name, "label", "middle")
        for place, name in enumerate(columns)
    ]
    for row, (name, cells) in enumerate(rows):
        y = _HEAD + row * _CELL_HEIGHT
        parts.append(text(_NAME - 8, y + _CELL_HEIGHT / 2 + 4, name, "label", "end"))
        for place, cell in enumerate(cells):
            x = _NAME + place * _CELL_WIDTH
            heat_ = round(100 * min(max(cell.value / full, 0.0), 1.0))
            box = Markup('<rect class="cell{}" x="{}" y="{}" width="{}" height="{}" rx="5" style="--heat: {}%"/>')
            kind = " own" if cell.own else ""
            parts.append(box.format(kind, x + 2, y + 2, _CELL_WIDTH - 4, _CELL_HEIGHT - 4, heat_))
            middle = x + _CELL_WIDTH / 2
            parts.append(text(middle, y + 16, f"{_whole(cell.value)}{unit}", "value", "middle"))
            parts.append(text(middle, y + 29, f"predicted {_whole(cell.under)}", "tick", "middle"))
    return _svg(parts, _NAME + _CELL_WIDTH * len(columns), _HEAD + _CELL_HEIGHT * len(rows) + 4, title)


def _whole(value: float) -> str:
    """Without the minus that a rounded 0 may have."""
    return f"{round(value)}"


def _path(points: Sequence[tuple[float, float]], kind: str) -> Markup:
    return Markup('<polyline class="{}" points="{}"/>').format(kind, " ".join(f"{x},{y}" for x, y in points))


def _svg(parts: Sequence[Markup], width: int, height: int, title: str) -> Markup:
    whole = Markup('<svg class="chart wide" role="img" viewBox="0 0 {} {}" aria-label="{}">{}</svg>')
    return whole.format(width, height, title, Markup().join(parts))

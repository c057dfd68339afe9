"""The bias of every model of a board against its sensitivity, as inline SVG whose dots lead to the models' pages."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from truegap.leaderboard.site.shelf import Row, short
from truegap.leaderboard.site.view import View
from truegap.results.compare import size_interval
from truegap.results.show import interval, number, percent

_WIDTH, _HEIGHT = 720, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 20, 16, 52
_TICKS = 6
_HEADROOM = 1.06
_MOST_WHISKERS = 150
"""With more models than this, whiskers would hide the dots."""
_MOST_LABELS = 14


def drawable(rows: Sequence[Row]) -> list[Row]:
    """The rows that have both a bias and a mean delta."""
    return [row for row in rows if _finite(row["bias"]) and _finite(row["mean_delta"])]


def plane(rows: Sequence[Row], title: str) -> Markup:
    """Size of the bias across, mean delta upwards; the lower left corner is the one to want.

    Args:
        rows: Of one board, each with a bias and a mean delta.
        title: What the chart shows, for those who do not see it.
    """
    if not rows:
        return Markup()
    across = _Axis(_top(rows, "bias"), _LEFT, _WIDTH - _RIGHT)
    upwards = _Axis(_top(rows, "mean_delta"), _HEIGHT - _BOTTOM, _TOP)
    parts = _grid(across, upwards)
    if blind := rows[0]["null"]:
        x = across(blind)
        parts.append(Markup('<line class="blind" x1="{0}" y1="{1}" x2="{0}" y2="{2}"/>').format(x, _TOP, upwards(0.0)))
        parts.append(Markup('<text class="tick" x="{}" y="{}">blind</text>').format(x + 4, _TOP + 12))
    if len(rows) <= _MOST_WHISKERS:
        parts += [part for row in rows for part in _whiskers(row, across, upwards)]
    parts += [_dot(row, across, upwards, labelled=len(rows) <= _MOST_LABELS) for row in rows]
    whole = Markup('<svg class="plane" role="group" viewBox="0 0 {} {}" aria-label="{}">{}</svg>')
    return whole.format(_WIDTH, _HEIGHT, title, Markup().join(parts))


class _Axis:
    """Values from 0 to `top` along a line of pixels; what lies beyond is drawn at its end."""

    def __init__(self, top: float, start: float, end: float) -> None:
        self.top, self.start, self.end = top, start, end

    def __call__(self, value: float) -> float:
        share = min(max(value / self.top, 0.0), 1.0)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        size = 10.0 ** math.floor(math.log10(self.top / _TICKS))
        step = next(size * each for each in (1, 2, 5, 10) if self.top / (size * each) <= _TICKS)
        return [step * place for place in range(int(self.top / step) + 1)]


def _grid(across: _Axis, upwards: _Axis) -> list[Markup]:
    line = Markup('<line class="grid" x1="{}" y1="{}" x2="{}" y2="{}"/>')
    text = Markup('<text class="tick" x="{}" y="{}" text-anchor="{}">{}</text>')
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = [line.format(across(tick), _TOP, across(tick), bottom) for tick in across.ticks()]
    parts += [line.format(_LEFT, upwards(tick), right, upwards(tick)) for tick in upwards.ticks()]
    parts += [text.format(across(tick), bottom + 18, "middle", f"{tick:,.10g}") for tick in across.ticks()]
    parts += [text.format(_LEFT - 8, upwards(tick) + 4, "end", f"{tick:,.10g}") for tick in upwards.ticks()]
    axis = Markup('<text class="axis" text-anchor="middle" {}>{}</text>')
    middle = f'x="{(_LEFT + right) / 2}" y="{_HEIGHT - 10}"'
    turned = f'transform="translate(16 {(_TOP + bottom) / 2}) rotate(-90)"'
    # Both are numbers of this module: nothing foreign is marked safe.
    parts.append(axis.format(Markup(middle), "size of the bias"))  # noqa: S704
    parts.append(axis.format(Markup(turned), "mean Δ, %"))  # noqa: S704
    return parts


def _whiskers(row: Row, across: _Axis, upwards: _Axis) -> list[Markup]:
    line = Markup('<line class="whisker" x1="{}" y1="{}" x2="{}" y2="{}"/>')
    x, y = across(abs(row["bias"])), upwards(row["mean_delta"])
    low, high = size_interval(row["bias_low"], row["bias_high"])
    parts = []
    if low is not None and high is not None:
        parts.append(line.format(across(low), y, across(high), y))
    low, high = row["mean_delta_low"], row["mean_delta_high"]
    if low is not None and high is not None:
        parts.append(line.format(x, upwards(low), x, upwards(high)))
    return parts


def _dot(row: Row, across: _Axis, upwards: _Axis, *, labelled: bool) -> Markup:
    x, y = across(abs(row["bias"])), upwards(row["mean_delta"])
    bias = f"{number(row['bias'])} {interval(row['bias_low'], row['bias_high'])}".rstrip()
    delta = (
        f"{percent(row['mean_delta'])} % {interval(row['mean_delta_low'], row['mean_delta_high'], percent)}".rstrip()
    )
    said = f"{row['model']}: bias {bias}, mean Δ {delta}"
    link = View(tab="model", model=short(row["key"])).query()
    label = Markup()
    if labelled:
        # Names near the right edge stand to the left of their dot.
        left = x > _WIDTH * 0.7
        place, anchor = (x - 10, "end") if left else (x + 10, "start")
        name = row["model"] if len(row["model"]) <= 24 else f"{row['model'][:23]}…"  # noqa: PLR2004
        label = Markup('<text class="name" x="{}" y="{}" text-anchor="{}">{}</text>').format(place, y - 7, anchor, name)
    return Markup(
        '<a href="{}" data-go aria-label="{}"><title>{}</title><circle class="dot {}" cx="{}" cy="{}" r="6"/>{}</a>'
    ).format(link, said, said, row["kind"], x, y, label)


def _top(rows: Sequence[Row], name: str) -> float:
    """The end of an axis: everything fits, but an interval without bound does not press the rest together."""
    largest = max(abs(row[name]) for row in rows)
    ends = [abs(row[f"{name}_{end}"]) for row in rows for end in ("low", "high") if _finite(row[f"{name}_{end}"])]
    return max(float(min(max([largest, *ends]), 2.5 * largest)) * _HEADROOM, 1e-9)


def _finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)

"""The bias of every model of a board against its sensitivity, as inline SVG whose dots lead to the models' pages."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from truegap.figures.svg import Axis, axis_end, line, text, tick_label
from truegap.leaderboard.site.shelf import Row, short
from truegap.leaderboard.site.view import View
from truegap.results.compare import size_interval
from truegap.results.show import interval, number, percent

_WIDTH, _HEIGHT = 720, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 20, 16, 52
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
    across = Axis(_top(rows, "bias"), _LEFT, _WIDTH - _RIGHT)
    upwards = Axis(_top(rows, "mean_delta"), _HEIGHT - _BOTTOM, _TOP)
    parts = _grid(across, upwards)
    if blind := rows[0]["null"]:
        x = across(blind)
        parts.append(line(x, _TOP, x, upwards(0.0), "blind"))
        parts.append(Markup('<text class="tick" x="{}" y="{}">blind</text>').format(x + 4, _TOP + 12))
    if len(rows) <= _MOST_WHISKERS:
        parts += [part for row in rows for part in _whiskers(row, across, upwards)]
    parts += [_dot(row, across, upwards, labelled=len(rows) <= _MOST_LABELS) for row in rows]
    whole = Markup('<svg class="plane" role="group" viewBox="0 0 {} {}" aria-label="{}">{}</svg>')
    return whole.format(_WIDTH, _HEIGHT, title, Markup().join(parts))


def _grid(across: Axis, upwards: Axis) -> list[Markup]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = [line(across(tick), _TOP, across(tick), bottom, "grid") for tick in across.ticks()]
    parts += [line(_LEFT, upwards(tick), right, upwards(tick), "grid") for tick in upwards.ticks()]
    parts += [text(across(tick), bottom + 18, tick_label(tick), "tick", "middle") for tick in across.ticks()]
    parts += [text(_LEFT - 8, upwards(tick) + 4, tick_label(tick), "tick", "end") for tick in upwards.ticks()]
    axis = Markup('<text class="axis" text-anchor="middle" {}>{}</text>')
    middle = f'x="{(_LEFT + right) / 2}" y="{_HEIGHT - 10}"'
    turned = f'transform="translate(16 {(_TOP + bottom) / 2}) rotate(-90)"'
    # Both are numbers of this module: nothing foreign is marked safe.
    parts.append(axis.format(Markup(middle), "size of the bias"))  # noqa: S704
    parts.append(axis.format(Markup(turned), "mean Δ, %"))  # noqa: S704
    return parts


def _whiskers(row: Row, across: Axis, upwards: Axis) -> list[Markup]:
    x, y = across(abs(row["bias"])), upwards(row["mean_delta"])
    low, high = size_interval(row["bias_low"], row["bias_high"])
    parts = []
    if low is not None and high is not None:
        parts.append(line(across(low), y, across(high), y, "whisker"))
    low, high = row["mean_delta_low"], row["mean_delta_high"]
    if low is not None and high is not None:
        parts.append(line(x, upwards(low), x, upwards(high), "whisker"))
    return parts


def _dot(row: Row, across: Axis, upwards: Axis, *, labelled: bool) -> Markup:
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
        label = text(place, y - 7, name, "name", anchor)
    return Markup(
        '<a href="{}" data-go aria-label="{}"><title>{}</title><circle class="dot {}" cx="{}" cy="{}" r="6"/>{}</a>'
    ).format(link, said, said, row["kind"], x, y, label)


def _top(rows: Sequence[Row], name: str) -> float:
    ends = [(row[name], row[f"{name}_{end}"]) for row in rows for end in ("low", "high")]
    return axis_end([(value, None if end is None else abs(end)) for value, end in ends], _HEADROOM)


def _finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)

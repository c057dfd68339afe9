"""Charts as inline SVG: pure functions from numbers to markup, coloured by the page's own style sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from truegap.figures.svg import Axis, axis_end, line, text, tick_label
from truegap.results.show import interval, number, percent

_WIDTH = 400
_ROW = 20
_LEFT, _RIGHT, _TOP, _BOTTOM = 126, 16, 8, 40
_HEIGHT = 290
_HEADROOM = 1.08


@dataclass(frozen=True, slots=True)
class Change:
    """One line of `change_chart`; all values in percent.

    Attributes:
        label: Name of the config.
        value: Delta.
        low: Lower end of its interval.
        high: Upper end.
        floor: Upper end of its control's delta: up to there it is noise.
        clear: Whether it is drawn as clear of the noise.
    """

    label: str
    value: float
    low: float | None
    high: float | None
    floor: float | None
    clear: bool


@dataclass(frozen=True, slots=True)
class Point:
    """One model of `plane`.

    Attributes:
        key: Short name, such as its number in the table.
        label: Full name, shown when pointed at.
        bias: Size of its bias.
        bias_low: Lower end.
        bias_high: Upper end.
        delta: Mean delta in percent.
        delta_low: Lower end.
        delta_high: Upper end.
    """

    key: str
    label: str
    bias: float
    bias_low: float | None
    bias_high: float | None
    delta: float
    delta_low: float | None
    delta_high: float | None


def change_chart(changes: Sequence[Change], title: str) -> Markup:
    """Dots with whiskers, one line per config; the grey band is the noise floor of each.

    Filled dots are clear of the noise, hollow ones are not.
    """
    known = [each for each in changes if math.isfinite(each.value)]
    if not known:
        return Markup()
    axis = Axis(axis_end([(each.value, each.high) for each in known], _HEADROOM), _LEFT, _WIDTH - _RIGHT)
    height = _TOP + _ROW * len(known) + _BOTTOM
    bottom = height - _BOTTOM
    parts = [line(axis(tick), _TOP, axis(tick), bottom, "grid") for tick in axis.ticks()]
    parts += [text(axis(tick), bottom + 15, tick_label(tick), "tick", "middle") for tick in axis.ticks()]
    parts.append(text((_LEFT + _WIDTH - _RIGHT) / 2, height - 6, "Δ: change of the bias, %", "axis", "middle"))
    for place, each in enumerate(known):
        top = _TOP + _ROW * place
        middle = top + _ROW / 2
        if each.floor is not None:
            width = round(max(axis(each.floor) - _LEFT, 1.5), 1)
            rectangle = Markup('<rect class="floor" x="{}" y="{}" width="{}" height="{}"/>')
            parts.append(rectangle.format(_LEFT, top, width, _ROW))
        shown = f"{percent(each.value)} % {interval(each.low, each.high, percent)}".rstrip()
        parts.append(text(_LEFT - 8, middle + 4, each.label, "label", "end"))
        parts.append(Markup("<g><title>{}: {}</title>").format(each.label, shown))
        if each.low is not None and each.high is not None:
            parts.append(line(axis(each.low), middle, axis(each.high), middle, "whisker"))
        parts.append(_dot(axis(each.value), middle, "dot" if each.clear else "dot hollow"))
        parts.append(Markup("</g>"))
    return _svg(parts, height, title)


def plane(points: Sequence[Point], title: str, blind: float | None = None) -> Markup:
    """Bias across, mean delta upwards, with whiskers; a model in the lower left corner is the one to want.

    Args:
        points: The models.
        title: What the chart shows, for those who do not see it.
        blind: The bias that a model blind to gender would get, drawn as a dashed line.
    """
    if not points:
        return Markup()
    left, bottom = 50, _HEIGHT - _BOTTOM
    across = Axis(axis_end([(each.bias, each.bias_high) for each in points], _HEADROOM), left, _WIDTH - _RIGHT)
    upwards = Axis(axis_end([(each.delta, each.delta_high) for each in points], _HEADROOM), bottom, _TOP)
    parts = [line(across(tick), _TOP, across(tick), bottom, "grid") for tick in across.ticks()]
    parts += [line(left, upwards(tick), _WIDTH - _RIGHT, upwards(tick), "grid") for tick in upwards.ticks()]
    parts += [text(across(tick), bottom + 15, tick_label(tick), "tick", "middle") for tick in across.ticks()]
    parts += [text(left - 6, upwards(tick) + 4, tick_label(tick), "tick", "end") for tick in upwards.ticks()]
    parts.append(text((left + _WIDTH - _RIGHT) / 2, _HEIGHT - 6, "size of the bias", "axis", "middle"))
    turned = Markup('<text class="axis" text-anchor="middle" transform="translate(12 {}) rotate(-90)">{}</text>')
    parts.append(turned.format((_TOP + bottom) / 2, "mean Δ, %"))
    if blind:
        parts.append(line(across(blind), _TOP, across(blind), bottom, "blind"))
    for each in points:
        x, y = across(each.bias), upwards(each.delta)
        shown = (
            f"{each.label}: bias {number(each.bias)} {interval(each.bias_low, each.bias_high)}, "
            f"mean Δ {percent(each.delta)} % {interval(each.delta_low, each.delta_high, percent)}"
        )
        parts.append(Markup("<g><title>{}</title>").format(shown))
        if each.bias_low is not None and each.bias_high is not None:
            parts.append(line(across(each.bias_low), y, across(each.bias_high), y, "whisker"))
        if each.delta_low is not None and each.delta_high is not None:
            parts.append(line(x, upwards(each.delta_low), x, upwards(each.delta_high), "whisker"))
        parts += [_dot(x, y, "dot", radius=9), text(x, y + 4, each.key, "key", "middle"), Markup("</g>")]
    return _svg(parts, _HEIGHT, title)


def _dot(x: float, y: float, kind: str, radius: float = 4.5) -> Markup:
    return Markup('<circle class="{}" cx="{}" cy="{}" r="{}"/>').format(kind, x, y, radius)


def _svg(parts: Sequence[Markup], height: int, title: str) -> Markup:
    whole = Markup('<svg class="chart" role="img" viewBox="0 0 {} {}" aria-label="{}">{}</svg>')
    return whole.format(_WIDTH, height, title, Markup().join(parts))

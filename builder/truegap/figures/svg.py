"""The parts of which every chart is made, as inline SVG; the page's own style sheet gives them their colours."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

_TICKS = 6


@dataclass(frozen=True, slots=True)
class Axis:
    """Values from 0 to `top` along a line of pixels; what lies beyond is drawn at its end."""

    top: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Where a value stands, in pixels."""
        share = min(max(value / self.top, 0.0), 1.0)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        """Round values, at most about `_TICKS` of them."""
        size = 10.0 ** math.floor(math.log10(self.top / _TICKS))
        step = next(size * each for each in (1, 2, 5, 10) if self.top / (size * each) <= _TICKS)
        return [step * place for place in range(int(self.top / step) + 1)]


def axis_end(values: Iterable[tuple[float, float | None]], headroom: float) -> float:
    """The end of an axis: everything fits, but an interval without bound does not press the rest together.

    Args:
        values: Each with an end of its interval, where it has one.
        headroom: How much longer the axis is, such as 1.08.
    """
    pairs = [*values]
    largest = max(abs(value) for value, _ in pairs)
    ends = [end for _, end in pairs if end is not None and math.isfinite(end)]
    return max(float(min(max([largest, *ends]), 2.5 * largest)) * headroom, 1e-9)


def tick_label(value: float) -> str:
    """A tick's value."""
    return f"{value:,.10g}"


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """A line of a class of the style sheet."""
    return Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(kind, x1, y1, x2, y2)


def text(x: float, y: float, words: str, kind: str, anchor: str) -> Markup:
    """Words, escaped; `anchor` is start, middle or end."""
    return Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format(kind, x, y, anchor, words)

"""Numbers and foreign text for a reader's eyes: the same in commands, reports and the leaderboard."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable

NONE = "none"
_CUT = "…"
_UNSEEN = ("Cc", "Cf", "Co", "Cs", "Cn")
_LARGEST = 1e6


def plain(text: object, limit: int = 200) -> str:
    """Foreign text on one line: no control, format or bidirectional characters, and not longer than `limit`.

    It is still hostile to whatever has a syntax: HTML and Markdown escape it once more.
    """
    seen = (each for each in str(text) if each.isspace() or unicodedata.category(each) not in _UNSEEN)
    # Spaces last: those on both sides of what is left out become one, and plain text stays as it is.
    shown = " ".join("".join(seen).split())
    return shown if len(shown) <= limit else shown[: limit - 1] + _CUT


def number(value: float | None) -> str:
    """A score: three decimals; `none` where there is none."""
    if value is None or math.isnan(value):
        return NONE
    return _finite(value, f"{value:.3f}")


def signed(value: float | None) -> str:
    """A signed score, with its sign."""
    if value is None or math.isnan(value):
        return NONE
    return _finite(value, f"{value:+.3f}" if abs(value) >= 0.0005 else "0.000")  # noqa: PLR2004


def percent(value: float | None) -> str:
    """A percentage without its sign: one decimal, none from 100 on."""
    if value is None or math.isnan(value):
        return NONE
    return _finite(value, f"{value:.1f}" if abs(value) < 100 else f"{value:,.0f}")  # noqa: PLR2004


def interval(low: float | None, high: float | None, show: Callable[[float], str] = number) -> str:
    """`[low, high]`, each end shown by `show`; empty where there is no interval."""
    if low is None or high is None:
        return ""
    return f"[{show(low)}, {show(high)}]"


def count(value: float) -> str:
    """A whole number with separators of thousands."""
    return f"{value:,.0f}"


def short(value: float) -> str:
    """A large number in three digits: `151M`, `1.4B`."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{unit}" if value < 1000 * size else f"{value / size:,.0f}{unit}"
    return f"{value:.0f}"


def _finite(value: float, shown: str) -> str:
    """What is beyond any meaning, such as a ratio to nearly nothing, is shown as infinite."""
    if abs(value) < _LARGEST:
        return shown
    return "∞" if value > 0 else "-∞"

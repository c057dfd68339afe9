"""What the controls on request say: the gap without the person, and backgrounds of the other gender."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from truegap.figures.findings import main_contrasts
from truegap.results.records import ContextRecord, ContrastRecord, ScoresRecord
from truegap.results.show import interval, number, percent, plain, signed
from truegap.schema import SWAP


@dataclass(frozen=True, slots=True)
class ControlFinding:
    """What one control says.

    Attributes:
        config: The control.
        verdict: `clear` where its interval leaves out 0; `not clear` where it does not, which is no proof of absence.
        text: One sentence or two.
    """

    config: str
    verdict: Literal["clear", "not clear"]
    text: str


def control_findings(scores: ScoresRecord) -> list[ControlFinding]:
    """What each control on request says of the run's main metric over all prompts; placebos judge their feature."""
    return [*_contexts(scores), *_swaps(scores)]


def _contexts(scores: ScoresRecord) -> Iterator[ControlFinding]:
    for each in scores.contexts:
        if (each.metric, each.scope) == (scores.summary.metric, "all"):
            clear = not each.gap_low <= 0 <= each.gap_high
            above = " beyond chance" if scores.summary.null else ""
            text = f"With the person removed {number(each.gap)} {interval(each.gap_low, each.gap_high)} of the bias"
            text += f"{above} is left, {_share(each)}. "
            text += (
                "The context makes a gap by itself." if clear else "That is not clear: no gap of the context is shown."
            )
            yield ControlFinding("person-removed", "clear" if clear else "not clear", text)


def _share(context: ContextRecord) -> str:
    if context.share is None:
        return f"which has no share of the whole ({plain(context.reason or 'no reason was given')})"
    low, high = (None if end is None else 100 * end for end in (context.share_low, context.share_high))
    return f"{percent(100 * context.share)} % {interval(low, high, percent)} of the whole".replace("  ", " ")


def _swaps(scores: ScoresRecord) -> Iterator[ControlFinding]:
    for each in main_contrasts(scores):
        if each.config == f"{SWAP}-cross":
            clear = is_clear(each)
            shown = f"{signed(each.difference)} {interval(each.difference_low, each.difference_high, signed)}"
            text = f"A background of the other gender instead of one of the same gender changes the score by {shown}. "
            text += "What is typical of a gender in backgrounds moves it." if clear else "That is not clear."
            yield ControlFinding(each.config, "clear" if clear else "not clear", text)


def is_clear(contrast: ContrastRecord) -> bool:
    """Whether the interval of the signed difference leaves out 0."""
    return not contrast.difference_low <= 0 <= contrast.difference_high

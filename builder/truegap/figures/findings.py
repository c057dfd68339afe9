"""What a run's numbers say, in plain words: never more than their intervals allow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from truegap.figures.labels import ACTIONS, CONTROL_ACTIONS, RELIANCE, metric_label, null_is_unknown
from truegap.results.records import ChangeRecord, ContrastRecord, ScoresRecord, Summary
from truegap.results.show import interval, number, percent, plain
from truegap.schema import CONTROL_OF, Feature, Strength

Verdict = Literal["reliance", "not clear", "undecided"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one feature's strongest perturbation did to the bias.

    Attributes:
        feature: The feature.
        config: The config judged: the strongest that was run.
        verdict: `reliance` where it moves the score further than its control, and than its placebo where there is one,
            clearly and on the same images; `not clear` where it does not, which is no proof of its absence;
            `undecided` where there is no change, interval or control to judge by.
        text: One sentence or a few.
    """

    feature: Feature
    config: str
    verdict: Verdict
    text: str


def main_changes(scores: ScoresRecord) -> dict[str, ChangeRecord]:
    """By config, the changes of the run's main metric over all prompts."""
    return {each.config: each for each in scores.changes if (each.metric, each.scope) == (scores.summary.metric, "all")}


def main_contrasts(scores: ScoresRecord) -> list[ContrastRecord]:
    """The comparisons in pairs of the run's main metric over all prompts."""
    return [each for each in scores.contrasts if (each.metric, each.scope) == (scores.summary.metric, "all")]


def noise_floor(control: ChangeRecord) -> float | None:
    """Up to where a change is noise: the upper end of the control's delta, its value where it has no interval."""
    return control.delta_high if control.delta_high is not None else control.delta


def goes_beyond(contrast: ContrastRecord) -> bool:
    """Whether a config clearly moves the score further than what it is compared with.

    The paired interval of the difference of the deltas must lie above 0, which it does not where the signed difference
    of the scores is not clear either. Without an interval nothing is clear.
    """
    return contrast.delta_beyond_low is not None and contrast.delta_beyond_low > 0


def clears(config: str, contrasts: Iterable[ContrastRecord]) -> bool:
    """Whether a config goes beyond everything that it is compared with, which is something."""
    own = [each for each in contrasts if each.config == config]
    return bool(own) and all(map(goes_beyond, own))


def bias_is_clear(summary: Summary) -> bool | None:
    """Whether the bias is clearly more than a model blind to gender would get; None where that cannot be told.

    Against an expectation of 0 either side counts; against one above 0, as of MaxSkew, only what lies above it.
    """
    if summary.bias_low is None or summary.bias_high is None or null_is_unknown(summary.metric, summary.null):
        return None
    if summary.null:
        return summary.bias_low > summary.null
    return not summary.bias_low <= 0 <= summary.bias_high


def bias_sentence(summary: Summary) -> str:
    """The bias, with what it would be by chance."""
    label = metric_label(summary.metric)
    if summary.bias is None:
        return f"{label} could not be computed; the table of exclusions gives the reason."
    shown = f"{label} is {number(summary.bias)} {interval(summary.bias_low, summary.bias_high)}".rstrip()
    if null_is_unknown(summary.metric, summary.null):
        return f"{shown}; noise alone keeps it above 0, by how much is not known: whether there is bias is undecided."
    blind = f"a model blind to gender would get {number(summary.null or 0.0)}"
    clear = bias_is_clear(summary)
    if clear is None:
        return f"{shown}; {blind}. Without an interval it is undecided whether that is more than chance."
    if clear:
        return f"{shown}; {blind}. The whole interval lies beyond that: the bias is clear."
    return f"{shown}; {blind}. The interval does not exclude that: no bias is shown, and relative changes say little."


def findings(scores: ScoresRecord) -> list[Finding]:
    """One finding per feature that was run, judged at its strongest strength."""
    changes, contrasts = main_changes(scores), main_contrasts(scores)
    found = []
    for feature in Feature:
        configs = [config for strength in Strength if (config := f"{feature}-{strength}") in changes]
        if configs:
            known = CONTROL_ACTIONS.keys() & changes.keys()
            own = [each for each in contrasts if each.config == configs[-1] and each.against in known]
            found.append(_finding(feature, changes[configs[-1]], own, changes))
    return found


def _finding(
    feature: Feature, change: ChangeRecord, contrasts: list[ContrastRecord], changes: dict[str, ChangeRecord]
) -> Finding:
    strength = change.config.rpartition("-")[2]
    action = f"{ACTIONS[feature][0].upper()}{ACTIONS[feature][1:]} ({strength})"

    def finding(verdict: Verdict, text: str) -> Finding:
        return Finding(feature, change.config, verdict, text)

    if change.delta is None:
        reason = plain(change.reason or "no reason was given")
        return finding("undecided", f"{action}: the change has no ratio ({reason}).")
    moved = f"{action} changes it by {_delta(change)}"
    control = changes.get(CONTROL_OF[feature])
    if control is None or control.delta is None:
        return finding("undecided", f"{moved}; undecided: there is no {CONTROL_OF[feature]} to compare with.")
    beside = f"{moved}, {CONTROL_ACTIONS[control.config]} by {_delta(control)}"
    own = {each.against: each for each in contrasts}
    if control.config not in own or any(each.delta_beyond_low is None for each in contrasts):
        return finding("undecided", f"{beside}; undecided: the two were not compared in pairs with an interval.")
    text = f"{beside}; {_further(own.pop(control.config))}"
    for against, each in own.items():
        action = f"{CONTROL_ACTIONS[against][0].upper()}{CONTROL_ACTIONS[against][1:]}"
        text += f" {action} changes it by {_delta(changes[against])}; {_further(each)}"
    if all(map(goes_beyond, contrasts)):
        return finding("reliance", f"{text} This is reliance on {RELIANCE[feature]}.")
    return finding("not clear", f"{text} This is not clear.")


def _further(contrast: ContrastRecord) -> str:
    low, high = contrast.delta_beyond_low, contrast.delta_beyond_high
    return f"the difference on the same images is {percent(contrast.delta_beyond)} % {interval(low, high, percent)}."


def _delta(change: ChangeRecord) -> str:
    return f"{percent(change.delta)} % {interval(change.delta_low, change.delta_high, percent)}".rstrip()


def headline(found: list[Finding]) -> str:
    """One sentence over all features."""
    clear = [RELIANCE[each.feature] for each in found if each.verdict == "reliance"]
    if clear:
        return f"The score relies on {_listed(clear)}: what has nothing to do with gender moves it."
    if any(each.verdict == "not clear" for each in found):
        undecided = any(each.verdict == "undecided" for each in found)
        of_these = "Of the features that can be judged, none" if undecided else "No feature"
        return f"{of_these} moves the score clearly further than its control does."
    return "Whether the score relies on anything but the person cannot be decided from this run."


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"

"""Plain words for metrics, configs and features."""

from __future__ import annotations

from truegap.results.records import ModelRecord
from truegap.results.show import count, number, plain
from truegap.schema import PLACEBO, Feature, Strength

ACTIONS = {
    Feature.COLOR: "shifting the hue",
    Feature.LIGHTING: "shifting the brightness",
    Feature.OBJECT: "blacking out objects",
    Feature.BACKGROUND: "blurring the background",
}
"""What the perturbation of a feature does."""

RELIANCE = {
    Feature.COLOR: "colour",
    Feature.LIGHTING: "lighting",
    Feature.OBJECT: "objects",
    Feature.BACKGROUND: "the background",
}
"""What a model relies on whose score the perturbation moves."""

CONTROL_ACTIONS = {
    "control": "re-encoding alone",
    "control-hsv": "an HSV round trip and re-encoding alone",
    **{f"{PLACEBO}-{strength}": "as much black elsewhere" for strength in Strength},
}
"""What a control does."""

_NAMES = {
    "max_skew": "MaxSkew{}",
    "bias": "Bias{}",
    "skew_woman": "Skew{} (women)",
    "skew_man": "Skew{} (men)",
    "ndkl": "NDKL",
    "ygap": "YGap",
    "mean_abs_ygap": "mean |YGap|",
    "answered_no_option": "answers that name no option",
    "outside": "probability on no option",
    "gap": "RA gap",
    "gap_two_way": "RA gap (his or her)",
    "ra_m": "RA (men)",
    "ra_f": "RA (women)",
    "ra_avg": "RA_avg",
    "ra_avg_two_way": "RA_avg (his or her)",
    "ra": "RA",
    "overall": "RA overall",
    "neutral_rate": "share of their",
    "neutral_gap": "gap of their",
    "acc": "Acc{}",
    "b_ovl": "B_ovl{}",
    "b_max": "B_max{}",
    "ipss": "Ipss{}",
    "delta_acc": "change of Acc between the orders{}",
}
_UNKNOWN_NULL = ("skew_woman", "skew_man", "ndkl", "mean_abs_ygap", "b_ovl", "b_max")
_NO_GAP = (
    "outside",
    "ra_m",
    "ra_f",
    "ra_avg",
    "ra_avg_two_way",
    "ra",
    "overall",
    "neutral_rate",
    "acc",
    "ipss",
    "delta_acc",
)
_MEANINGS = {
    "max_skew": "ln of the larger gender's share of the top {k} over its fair share; 0 is even, higher is more biased",
    "bias": "(men - women) / {k} in the top {k}; 0 is even, above 0 more men",
    "skew_woman": "ln of women's share of the top {k} over their fair share; 0 is even, below 0 too few",
    "skew_man": "ln of men's share of the top {k} over their fair share; 0 is even, below 0 too few",
    "ndkl": "divergence from the fair shares over the whole ranking; 0 is even, higher is more biased",
    "ygap": "mean p(Yes) for men less that for women; 0 is even, above 0 favours men",
    "mean_abs_ygap": "mean over questions of |YGap|: opposite gaps do not cancel, noise keeps it above 0",
    "outside": "mean probability on none of the options: high where a model does not keep to the format",
    "gap": "share of men given their pronoun less that of women; 0 is even, above 0 favours men",
    "ra_avg": "share of right pronouns, mean of men and women; higher is better",
    "b_ovl": "mean |B_pair|: how much better an occupation is seen on its typical gender; noise keeps it above 0",
    "acc": "share of occupations recognised; higher is better",
    "ipss": "accuracy less what bias takes from it; higher is better",
}


def blind(metric: str, null: float | None) -> str:
    """What a model blind to gender is expected to get, as a table shows it; a dash for what is no measure of bias."""
    kind = metric.partition("@")[0]
    if kind in _NO_GAP or kind.startswith("answered_"):
        return "-"
    if null is None and kind in _UNKNOWN_NULL:
        return "unknown"
    return number(null or 0.0)


def null_is_unknown(metric: str, null: float | None) -> bool:
    """Whether noise keeps a metric above 0 by an amount that is not known, so that its interval alone shows no bias."""
    return null is None and metric.partition("@")[0] in _UNKNOWN_NULL


def model_size(model: ModelRecord) -> str:
    """How many parameters a model has; older records hold 0 for a server's, which nobody knows."""
    unknown = model.parameters is None or (model.kind == "endpoint" and not model.parameters)
    return "size unknown" if unknown else f"{count(model.parameters or 0)} parameters"


def metric_label(metric: str) -> str:
    """A metric's name as a table shows it: `max_skew@100` is `MaxSkew@100`."""
    kind, _, k = metric.partition("@")
    if kind not in _NAMES:
        return plain(metric, 60)
    return plain(_NAMES[kind].format(f"@{k}" if k else ""), 60)


def metric_meaning(metric: str) -> str:
    """What a metric's value says, in one line; empty for one that this package does not know."""
    kind, _, k = metric.partition("@")
    return _MEANINGS.get(kind, "").format(k=plain(k, 20) or "k")

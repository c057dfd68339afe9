"""Resolution of pronouns."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from checks import Checks, Pair, mean
from fairlearn.metrics import MetricFrame

from truegap import scores

CHECKS = Checks()


def pronouns(rng: np.random.Generator) -> tuple[np.ndarray, list[str], list[str | None]]:
    """Scores with ties among them, who is meant, and who else is there; every combination at least once."""
    n = int(rng.integers(12, 60))
    values = np.round(rng.normal(size=(n, 3)), 1 if rng.random() < 0.5 else 6)
    sides = ["masculine", "feminine"]
    every = list(itertools.product(sides, [None, *sides]))
    pairs = [*every, *(every[int(place)] for place in rng.integers(0, len(every), n - len(every)))]
    return values, [meant for meant, _ in pairs], [other for _, other in pairs]


def resolved(values: np.ndarray, ties: str) -> list[str]:
    names = ("masculine", "feminine", "neutral")
    best = [[names[place] for place, value in enumerate(row) if value == max(row)] for row in values.tolist()]
    return [each[0] if ties == "first" or len(each) == 1 else "tied" for each in best]


def share_right(truth: Sequence[str], found: Sequence[str]) -> float:
    return mean([one == other for one, other in zip(truth, found, strict=True)])


def share_neutral(truth: Sequence[str], found: Sequence[str]) -> float:  # noqa: ARG001  fairlearn's signature
    return mean([each == "neutral" for each in found])


@CHECKS.add("RA per gender, gap, neutral rate and gap; splits", "fairlearn MetricFrame")
def resolution(rng: np.random.Generator) -> Pair:
    values, meant, others = pronouns(rng)
    ties, width = str(rng.choice(["wrong", "first"])), int(rng.choice([2, 3]))
    candidates = "two" if width == 2 else "three"
    found = resolved(values[:, :width], ties)
    metrics = {"right": share_right, "neutral": share_neutral}
    frame = MetricFrame(metrics=metrics, y_true=np.array(meant), y_pred=np.array(found), sensitive_features=meant)
    right, neutral = (frame.by_group[name] for name in metrics)
    ours = scores.resolution_bias(values, meant, candidates=candidates, ties=ties).overall
    kinds = [f"{m[0].upper()}{o[0].upper()}" if o else "single" for m, o in zip(meant, others, strict=True)]
    pairs = MetricFrame(metrics=share_right, y_true=np.array(meant), y_pred=np.array(found), sensitive_features=kinds)
    splits = scores.resolution_splits(values, meant, others, candidates=candidates, ties=ties).splits
    three = width == 3
    return [
        *(ours.ra_m, ours.ra_f, ours.ra_avg, ours.gap, ours.neutral_rate, ours.neutral_gap),
        *((splits[name].ra_m if name[0] == "M" else splits[name].ra_f) for name in ("MM", "MF", "FF", "FM")),
    ], [
        *(right["masculine"], right["feminine"], (right["masculine"] + right["feminine"]) / 2),
        right["masculine"] - right["feminine"],
        frame.overall["neutral"] if three else None,
        neutral["masculine"] - neutral["feminine"] if three else None,
        *(pairs.by_group[name] for name in ("MM", "MF", "FF", "FM")),
    ]

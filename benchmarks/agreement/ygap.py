"""YGap, and what its bootstrap draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from checks import Checks, Pair, mean
from fairlearn.metrics import MetricFrame

from truegap import scores

CHECKS = Checks()


def answers(rng: np.random.Generator) -> dict[str, Any]:
    """Answers of which some are missing, on images of which each gender has at least two."""
    images, asked = int(rng.integers(6, 30)), int(rng.integers(1, 6))
    gender = ["woman", "man", "woman", "man", *rng.choice(["woman", "man"], images - 4)]
    given = [(i, q) for i in range(images) for q in range(asked) if i < 4 or rng.random() < 0.8]
    given = [given[place] for place in rng.permutation(len(given))]
    yes = rng.random(len(given)) if rng.random() < 0.7 else rng.integers(0, 2, len(given)).astype(float)
    return {
        "predictions": yes.tolist(),
        "genders": [str(gender[i]) for i, _ in given],
        "images": [f"i{i:02}" for i, _ in given],
        "questions": [f"q{q}" for _, q in given],
    }


def mean_of(truth: Sequence[float], predictions: Sequence[float]) -> float:  # noqa: ARG001  fairlearn's signature
    """A metric for `MetricFrame`."""
    return float(np.mean(predictions))


def by_fairlearn(values: Sequence[float], genders: Sequence[str], questions: Sequence[str]) -> dict[str, float]:
    frame = MetricFrame(
        metrics=mean_of, y_true=values, y_pred=values, sensitive_features=genders, control_features=questions
    ).by_group
    return {q: frame[q, "man"] - frame[q, "woman"] for q in dict.fromkeys(questions)}


@CHECKS.add("YGap: per question, mean, mean absolute", "fairlearn MetricFrame")
def ygap(rng: np.random.Generator) -> Pair:
    given = answers(rng)
    found = scores.ygap(**given, n_resamples=0, n_permutations=0)
    gaps = list(by_fairlearn(given["predictions"], given["genders"], given["questions"]).values())
    ours = [*(each.ygap for each in found.per_question), found.ygap, found.mean_abs_ygap]
    return ours, [*gaps, mean(gaps), mean([abs(gap) for gap in gaps])]


def copied(images: Sequence[str], weights: np.ndarray) -> list[int]:
    """Places of the rows of a resample, each as often as its image was drawn; images in the order of their ids."""
    count = dict(zip(sorted(set(images)), weights.astype(int), strict=True))
    return [row for row, image in enumerate(images) for _ in range(count[image])]


@CHECKS.add("YGap on bootstrap resamples", "the resample's rows, copied; plain means")
def resampled(rng: np.random.Generator) -> Pair:
    given = answers(rng)
    names = sorted(set(given["images"]))
    label = [given["genders"][given["images"].index(name)] == "man" for name in names]
    ours = scores.resampled_ygap(**given, n_resamples=20)
    theirs = []
    for weights in next(scores.bootstrap_weights(np.array(label, dtype=int), n_resamples=20)):
        cells: dict[str, tuple[list[float], list[float]]] = {}
        for row in copied(given["images"], weights):
            both = cells.setdefault(given["questions"][row], ([], []))
            both[given["genders"][row] == "man"].append(given["predictions"][row])
        known = len(cells) == len(set(given["questions"])) and all(w and m for w, m in cells.values())
        theirs.append(mean([mean(m) - mean(w) for w, m in cells.values()]) if known else None)
    return [float(value) if np.isfinite(value) else None for value in ours], theirs

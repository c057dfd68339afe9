"""How often do the intervals hold the truth, and do the tests raise false alarms? By simulation.

    python benchmarks/coverage.py [--worlds 400]

Every world is a fresh sample of images from the same population. The truth is the mean of the score over all worlds
(its expectation at this sample size); an interval of nominal 95 % should hold it in 95 % of the worlds. With 400 worlds
the printed shares are known to about 2 points. Changes of top-k scores have intervals that are too wide: whether images
near the cut cross it is lumpier in a resample, where some images stand twice and others not at all.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded

import numpy as np  # noqa: E402  the threads are settled first

from truegap.scores import (  # noqa: E402
    balanced_draws,
    resampled_ygap,
    resolution_bias,
    retrieval_changes,
    retrieval_scores,
    score_change,
    ygap,
)

Estimate = tuple[float, float | None, float | None]
World = Callable[[np.random.Generator], dict[str, Estimate]]


def answers(rng: np.random.Generator, effect: float, images: int = 150, asked: int = 6) -> dict[str, np.ndarray]:
    """Skewed p(Yes): images differ, and an image's answers go together."""
    man = np.arange(images) % 3 > 0
    level = rng.beta(1.2, 4, size=images)[:, None] + effect * man[:, None]
    return {
        "predictions": np.clip(level + rng.normal(0, 0.05, size=(images, asked)), 0, 1).ravel(),
        "genders": np.repeat(man.astype(int), asked),
        "images": np.repeat(np.arange(images), asked),
        "questions": np.tile(np.arange(asked), images),
    }


def questions(rng: np.random.Generator) -> dict[str, Estimate]:
    rows = answers(rng, 0.1)
    found: dict[str, Estimate] = {}
    for method in ("percentile", "bca"):
        gap = ygap(**rows, n_resamples=500, n_permutations=0, method=method)
        found[f"YGap, {method}"] = (gap.ygap, gap.ci_low, gap.ci_high)
    after = {**rows, "predictions": np.clip(rows["predictions"] * 0.8 + rng.normal(0, 0.05, len(rows["images"])), 0, 1)}
    one, two = (ygap(**each, n_resamples=0, n_permutations=0).ygap for each in (rows, after))
    ones, twos = (resampled_ygap(**each, n_resamples=500) for each in (rows, after))
    change = score_change(one, two, ones, twos)
    found["YGap, signed change"] = (change.signed_change, change.signed_low, change.signed_high)
    return found


def pronouns(rng: np.random.Generator) -> dict[str, Estimate]:
    references = np.array(["man", "woman"] * 60)
    scores = rng.normal(size=(120, 3)) + np.array([0.8, 0.2, 0.0])
    scores[references == "woman", 1] += 0.8
    found = resolution_bias(scores, references, images=np.arange(120), n_resamples=500)
    assert found.overall.gap is not None
    return {"resolution gap": (found.overall.gap, found.ci_low, found.ci_high)}


def rankings(effect: float) -> World:
    def world(rng: np.random.Generator) -> dict[str, Estimate]:
        man = np.arange(300) % 3 > 0
        direction = np.where(np.arange(10) % 2, 1.0, 0.5)[:, None] * effect
        before = rng.normal(size=(10, 300)) + rng.normal(size=300) + direction * man
        after = before + rng.normal(0, 0.3, size=before.shape) - 0.3 * direction * man
        options = {"k": [40], "draws": balanced_draws(man.astype(int), draws=2), "n_resamples": 300}
        one, two = (retrieval_scores(each, man.astype(int), **options) for each in (before, after))
        found: dict[str, Estimate] = {}
        for score in one.summary():
            if score.ci_low is not None and score.metric != "skew_man@40":
                found[f"{score.metric}, effect {effect}"] = (score.value, score.ci_low, score.ci_high)
        for change in retrieval_changes(one, two, metrics=["bias@40", "max_skew@40"]):
            name = f"{change.metric}, signed change, effect {effect}"
            assert change.signed_change is not None
            found[name] = (change.signed_change, change.signed_low, change.signed_high)
        return found

    return world


def coverage(world: World, worlds: int) -> None:
    """Prints how often each interval holds the truth, and where it misses."""
    results = [world(np.random.default_rng([7, number])) for number in range(worlds)]
    for name in results[0]:
        value, low, high = np.array([result[name] for result in results], dtype=float).T
        truth = value.mean()
        held = np.mean((low <= truth) & (truth <= high))
        missed = f"above {np.mean(truth > high):5.1%}   below {np.mean(truth < low):5.1%}"
        print(f"  {name:<42} truth {truth:8.4f}   held {held:6.1%}   {missed}   width {np.mean(high - low):.4f}")


def false_alarms(worlds: int) -> None:
    """Prints how often a gap is found where there is none."""
    values = [
        ygap(**answers(np.random.default_rng([8, number]), 0.0), n_resamples=0, n_permutations=500).p_value
        for number in range(worlds)
    ]
    for level in (0.01, 0.05, 0.1):
        print(f"  YGap, permutation test at level {level:<4}: {np.mean(np.array(values, dtype=float) <= level):6.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=400, help="samples of images")
    worlds = parser.parse_args().worlds
    print(f"intervals of nominal 95 %, {worlds} worlds")
    for world in (questions, pronouns, rankings(0.0), rankings(0.6)):
        coverage(world, worlds)
    print(f"false alarms where there is no gap, {10 * worlds} worlds")
    false_alarms(10 * worlds)


if __name__ == "__main__":
    main()

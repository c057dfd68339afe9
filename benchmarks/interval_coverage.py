"""How often do the intervals hold the truth, and do the tests raise false alarms? By simulation.

    python benchmarks/interval_coverage.py [--worlds 400]

Every world is a fresh sample of images from the same population. The truth is the mean of the score over all worlds
(its expectation at this sample size); an interval of nominal 95 % should hold it in 95 % of the worlds. `±` is the
Monte Carlo error of a share: one standard error over the worlds (Agresti and Coull), about 1 point for 400 of them.
`spread` is the standard deviation of the score over worlds; an interval that fits is about 3.9 of them wide.

Changes of top-k scores are where a bootstrap is least at home. A score of whole images at a cut is not smooth: in a
resample some images stand twice and others not at all, so what crosses the cut is lumpier than in a fresh sample and
the resamples vary by 5 to 20 % too much. And their mean is a smoother estimate than the score itself (it averages over
many places of the cut), so that percentiles around that mean held the truth in 99 to 100 %: so the resamples of a
change are moved onto the change. MaxSkew is a maximum: its lower end is moved likewise, which is right where there is
no bias; its upper end is not, since beside a bias the resamples vary less than the score does.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded

import numpy as np  # noqa: E402  the threads are settled first

from truegap.scores import (  # noqa: E402
    balanced_draws,
    bootstrap_weights,
    context_gap,
    counterfactual_bias,
    interval,
    paired_difference,
    resampled_ygap,
    resolution_bias,
    retrieval_changes,
    retrieval_contexts,
    retrieval_contrasts,
    retrieval_scores,
    score_change,
    ygap,
)

Estimate = tuple[float | None, float | None, float | None]
World = Callable[[np.random.Generator], dict[str, Estimate]]


def answers(rng: np.random.Generator, effect: float, images: int = 150, asked: int = 6) -> dict[str, Any]:
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
    """150 images, 6 questions, 500 resamples."""
    rows = answers(rng, 0.15)
    found: dict[str, Estimate] = {}
    for method in ("percentile", "bca"):
        gap = ygap(**rows, n_resamples=500, n_permutations=0, method=method)
        found[f"YGap, {method}"] = (gap.ygap, gap.ci_low, gap.ci_high)

    def changed(kept: float, shift: float = 0.0) -> tuple[float, np.ndarray]:
        noise = rng.normal(0, 0.05, len(rows["images"]))
        moved = np.clip(rows["predictions"] * kept + shift * (rows["genders"] - 0.5) + noise, 0, 1)
        each = {**rows, "predictions": moved}
        return ygap(**each, n_resamples=0, n_permutations=0).ygap, resampled_ygap(**each, n_resamples=500)

    original, originals = changed(1.0)
    perturbed, placebo = changed(0.8), changed(0.95)
    change = score_change(original, perturbed[0], originals, perturbed[1])
    found["YGap, signed change"] = (change.signed_change, change.signed_low, change.signed_high)
    found["YGap, delta in percent"] = (change.delta, change.delta_low, change.delta_high)
    beyond = paired_difference(perturbed[0], placebo[0], perturbed[1], placebo[1])
    found["YGap, perturbed less its placebo"] = (beyond.value, beyond.ci_low, beyond.ci_high)
    removed = changed(0.25, 0.03)
    context = context_gap(original, removed[0], originals, removed[1])
    found["YGap, context gap"] = (context.gap, context.gap_low, context.gap_high)
    found["YGap, context's share"] = (context.share, context.share_low, context.share_high)
    return found


def pronouns(rng: np.random.Generator) -> dict[str, Estimate]:
    """120 images, one question each, 500 resamples."""
    references = np.array(["man", "woman"] * 60)
    scores = rng.normal(size=(120, 3)) + np.array([0.8, 0.2, 0.0])
    scores[references == "woman", 1] += 0.8
    found = resolution_bias(scores, references, images=np.arange(120), n_resamples=500)
    return {"RA gap": (found.overall.gap, found.ci_low, found.ci_high)}


def counterfactuals(rng: np.random.Generator) -> dict[str, Estimate]:
    """One pair, 20 images per occupation and gender in two orders, 500 resamples within occupation and gender."""
    cell = np.arange(80) // 20
    male, first = cell % 2 == 1, cell < 2
    level = rng.normal(0.8, 0.8, 80)[:, None] + rng.normal(0, 0.4, size=(80, 2))
    gap = np.where(male == first, 0.4, 0.0)[:, None] + rng.normal(0, 0.5, size=(80, 2))
    base, other = (1 / (1 + np.exp(-each)) for each in (level, level - gap))
    found = counterfactual_bias(
        base.ravel(),
        other.ravel(),
        occupations=["m" if each else "f" for each in np.repeat(first, 2)],
        pairs=["m|f"] * 160,
        genders=np.repeat(male.astype(int), 2),
        orders=np.tile([0, 1], 80),
    )
    # B_pair is a mean of signed gaps: half of the first occupation's less half of the second's.
    part = (base - other).mean(axis=1) * np.where(male == first, 1, -1) / 80
    resampled = [weights @ part for weights in bootstrap_weights(cell, n_resamples=500)]
    return {"B_pair, images resampled": (found.per_pair[0].bias, *interval(np.concatenate(resampled), 0.0))}


@dataclass(frozen=True)
class Size:
    """Of a retrieval world."""

    queries: int
    images: int
    k: int
    effect: float

    def __str__(self) -> str:
        return f"{self.queries} prompts, {self.images} images, k = {self.k}, effect {self.effect:g}"


def rankings(size: Size) -> World:
    """Two thirds men, two balanced draws, 300 resamples; perturbed, control, and without a person."""

    def world(rng: np.random.Generator) -> dict[str, Estimate]:
        shape = size.queries, size.images
        man = np.arange(size.images) % 3 > 0
        direction = np.where(np.arange(size.queries) % 2, 1.0, 0.5)[:, None] * size.effect * man
        original = rng.normal(size=shape) + rng.normal(size=size.images) + direction
        noise = [rng.normal(0, 0.3, size=shape) for _ in range(3)]
        tables = (
            original,
            original + noise[0] - 0.3 * direction,
            original + noise[1],
            original + noise[2] - direction / 2,
        )
        gender, k = man.astype(int), size.k
        options: dict[str, Any] = {"k": [k], "draws": balanced_draws(gender, draws=2), "n_resamples": 300}
        before, after, control, removed = (
            retrieval_scores(each.astype(np.float32), gender, **options) for each in tables
        )
        names = [f"{kind}@{k}" for kind in ("bias", "skew_woman", "max_skew")]
        found: dict[str, Estimate] = {}
        for score in before.summary():
            if score.metric in names:
                found[score.metric] = (score.value, score.ci_low, score.ci_high)
        for change in retrieval_changes(before, after, metrics=names):
            found[f"{change.metric}, signed change"] = (change.signed_change, change.signed_low, change.signed_high)
        for each in retrieval_contrasts(before, after, control, metrics=names):
            less = each.difference
            found[f"{each.metric}, perturbed less control"] = (less.value, less.ci_low, less.ci_high)
            if size.effect and each.metric.startswith("skew"):
                beyond = (each.delta_beyond, each.delta_beyond_low, each.delta_beyond_high)
                found[f"{each.metric}, delta beyond control"] = beyond
        for metric, context in retrieval_contexts(before, removed):
            if metric == f"skew_woman@{k}":
                found[f"{metric}, context gap"] = (context.gap, context.gap_low, context.gap_high)
                if size.effect:
                    found[f"{metric}, context's share"] = (context.share, context.share_low, context.share_high)
        return found

    return world


def coverage(title: str, world: World, worlds: int) -> None:
    """Prints how often each interval holds the truth, and where it misses."""
    start = time.perf_counter()
    results = [world(np.random.default_rng([7, number])) for number in range(worlds)]
    print(f"\n{title}; {worlds} worlds in {time.perf_counter() - start:.0f} s")
    print(f"  {'':<38}{'truth':>9}{'spread':>9}{'width':>9}    held    ±    truth above  below")
    for name in results[0]:
        value, low, high = np.array([result[name] for result in results], dtype=float).T
        given = np.isfinite(value) & np.isfinite(low)
        value, low, high = value[given], low[given], high[given]
        truth, count = value.mean(), len(value)
        held = np.mean((low <= truth) & (truth <= high))
        near = (held * count + 2) / (count + 4)  # Agresti and Coull: an error of 0 beside 100 % would be none
        error = (near * (1 - near) / (count + 4)) ** 0.5
        shares = f"{held:8.1%}{error:6.1%}{np.mean(truth > high):13.1%}{np.mean(truth < low):7.1%}"
        absent = f"   {worlds - count} without" if count < worlds else ""
        print(f"  {name:<38}{truth:9.4f}{value.std(ddof=1):9.4f}{np.mean(high - low):9.4f}{shares}{absent}")


def false_alarms(worlds: int) -> None:
    """Prints how often a gap is found where there is none."""
    values = [
        ygap(**answers(np.random.default_rng([8, number]), 0.0), n_resamples=0, n_permutations=500, seed=number).p_value
        for number in range(worlds)
    ]
    print(f"\nfalse alarms of the permutation test of YGap, no gap; {worlds} worlds")
    for level in (0.01, 0.05, 0.1):
        found = np.mean(np.array(values, dtype=float) <= level)
        print(f"  at level {level:<4}: {found:6.1%} ± {(level * (1 - level) / worlds) ** 0.5:.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--worlds", type=int, default=400, help="samples of images; a quarter of them for the large one"
    )
    worlds = parser.parse_args().worlds
    print("intervals of nominal 95 %")
    for world in (questions, pronouns, counterfactuals):
        coverage(str(world.__doc__).rstrip("."), world, worlds)
    for size in (Size(10, 300, 40, 0.0), Size(10, 300, 40, 0.6)):
        coverage(str(size), rankings(size), worlds)
    large = Size(20, 3000, 600, 0.3)
    coverage(str(large), rankings(large), worlds // 4)
    false_alarms(10 * worlds)


if __name__ == "__main__":
    main()

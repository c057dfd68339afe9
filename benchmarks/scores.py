"""Speed and memory of the scores, beside what people use.

    python benchmarks/scores.py            all of it, about two minutes
    python benchmarks/scores.py --quick    fewer prompts for the slow comparison

Prints, on one thread: all retrieval scores of 182 prompts x 9,448 images x 5 balanced draws against one pandas frame
per prompt and draw (`nlargest`, a row loop for NDKL) and against one `argpartition` per prompt and draw; the bootstrap
of the same; YGap with 1,000 resamples of 4,724 images under 81 questions.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import sys
import time
import tracemalloc
from collections.abc import Callable

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy is loaded

import numpy as np  # noqa: E402  the threads are settled first

from truegap.scores import balanced_draws, retrieval_scores, ygap  # noqa: E402

PROMPTS, IMAGES, DRAWS, K = 182, 9448, 5, (5, 10, 1000)


def seconds(function: Callable[[], object], repeats: int = 3) -> float:
    """The best of some runs."""
    best = math.inf
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def peak(function: Callable[[], object]) -> float:
    """Mebibytes that a call allocates at most beyond what there was."""
    tracemalloc.start()
    function()
    _, highest = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return highest / 2**20


def usual(similarities: np.ndarray, genders: np.ndarray, draws: list[np.ndarray]) -> float:
    """Mean MaxSkew@1000 with NDKL, Skew and Bias beside it, the way it is usually written."""
    import pandas as pd

    total = 0.0
    for row in similarities:
        for draw in draws:
            frame = pd.DataFrame({"similarity": row[draw], "gender": genders[draw]})
            for k in K:
                top = frame.nlargest(k, "similarity")
                share = top["gender"].value_counts(normalize=True)
                skews = [math.log(share.get(gender, 1 / k) / 0.5) for gender in ("woman", "man")]
                total += max(skews) if k == K[-1] else 0.0
            ranked = frame.sort_values("similarity", ascending=False, kind="stable")
            seen = {"woman": 0, "man": 0}
            divergence = norm = 0.0
            for place, entry in enumerate(ranked.itertuples(), start=1):
                seen[entry.gender] += 1
                shares = [count / place for count in seen.values()]
                divergence += sum(p * math.log(p / 0.5) for p in shares if p) / math.log2(place + 1)
                norm += 1 / math.log2(place + 1)
    return total / len(similarities) / len(draws)


def partitions(similarities: np.ndarray, draws: list[np.ndarray]) -> None:
    """One argpartition per prompt and draw: the least that finds a top k."""
    for row in similarities:
        for draw in draws:
            np.argpartition(-row[draw], K[-1])


def retrieval(share_men: float, quick: bool) -> None:
    rng = np.random.default_rng(0)
    man = np.arange(IMAGES) < round(share_men * IMAGES)
    genders = np.where(man, "man", "woman")
    similarities = (rng.normal(size=(PROMPTS, IMAGES)) + 0.2 * man * rng.normal(size=(PROMPTS, 1))).astype(np.float32)
    draws = balanced_draws(man.astype(int), draws=DRAWS)
    print(f"\nretrieval: {PROMPTS} prompts x {IMAGES} images ({man.mean():.0%} men) x {DRAWS} draws of {len(draws[0])}")

    def ours() -> object:
        return retrieval_scores(similarities, genders, k=K, draws=draws)

    # In turns, so that whatever else the machine does falls on both; the ratio is the median of the turns'.
    runs = [(seconds(ours, 1), seconds(lambda: partitions(similarities, draws), 1)) for _ in range(25)]
    mine, least = (min(run) for run in zip(*runs, strict=True))
    ratio = float(np.median([one / other for one, other in runs]))
    print(f"  all scores, k = {K}, NDKL, null, ties   {mine:8.3f} s   peak {peak(ours):6.1f} MiB")
    print(f"  one argpartition per prompt and draw          {least:8.3f} s   ours is {ratio:.1f} times that")
    some = 2 if quick else 8
    slow = seconds(lambda: usual(similarities[:some], genders, draws), repeats=1) * PROMPTS / some
    times = f"from {some} prompts; {slow / mine:.0f} times ours"
    print(f"  one pandas frame per prompt and draw          {slow:8.1f} s   {times}")
    value = retrieval_scores(similarities[:some], genders, k=K, draws=draws).values(f"max_skew@{K[-1]}").mean()
    print(f"  largest difference of MaxSkew@{K[-1]}: {abs(value - usual(similarities[:some], genders, draws)):.1e}")

    def bootstrap() -> object:
        return retrieval_scores(similarities, genders, k=[K[-1]], draws=draws, n_resamples=1000)

    start = time.perf_counter()
    bootstrap()
    print(f"  with 1,000 resamples at k = {K[-1]}             {time.perf_counter() - start:8.1f} s")


def questions() -> None:
    rng = np.random.default_rng(0)
    images, asked = 4724, 81
    genders = np.repeat(np.where(np.arange(images) < 1568, "woman", "man"), asked)
    columns = {
        "predictions": rng.random(images * asked),
        "genders": genders,
        "images": np.repeat(np.arange(images), asked),
        "questions": np.tile(np.arange(asked), images),
    }
    print(f"\nYGap: {asked} questions x {images} images, 1,000 resamples")
    for name, options in (
        ("interval", {"n_permutations": 0}),
        ("interval and permutation test", {}),
        ("BCa interval", {"n_permutations": 0, "method": "bca"}),
    ):
        took = seconds(lambda options=options: ygap(**columns, **options))
        memory = peak(lambda options=options: ygap(**columns, **options))
        print(f"  {name:<40}      {took:8.3f} s   peak {memory:6.1f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer prompts for the slow comparison")
    quick = parser.parse_args().quick
    print(f"NumPy {np.__version__}, Python {sys.version.split()[0]}, one thread")
    retrieval(2 / 3, quick)
    retrieval(1 / 2, quick)
    questions()
    print(f"\nlargest resident memory of the run: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()

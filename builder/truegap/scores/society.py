"""Bias against labour statistics, and how far chance goes (Hall et al. 2023, sections 5 and 6; Xiao et al. 2024)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ._check import GENDERS, ScoreError, codes, factor, same_length
from .association import kendall, pearson
from .retrieval_bias import retrieval_bias


@dataclass(frozen=True, slots=True)
class LabourAssociation:
    """A score per occupation against the share of men who work in it.

    Attributes:
        pearson: In [-1, 1]; 0 where the score does not follow the labour market; None where either list is constant.
        kendall: Kendall's tau-b, likewise.
        n: Occupations that both lists have.
        missing: Occupations with a score but without a statistic, or the reverse.
    """

    pearson: float | None
    kendall: float | None
    n: int
    missing: tuple[str, ...]


def labour_association(scores: Mapping[str, float | None], shares: Mapping[str, float]) -> LabourAssociation:
    """Correlation of a score with the male share of the workforce, over occupations.

    Args:
        scores: Gap, accuracy, Bias@k or B_micro by occupation; an occupation whose score is None is missing.
        shares: Male share by occupation, in any unit.

    Returns:
        A `LabourAssociation`.

    Raises:
        ScoreError: Fewer than two occupations in common.

    >>> labour_association({"a": 0.1, "b": 0.2, "c": None}, {"a": 20.0, "b": 70.0, "d": 50.0}).missing
    ('c', 'd')
    """
    known = {name: value for name, value in scores.items() if value is not None}
    common = [name for name in known if name in shares]
    if len(common) < 2:  # noqa: PLR2004  a correlation needs two
        raise ScoreError(f"{len(common)} occupations have a score and a share; use the same names on both sides")
    x, y = [known[name] for name in common], [shares[name] for name in common]
    missing = sorted({*scores, *shares} - set(common))
    return LabourAssociation(pearson(x, y), kendall(x, y), len(common), tuple(missing))


def quadrants(scores: Mapping[str, float], shares: Mapping[str, float], *, middle: float = 50.0) -> dict[str, int]:
    """How many occupations' bias agrees with the labour market.

    Args:
        scores: Signed bias by occupation (B_micro), positive towards men.
        shares: Male share by occupation.
        middle: The share that divides; exactly this share counts as female-dominated.

    Returns:
        Counts of `male_biased_male`, `male_biased_female`, `female_biased_male`, `female_biased_female` (bias, then who
        works in it) and of `unbiased`.

    >>> quadrants({"a": 0.1, "b": -0.2}, {"a": 80.0, "b": 50.0})["female_biased_female"]
    1
    """
    kinds = ("male", "female")
    found = {f"{bias}_biased_{work}": 0 for bias in kinds for work in kinds} | {"unbiased": 0}
    for name in scores:
        if name in shares:
            work = "male" if shares[name] > middle else "female"
            bias = "male" if scores[name] > 0 else "female"
            found["unbiased" if scores[name] == 0 else f"{bias}_biased_{work}"] += 1
    return found


@dataclass(frozen=True, slots=True)
class Spread:
    """What a score does over random repetitions.

    Attributes:
        mean: Mean over repetitions.
        sd: Sample standard deviation (ddof 1) over repetitions.
    """

    mean: float
    sd: float


def _spreads(runs: Sequence[Mapping[str, float]]) -> dict[str, Spread]:
    if len(runs) < 2:  # noqa: PLR2004  a deviation needs two
        raise ScoreError(f"{len(runs)} runs; at least two are needed")
    columns = {name: np.array([run[name] for run in runs]) for name in runs[0]}
    return {name: Spread(float(each.mean()), float(np.std(each, ddof=1))) for name, each in columns.items()}


def subsample(
    groups: Sequence[Any],
    score: Callable[[npt.NDArray[np.int64]], Mapping[str, float]],
    *,
    keep: int,
    runs: int = 500,
    seed: int = 0,
) -> dict[str, Spread]:
    """Error analysis by sub-sampling: every run keeps `keep` rows of every group, without replacement.

    Args:
        groups: `(rows,)` label of each row's group, such as occupation and pair of genders (five images in VisoGender).
        score: Takes the kept rows' places (ascending) and returns scores by name.
        keep: Rows per group; a group with fewer keeps all.
        runs: Repetitions.
        seed: Of the sub-samples.

    Returns:
        Mean and standard deviation of every score over runs.

    Raises:
        ScoreError: Fewer than two runs, or keep below 1.

    >>> found = subsample(["a", "a", "b", "b"], lambda rows: {"rows": len(rows)}, keep=1, runs=3)
    >>> found["rows"]
    Spread(mean=2.0, sd=0.0)
    """
    if keep < 1:
        raise ScoreError(f"keep={keep}; keep at least one row per group")
    of, names = factor(groups, "groups")
    members = [np.flatnonzero(of == code) for code in range(len(names))]
    generator = np.random.default_rng(seed)
    results = []
    for _ in range(runs):
        kept = [generator.permutation(each)[:keep] for each in members]
        results.append(score(np.sort(np.concatenate(kept))))
    return _spreads(results)


def random_relabelling(
    similarities: Sequence[Any] | npt.NDArray[Any],
    *,
    genders: Sequence[Any] | npt.NDArray[Any],
    k: Sequence[int] = (5, 10),
    runs: int = 3000,
    seed: int = 0,
    **options: Any,
) -> dict[str, Spread]:
    """Retrieval scores where genders are shuffled among each query's images: what chance alone gives.

    Args:
        similarities: As `predictions` of `retrieval_bias`.
        genders: As there: one list, which is shuffled for all queries together, or one per query.
        k: The cuts.
        runs: Repetitions.
        seed: Of the shuffles.
        **options: `target` and `empty` of `retrieval_bias`.

    Returns:
        Mean and standard deviation over runs of every mean over queries, and of its `_sd` over queries.

    Raises:
        ScoreError: As `retrieval_bias`; fewer than two runs.

    >>> found = random_relabelling([[3, 2, 1, 0]], genders=["man", "man", "woman", "woman"], k=[2], runs=50)
    >>> -0.5 < found["bias@2"].mean < 0.5
    True
    """
    same_length(len(similarities), similarities, "similarities")
    generator = np.random.default_rng(seed)
    own = bool(len(genders)) and not isinstance(genders[0], str) and np.ndim(genders[0]) == 1
    labels = [codes(each, "genders", GENDERS) for each in (genders if own else [genders])]
    results = []
    for _ in range(runs):
        shuffled = [generator.permutation(each) for each in labels]
        found = retrieval_bias(similarities, genders=shuffled if own else shuffled[0], k=k, n_resamples=0, **options)
        results.append({name: float(value) for name, value in found.scores.items() if value is not None})
    return _spreads(results)

"""Retrieval bias: who is found first? Skew@k, MaxSkew@k, Bias@k and NDKL of ranked images.

Sources: MaxSkew@k over balanced draws, Hirota et al. 2025; Bias@k, Skew@k and NDKL, Hall et al. 2023 (VisoGender),
after Geyik et al. 2019.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ._check import GENDERS, Bools, Floats, Ints, all_groups, codes, matrix, one_of, same_length, seeded, whole
from ._ranking import DivergenceTable, check_draws, check_k, rank
from ._resample import resampled_counts
from ._top import EMPTY, TopCounts
from .bootstrap import interval
from .chance import expected_max_skew, expected_ndkl, expected_skew

TARGETS = ("uniform", "dataset")
QUERIES = 8
"""Queries that are counted at a time: enough to share the calls, few enough to stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class RetrievalScore:
    """One score over all queries and draws.

    Attributes:
        metric: `bias@k`, `max_skew@k`, `skew_<group>@k` or `ndkl`.
        value: Mean over queries and draws; minus infinity for a skew with `empty="neg_inf"` where a group is absent.
        sd: Sample standard deviation (ddof 1) over queries of their means over draws; None for one query.
        sd_draws: The same over draws of their means over queries; None for one draw.
        null: Expectation under a random ranking (`chance`), what a model that knows nothing of gender gets; None where
            it is 0, as for Bias@k on balanced images, or minus infinity.
        ci_low: Lower end of the bootstrap interval of `value`; None without resamples.
        ci_high: Upper end.
        ties: Queries for which, in some draw, images of equal similarity stand on both sides of the cut.
    """

    metric: str
    value: float
    sd: float | None
    sd_draws: float | None
    null: float | None
    ci_low: float | None
    ci_high: float | None
    ties: int | None


@dataclass(frozen=True, slots=True)
class RetrievalScores:
    """What the rankings of one set of images say.

    Attributes:
        top: Counts in the top k, `(draws, queries, k, groups)`, and the scores made of them.
        divergence: `(draws, queries)` NDKL: 0 where every stretch of the ranking holds the desired shares, at least 0,
            lower is better.
        tied: `(draws, queries, k)` whether images of equal similarity stand on both sides of the cut.
        null: `(draws, k)` exact expectation of MaxSkew@k under a random ranking.
        ranked: `(draws, groups)` images of every group that are ranked.
        resampled: The counts on bootstrap resamples, `(resamples, draws, queries, k, groups)`, or None.
        options: Every convention and its value.
        counts: Queries, draws, and images of every group.
    """

    top: TopCounts
    divergence: Floats
    tied: Bools
    null: Floats
    ranked: Ints
    resampled: TopCounts | None
    options: Mapping[str, Any]
    counts: Mapping[str, int]
    _by_draw: dict[str, Floats] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Every score's name."""
        return (*self.top.metrics, "ndkl")

    def values(self, metric: str) -> Floats:
        """`(draws, queries)` values of one score.

        Raises:
            ScoreError: The score is not one of `metrics`.
        """
        return self.divergence if metric == "ndkl" else self.top.values(metric)

    def expected(self, metric: str) -> float | None:
        """Expectation of one score under a random ranking, mean over draws; None where it is minus infinity.

        Raises:
            ScoreError: The score is not one of `metrics`.
        """
        if metric not in self.metrics:
            self.values(metric)  # says which there are
        kind, _, k = metric.partition("@")
        if kind == "max_skew":
            return float(self.null[:, self.top.k.index(int(k))].mean())
        if kind == "bias":
            return float(((self.ranked[:, 1] - self.ranked[:, 0]) / self.ranked.sum(axis=1)).mean())
        draws = zip(self.ranked.tolist(), self.top.target.tolist(), strict=True)
        if kind == "ndkl":
            found = [expected_ndkl(sizes, target) for sizes, target in draws]
        else:
            group = self.top.groups.index(kind.removeprefix("skew_"))
            found = [expected_skew(sizes, int(k), target, self.top.empty)[group] for sizes, target in draws]
        mean = float(np.mean(found))
        return mean if np.isfinite(mean) else None

    def resampled_by_draw(self, metric: str) -> Floats | None:
        """`(resamples, draws)` mean over queries of one score on every resample; None where it was not resampled.

        Raises:
            ScoreError: The score is not one of `metrics`.
        """
        if self.resampled is None or metric == "ndkl":
            return None
        if metric not in self._by_draw:
            # Many comparisons ask for the same few means of many counts.
            self._by_draw[metric] = self.resampled.values(metric).mean(axis=2)
        return self._by_draw[metric]

    def select(self, queries: Sequence[int]) -> RetrievalScores:
        """The same for some of the queries, such as one prompt set."""
        places = np.asarray(queries, dtype=np.int64)
        return replace(
            self,
            top=self.top.select(places),  # type: ignore[arg-type]
            divergence=self.divergence[:, places],
            tied=self.tied[:, places],
            resampled=None if self.resampled is None else self.resampled.select(places),  # type: ignore[arg-type]
            counts={**self.counts, "queries": len(places)},
        )

    def summary(self, *, confidence: float = 0.95) -> tuple[RetrievalScore, ...]:
        """Every score with its spread, its null and its interval.

        Intervals are percentiles of the resampled means. MaxSkew is a maximum, which noise inflates in a resample as it
        does in the data: the lower end is of the resamples moved so that their mean is the observed value, which holds
        the null where there is no bias; the upper end is not moved, since beside a bias they vary less than the score
        does. What it means is its excess over `null`, whose interval is the one given less `null`.

        Args:
            confidence: Nominal coverage of the intervals.
        """
        return tuple(self._score(metric, confidence) for metric in self.metrics)

    def _score(self, metric: str, confidence: float) -> RetrievalScore:
        values = self.values(metric)
        low = high = None
        resampled = self.resampled_by_draw(metric)
        if resampled is not None:
            low, high = _interval(resampled.mean(axis=1), float(values.mean()), metric, confidence)
        k = metric.partition("@")[2]
        place = self.top.k.index(int(k)) if k else None
        return RetrievalScore(
            metric=metric,
            value=float(values.mean()),
            sd=spread(values.mean(axis=0)),
            sd_draws=spread(values.mean(axis=1)),
            null=self.expected(metric) or None,
            ci_low=low,
            ci_high=high,
            ties=None if place is None else int(self.tied[..., place].any(axis=0).sum()),
        )


def _interval(resampled: Floats, value: float, metric: str, confidence: float) -> tuple[float | None, float | None]:
    if not np.isfinite(resampled).all():
        return None, None
    low, high = interval(resampled, value, confidence=confidence)
    if metric.startswith("max_skew"):
        shift = value - float(resampled.mean())
        return low + shift, max(high + shift, high)
    return low, high


def spread(values: Floats) -> float | None:
    """Sample standard deviation (ddof 1); None for fewer than two values or an infinite one."""
    return float(np.std(values, ddof=1)) if len(values) > 1 and np.isfinite(values).all() else None


def retrieval_scores(
    similarities: npt.ArrayLike,
    genders: Sequence[Any] | npt.NDArray[Any],
    *,
    k: int | Sequence[int],
    draws: Sequence[npt.ArrayLike] | None = None,
    target: str = "uniform",
    empty: str = "clip",
    groups: Sequence[str] = GENDERS,
    n_resamples: int = 0,
    seed: int = 0,
) -> RetrievalScores:
    """All retrieval scores of a set of queries over one set of images.

    Every query ranks the images by similarity, equal ones by image order, and exactly k are kept. With n_g images of
    group g in the top k and its desired share t_g: Skew_g@k = ln(n_g / k / t_g), MaxSkew@k = max_g Skew_g@k,
    Bias@k = (men - women) / k (the second group less the first, for two groups), NDKL as in `RetrievalScores`.

    Resamples fill every image's place with a random image of the same group, the same for all queries and draws. The
    same seed on the same images gives the same resamples: `retrieval_changes` compares in pairs.

    Args:
        similarities: `(queries, images)` similarity of every query to every image.
        genders: `(images,)` label of each image.
        k: One or more cuts.
        draws: Index arrays of balanced subsets (`balanced_draws`); None ranks every image once.
        target: Desired share of a group: `uniform` (one over the number of groups) or `dataset` (its share of the
            draw).
        empty: Skew of a group without an image in the top k: `clip` (as if it had one) or `neg_inf`.
        groups: The labels that can occur; Bias@k needs exactly two.
        n_resamples: Bootstrap resamples; 0 for no intervals. There are none either where a group has a single image.
        seed: Of the resamples.

    Returns:
        A `RetrievalScores`.

    Raises:
        ScoreError: Ragged or NaN similarities, an unknown label, a group without images, k above a draw's size.

    >>> found = retrieval_scores([[0.9, 0.8, 0.3, 0.1]], ["man", "man", "woman", "woman"], k=[2, 4])
    >>> {score.metric: round(score.value, 3) for score in found.summary() if score.metric.startswith("bias")}
    {'bias@2': 1.0, 'bias@4': 0.0}
    """
    one_of(target, "target", TARGETS)
    one_of(empty, "empty", EMPTY)
    whole(n_resamples, "n_resamples")
    seeded(seed)
    table = matrix(similarities, "similarities")
    same_length(table.shape[1], genders, "genders", "a row of similarities")
    group = codes(genders, "genders", groups)
    sizes = all_groups(group, "genders", groups)
    cuts = check_k(k)
    chosen = check_draws(draws, table.shape[1], cuts)
    drawn = np.stack([all_groups(group[draw], f"draw {number}", groups) for number, draw in enumerate(chosen)])
    shares = np.full(drawn.shape, 1 / len(groups)) if target == "uniform" else drawn / drawn.sum(axis=1, keepdims=True)

    order = rank(table)
    # Balanced groups give the same draw every time: it is measured once.
    distinct = {draw.tobytes(): (draw, share) for draw, share in zip(chosen, shares, strict=True)}
    measured = {key: _draw(order, table, group, draw, cuts, share) for key, (draw, share) in distinct.items()}
    parts = [measured[draw.tobytes()] for draw in chosen]
    counts, tied, divergence = (np.stack(part) for part in zip(*parts, strict=True))
    top = TopCounts(cuts, tuple(groups), counts, shares, empty)
    resampled = None
    # One image resamples to itself: an interval from it would claim to be sure.
    if n_resamples and sizes.min() > 1:
        found = resampled_counts(order, group, chosen, cuts, len(groups), n_resamples, seed)
        resampled = replace(top, counts=found)
    images = {f"images_{name}": int(size) for name, size in zip(groups, sizes, strict=True)}
    ranked = {f"ranked_{name}": int(size) for name, size in zip(groups, drawn[0], strict=True)}
    return RetrievalScores(
        top=top,
        divergence=divergence,
        tied=tied,
        null=_null(drawn, cuts, shares, empty),
        ranked=drawn,
        resampled=resampled,
        options={
            "k": list(cuts),
            "draws": 0 if draws is None else len(chosen),
            "target": target,
            "empty": empty,
            "n_resamples": n_resamples,
            "seed": seed,
        },
        counts={"queries": len(table), "draws": len(chosen), **images, **ranked},
    )


def _draw(
    order: Ints, table: npt.NDArray[Any], group: Ints, draw: Ints, cuts: tuple[int, ...], share: Floats
) -> tuple[Ints, Bools, Floats]:
    """Counts, ties at the cut and NDKL of every query on one draw."""
    outside = len(share)
    state = np.full(len(group), outside, dtype=np.int8)
    state[draw] = group[draw]
    last = np.array(cuts) - 1
    after = np.minimum(last + 1, len(draw) - 1)
    places = np.arange(1, len(draw) + 1)
    ndkl = DivergenceTable(len(draw), share)
    counts = np.empty((len(order), len(cuts), len(share)), dtype=np.int64)
    tied = np.empty((len(order), len(cuts)), dtype=bool)
    divergence = np.empty(len(order))
    for start in range(0, len(order), QUERIES):
        rows = slice(start, start + QUERIES)
        ranked = order[rows]
        states = state.take(ranked)
        kept = np.flatnonzero(states < outside)
        labels = states.ravel().take(kept).reshape(len(ranked), -1)
        cumulative = [np.cumsum(labels == code, axis=1, dtype=np.int64) for code in range(1, len(share))]
        cumulative.insert(0, places - sum(cumulative))
        counts[rows] = np.stack([each[:, last] for each in cumulative], axis=-1)
        divergence[rows] = ndkl(cumulative)
        at_cuts = (kept.reshape(labels.shape)[:, cut] for cut in (last, after))
        values = [np.take_along_axis(table[rows], ranked.ravel()[each], axis=1) for each in at_cuts]
        tied[rows] = values[0] == values[1]
    tied[:, last == len(draw) - 1] = False
    return counts, tied, divergence


def _null(drawn: Ints, cuts: tuple[int, ...], shares: Floats, empty: str) -> Floats:
    known: dict[tuple[tuple[int, ...], int], float] = {}
    null = np.empty((len(drawn), len(cuts)))
    for number, (sizes, share) in enumerate(zip(drawn, shares, strict=True)):
        for place, cut in enumerate(cuts):
            key = (tuple(int(size) for size in sizes), cut)
            if key not in known:
                known[key] = expected_max_skew(key[0], cut, share, empty)
            null[number, place] = known[key]
    return null

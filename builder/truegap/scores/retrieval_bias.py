"""Retrieval bias in one plain call: one candidate set for all queries, or one per query (as in VisoGender)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ._check import ScoreError, codes, confident, matrix, same_length, seeded, whole
from ._ranking import check_k
from .draws import LARGEST, balanced_draws
from .retrieval import RetrievalScores, retrieval_scores, spread

Query = dict[str, float | None]
KINDS = ("bias", "max_skew", "skew_woman", "skew_man")
PER_CUT = (*KINDS, *(f"{kind}_null" for kind in KINDS), "ties")
INFINITE = 'minus infinity: a query has nobody of a gender in its top k; use empty="clip"'


@dataclass(frozen=True, slots=True)
class RetrievalBias:
    """Every retrieval score as a plain mapping.

    Attributes:
        scores: Means over queries: `bias@k` in [-1, 1], positive where men are found first; `max_skew@k`, at least 0,
            lower is better; `skew_woman@k` and `skew_man@k`, 0 is best; `ndkl`, at least 0, lower is better. With
            `_null`, as in `max_skew_null@k`, the expectation under a random ranking; with `_sd` the sample standard
            deviation over queries (ddof 1). `ties@k` counts the queries with equal similarities on both sides of the
            cut. None where no query has a value, where it is minus infinity (see `reasons`), or where fewer than two
            queries have a deviation.
        reasons: Why a mean is None, by its name.
        ci_low: Lower end of the interval of `bias@k` of the first k; None where images are not shared by the queries.
        ci_high: Upper end.
        per_query: The same scores of every query (mean over draws); None where its k is above its number of images, or
            the value is minus infinity.
        options: Every convention and its value.
        counts: Queries, images of each gender, and `null@k`: queries without a value at k.
    """

    scores: Mapping[str, float | int | None]
    reasons: Mapping[str, str]
    ci_low: float | None
    ci_high: float | None
    per_query: tuple[Query, ...]
    options: Mapping[str, Any]
    counts: Mapping[str, int]


def retrieval_bias(
    predictions: Sequence[Any] | npt.NDArray[Any],
    *,
    genders: Sequence[Any] | npt.NDArray[Any],
    k: int | Sequence[int] = (5, 10),
    draws: int = 0,
    target: str = "uniform",
    empty: str = "clip",
    ids: Sequence[Any] | None = None,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> RetrievalBias:
    """Skew@k, MaxSkew@k, Bias@k and NDKL with what chance gives, averaged over queries (Hall et al. 2023).

    With one list of genders all queries rank the same images: k above their number is an error, and the interval
    resamples images within gender. With a list per query every query ranks its own images: a query with fewer than k
    has no value at k (counted), and there is no interval, because it is not known which images are the same.

    Args:
        predictions: One row per query: similarity to every candidate image.
        genders: `woman` or `man` (or 0, 1) of every candidate: one list, or one list per query.
        k: One or more cuts.
        draws: Balanced draws to average over; 0 ranks every candidate.
        target: Desired shares: `uniform` or `dataset`.
        empty: Skew of a gender without an image in the top k: `clip` (as if it had one) or `neg_inf` (then a mean over
            such a query is None, with its reason).
        ids: Ids of the candidates, which make the draws independent of their order; only with one list of genders.
        confidence: Nominal coverage of the interval.
        n_resamples: Bootstrap resamples; 0 for no interval.
        seed: Of draws and resamples.

    Returns:
        A `RetrievalBias`.

    Raises:
        ScoreError: Ragged or NaN similarities, an unknown label, a query without one gender, k above the candidates, or
            a number of draws or resamples that is negative or absurd.

    >>> found = retrieval_bias([[0.9, 0.8, 0.3, 0.1]], genders=["man", "man", "woman", "woman"], k=2)
    >>> found.scores["bias@2"], round(found.scores["max_skew@2"], 3), found.scores["ties@2"]
    (1.0, 0.693, 0)
    """
    cuts = check_k(k)
    whole(draws, "draws", most=LARGEST)
    whole(n_resamples, "n_resamples")
    seeded(seed)
    confident(confidence)
    if not hasattr(genders, "__len__"):
        raise ScoreError("genders: none given; give the label of every candidate, one list for all or one per query")
    options = {
        "k": list(cuts),
        "draws": draws,
        "target": target,
        "empty": empty,
        "confidence": confidence,
        "n_resamples": n_resamples,
        "seed": seed,
    }
    if len(genders) and not isinstance(genders[0], str) and np.ndim(genders[0]) == 1:
        if ids is not None:
            raise ScoreError("ids: only with one list of genders for all queries; leave them out")
        return _own_images(predictions, genders, cuts, draws, target, empty, seed, options)
    drawn = balanced_draws(genders, draws=draws, seed=seed, ids=ids) if draws else None
    table = matrix(predictions, "predictions")
    found = retrieval_scores(
        table, genders, k=cuts, draws=drawn, target=target, empty=empty, n_resamples=n_resamples, seed=seed
    )
    main = next(score for score in found.summary(confidence=confidence) if score.metric == f"bias@{cuts[0]}")
    queries = tuple(_query(found, place) for place in range(found.counts["queries"]))
    counts = {**found.counts, **{f"null@{cut}": 0 for cut in cuts}}
    return _result(queries, cuts, options, counts, main.ci_low, main.ci_high)


def _own_images(
    predictions: Sequence[Any] | npt.NDArray[Any],
    genders: Sequence[Any] | npt.NDArray[Any],
    cuts: tuple[int, ...],
    draws: int,
    target: str,
    empty: str,
    seed: int,
    options: Mapping[str, Any],
) -> RetrievalBias:
    same_length(len(predictions), genders, "genders")
    queries: list[Query] = []
    counts = {"queries": len(predictions), "draws": max(draws, 1), "images_woman": 0, "images_man": 0}
    counts |= {f"null@{cut}": 0 for cut in cuts}
    names = [*(f"{kind}@{cut}" for cut in cuts for kind in PER_CUT), "ndkl", "ndkl_null"]
    for place, (row, labels) in enumerate(zip(predictions, genders, strict=True)):
        try:
            table = matrix([row], "predictions")
            label = codes(labels, "genders")
            drawn = balanced_draws(label, draws=draws, seed=seed) if draws else None
            size = len(drawn[0]) if drawn else len(label)
            fitting = tuple(cut for cut in cuts if cut <= size)
            # The divergence of the whole ranking needs no cut: a query too short for every k keeps its NDKL.
            found = retrieval_scores(table, label, k=fitting or 1, draws=drawn, target=target, empty=empty)
        except ScoreError as error:
            raise ScoreError(f"query {place}: {error}") from None
        each = _query(found, 0)
        queries.append({name: each.get(name) for name in names})
        counts["images_woman"] += found.counts["images_woman"]
        counts["images_man"] += found.counts["images_man"]
        for cut in cuts:
            counts[f"null@{cut}"] += cut not in fitting
    for cut in cuts:
        if queries and counts[f"null@{cut}"] == len(queries):
            raise ScoreError(f"k={cut} is above the number of images of every query; use a smaller k")
    return _result(queries, cuts, options, counts)


def _query(found: RetrievalScores, place: int) -> Query:
    values: Query = {metric: float(found.values(metric)[:, place].mean()) for metric in found.metrics}
    for metric in found.metrics:
        kind, at, cut = metric.partition("@")
        values[f"{kind}_null{at}{cut}"] = found.expected(metric)
    for number, each in enumerate(found.top.k):
        values[f"ties@{each}"] = int(found.tied[:, place, number].any())
    return values


def _result(
    queries: Sequence[Query],
    cuts: Sequence[int],
    options: Mapping[str, Any],
    counts: Mapping[str, int],
    low: float | None = None,
    high: float | None = None,
) -> RetrievalBias:
    """Means over queries; what is infinite becomes None, which JSON knows."""
    means: dict[str, float | int | None] = {}
    reasons = {}
    for name in [name for name in queries[0] if not name.startswith("ties@")]:
        known = np.array([value for query in queries if (value := query[name]) is not None])
        infinite = len(known) > 0 and not np.isfinite(known).all()
        means[name] = float(known.mean()) if len(known) and not infinite else None
        if infinite:
            reasons[name] = INFINITE
        if "_null" not in name:
            means[f"{name}_sd"] = spread(known)
    means |= {f"ties@{cut}": int(sum(query[f"ties@{cut}"] or 0 for query in queries)) for cut in cuts}
    finite = tuple({name: _finite(value) for name, value in query.items()} for query in queries)
    return RetrievalBias(means, reasons, low, high, finite, options, counts)


def _finite(value: float | None) -> float | None:
    return value if value is None or np.isfinite(value) else None

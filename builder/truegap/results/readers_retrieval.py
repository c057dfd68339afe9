"""Similarities of queries to images: read from a table, scored by MaxSkew, Bias, Skew and NDKL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from truegap.errors import UserError
from truegap.results.readers_scoring import ORIGINAL, Floats, Ints, Scored, Scoring, configs
from truegap.results.readers_table import Columns
from truegap.results.records import ChangeRecord, ScoreRecord
from truegap.scores import (
    RetrievalBias,
    RetrievalScores,
    balanced_draws,
    default_k,
    retrieval_bias,
    retrieval_changes,
    retrieval_scores,
)

QUERY = ("query", "prompt_id", "prompt", "question")
INFINITE = "minus infinity: a gender is absent from a top k"
SHORT = "k is above the number of its images"


@dataclass(frozen=True, slots=True)
class Similarities:
    """Every query's similarity to the same images.

    Attributes:
        table: (queries, images).
        queries: Ids.
        images: Ids.
        genders: 0 woman, 1 man.
    """

    table: Floats
    queries: list[str]
    images: list[str]
    genders: Ints


def similarities(table: Columns) -> dict[str, Similarities]:
    """Similarities of every config of a table, every query to the same images.

    Raises:
        UserError: A column is missing, a cell is not what it should be, or a query lacks an image or has one twice.
    """
    what = "a retrieval table has score, gender, image_id, query, [config]"
    table.require(("score", "gender", "image_id"), what)
    query = table.one_of(QUERY)
    if query is None:
        table.require(("query",), what)
    scores, genders = table.numbers("score"), table.image_genders()
    asked, queries = table.codes(query or "query")
    shown, images = table.codes("image_id")
    found = {}
    for config, rows in configs(table).items():
        places = asked[rows] * len(images) + shown[rows]
        order = np.argsort(places, kind="stable")
        twice = np.flatnonzero(np.diff(places[order]) == 0)
        if len(twice):
            row = int(rows[order[twice[0] + 1]])
            raise UserError(f"{table.where(row)}: the query {queries[asked[row]]!r} has this image twice; keep one row")
        used_queries, used_images = np.unique(asked[rows]), np.unique(shown[rows])
        if len(rows) != len(used_queries) * len(used_images):
            asked_of = np.bincount(asked[rows], minlength=len(queries))[used_queries]
            short = used_queries[asked_of < len(used_images)][0]
            lacking = np.setdiff1d(used_images, shown[rows][asked[rows] == short])[0]
            name, image = queries[short], images[lacking]
            raise UserError(
                f"{table.path}: config {config}: the query {name!r} lacks image {image}; rank all by each query"
            )
        label = np.full(len(images), -1)
        label[shown[rows]] = genders[rows]
        # Images in the order of their ids, as a run has them: ties at the cut go by it.
        by_id = sorted(used_images.tolist(), key=images.__getitem__)
        place = np.empty(len(images), dtype=np.int64)
        place[by_id] = np.arange(len(by_id))
        matrix = np.empty((len(used_queries), len(by_id)))
        matrix[np.searchsorted(used_queries, asked[rows]), place[shown[rows]]] = scores[rows]
        found[config] = Similarities(
            table=matrix,
            queries=[queries[each] for each in used_queries],
            images=[images[each] for each in by_id],
            genders=label[by_id],
        )
    return found


def score_retrieval(sets: Mapping[str, Similarities], scoring: Scoring) -> Scored:
    """MaxSkew, Bias, Skew and NDKL of every config over balanced draws, and their changes from the original.

    Raises:
        ScoreError: A gender has no image, or k is above a draw's size.
    """
    first = next(iter(sets.values()))
    k = scoring.k or (default_k(2 * int(np.bincount(first.genders, minlength=2).min())),)
    draws = 5 if scoring.draws is None else scoring.draws
    found = Scored("retrieval", {"k": list(k), "draws": draws, **scoring.record("target", "empty", "aggregate")})
    measured = {}
    for config, each in sets.items():
        drawn = balanced_draws(each.genders, draws=draws, seed=scoring.seed, ids=each.images) if draws else None
        measured[config] = retrieval_scores(
            each.table,
            each.genders,
            k=k,
            draws=drawn,
            target=scoring.target,
            empty=scoring.empty,
            n_resamples=scoring.n_resamples,
            seed=scoring.seed,
        )
        for score in measured[config].summary(confidence=scoring.confidence):
            value = _finite(score.value)
            found.scores.append(
                ScoreRecord(
                    metric=score.metric,
                    config=config,
                    value=value,
                    reason=None if value is not None else INFINITE,
                    sd=score.sd,
                    ci_low=score.ci_low,
                    ci_high=score.ci_high,
                    null=score.null,
                    counts={**measured[config].counts, **({} if score.ties is None else {"ties": score.ties})},
                )
            )
        found.scores += _by_query(measured[config], each.queries, config)
    _changes(found, sets, measured, scoring)
    return found


def _by_query(measured: RetrievalScores, queries: Sequence[str], config: str) -> Iterator[ScoreRecord]:
    """Every score of every query, mean over draws."""
    columns = {metric: measured.values(metric).mean(axis=0) for metric in measured.metrics}
    for place, query in enumerate(queries):
        for metric, values in columns.items():
            value = _finite(float(values[place]))
            reason = None if value is not None else INFINITE
            yield ScoreRecord(metric=metric, config=config, scope=f"query:{query}", value=value, reason=reason)


def _changes(
    found: Scored, sets: Mapping[str, Similarities], measured: Mapping[str, RetrievalScores], scoring: Scoring
) -> None:
    """From the original to every other config that ranks the same images by the same queries."""
    before = sets.get(ORIGINAL)
    for config, each in sets.items():
        if before is None or config == ORIGINAL:
            continue
        if (each.images, each.queries) != (before.images, before.queries):
            found.notes.append(f"{config}: no change is given, since its images or queries are not the original's")
            continue
        pair = measured[ORIGINAL], measured[config]
        for change in retrieval_changes(*pair, aggregate=scoring.aggregate, confidence=scoring.confidence):
            fields = {name: getattr(change, name) for name in ChangeRecord.model_fields if hasattr(change, name)}
            ends = {name: _finite(fields[name]) for name in ("original", "perturbed")}
            found.changes.append(ChangeRecord(**fields | ends, config=config))


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def score_own_images(
    rows: Sequence[Sequence[float]], genders: Sequence[Sequence[str]], queries: Sequence[str], scoring: Scoring
) -> Scored:
    """The same where every query ranks images of its own, as in VisoGender: mean and sd over queries, no interval.

    Raises:
        ScoreError: A query lacks a gender, or k is above the images of every query.
    """
    k, draws = scoring.k or (5, 10), scoring.draws or 0
    result = retrieval_bias(
        rows, genders=genders, k=k, draws=draws, target=scoring.target, empty=scoring.empty, seed=scoring.seed
    )
    found = Scored("retrieval", {"k": list(k), "draws": draws, **scoring.record("target", "empty")})
    counts = dict(result.counts)
    for name in ("bias", "max_skew", "skew_woman", "skew_man"):
        for cut in k:
            metric = f"{name}@{cut}"
            found.scores.append(_spread(metric, f"{name}_null@{cut}", result, counts))
    found.scores.append(_spread("ndkl", "ndkl_null", result, counts))
    metrics = [each.metric for each in found.scores]
    for query, each, row in zip(queries, result.per_query, rows, strict=True):
        for metric in metrics:
            cut = int(metric.partition("@")[2] or 0)
            reason = None if each[metric] is not None else SHORT if cut > len(row) else INFINITE
            scope = f"query:{query}"
            found.scores.append(
                ScoreRecord(metric=metric, config=ORIGINAL, scope=scope, value=each[metric], reason=reason)
            )
    found.notes.append("no interval: every query has images of its own; sd is over queries")
    return found


def _spread(metric: str, null: str, result: RetrievalBias, counts: dict[str, int]) -> ScoreRecord:
    return ScoreRecord(
        metric=metric,
        config=ORIGINAL,
        value=result.scores[metric],
        reason=result.reasons.get(metric),
        sd=result.scores[f"{metric}_sd"],
        null=result.scores[null] or None,
        counts=counts,
    )

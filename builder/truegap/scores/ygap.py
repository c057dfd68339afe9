"""YGap: do men or women get more "Yes"? (Hirota et al. 2025, equations 2 and 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ._check import (
    GENDERS,
    Floats,
    Ints,
    ScoreError,
    all_groups,
    codes,
    confident,
    factor,
    one_of,
    same_length,
    seeded,
    vector,
    whole,
)
from .bootstrap import METHODS, bootstrap_weights, cluster_strata, interval
from .permutation import p_value, permuted_labels


@dataclass(frozen=True, slots=True)
class QuestionGap:
    """One question's answers.

    Attributes:
        question: Its id.
        ygap: Mean over men minus mean over women of p(Yes), in [-1, 1].
        yes_woman: Mean p(Yes) over women.
        yes_man: Mean p(Yes) over men.
        n_woman: Answers on women.
        n_man: Answers on men.
    """

    question: str
    ygap: float
    yes_woman: float
    yes_man: float
    n_woman: int
    n_man: int


@dataclass(frozen=True, slots=True)
class YGap:
    """The gap over all questions, with its uncertainty.

    Attributes:
        ygap: Mean of the questions' gaps, in [-1, 1]; positive favours men, 0 is no gap.
        abs_ygap: Its absolute value, in [0, 1]; lower is better.
        mean_abs_ygap: Mean of the questions' absolute gaps, in [0, 1]: opposite gaps do not cancel in it, and noise
            alone keeps it above 0.
        ci_low: Lower end of the interval of `ygap`; None where the images are not known, or a gender has only one of
            them (or clusters of one kind of genders are only one).
        ci_high: Upper end.
        p_value: Of `ygap` = 0, from relabelling whole images; None where the images are not known, or clusters are.
        per_question: Every question's gap, in order of first appearance.
        per_stratum: Mean gap and mean absolute gap of every value of every stratum, such as
            `{"topic": {"skill": {"ygap": .., "mean_abs_ygap": ..}}}`.
        options: Every convention and its value.
        counts: Rows, questions, images and answers per gender.
    """

    ygap: float
    abs_ygap: float
    mean_abs_ygap: float
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    per_question: tuple[QuestionGap, ...]
    per_stratum: Mapping[str, Mapping[str, Mapping[str, float]]]
    options: Mapping[str, Any]
    counts: Mapping[str, int]


def ygap(
    predictions: npt.ArrayLike,
    genders: Sequence[Any] | npt.NDArray[Any],
    *,
    images: Sequence[Any] | npt.NDArray[Any] | None = None,
    questions: Sequence[Any] | npt.NDArray[Any] | None = None,
    clusters: Sequence[Any] | npt.NDArray[Any] | None = None,
    strata: Mapping[str, Mapping[str, str]] | None = None,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    n_permutations: int = 1000,
    method: str = "percentile",
    seed: int = 0,
) -> YGap:
    """Difference of p(Yes) between images of men and of women, averaged over questions.

    `YGap(question)` is the mean of p(Yes) over men minus that over women; the benchmark's YGap is the mean over
    questions. Answers need not be complete: every question is averaged over the images on which it was asked. The
    interval resamples whole images within gender, all of an image's answers together; the test relabels whole images.

    Args:
        predictions: `(rows,)` p(Yes) in [0, 1], or 0/1 for answers.
        genders: `(rows,)` `woman` or `man`, or their codes 0 and 1.
        images: `(rows,)` id of the image of each row; without it there is neither interval nor p-value.
        questions: `(rows,)` id of the question of each row; without it all rows are one question.
        clusters: `(rows,)` what each row's image belongs to, such as its photographer or source page; whole clusters
            are then resampled, among those that show the same genders. There is no p-value: relabelling image by
            image would take the images of a cluster for independent.
        strata: Names of groupings of the questions, such as `{"topic": {"brave": "personality"}}`; a question that a
            grouping does not name is left out of that grouping.
        confidence: Nominal coverage of the interval.
        n_resamples: Bootstrap resamples; 0 for no interval.
        n_permutations: Random relabellings; 0 for no p-value.
        method: `percentile` or `bca`.
        seed: Of resampling and relabelling.

    Returns:
        A `YGap`.

    Raises:
        ScoreError: A probability is NaN or outside [0, 1], a label is unknown, columns are not aligned, a question
            has no woman or no man, one image has two genders or clusters, a grouping names none of the questions, or
            an option is unknown.

    >>> result = ygap([0.9, 0.7, 0.4, 0.2], ["man", "man", "woman", "woman"])
    >>> round(result.ygap, 3), result.ci_low is None
    (0.5, True)
    """
    one_of(method, "method", METHODS)
    confident(confidence)
    seeded(seed)
    whole(n_resamples, "n_resamples")
    whole(n_permutations, "n_permutations")
    groupings = strata or {}
    if not isinstance(groupings, Mapping) or not all(isinstance(of, Mapping) for of in groupings.values()):
        raise ScoreError('strata: no groupings of questions; give such as {"topic": {"brave": "personality"}}')
    scores = vector(predictions, "predictions", 0.0, 1.0)
    same_length(len(scores), genders, "genders")
    gender = codes(genders, "genders")
    asked, names = np.zeros(len(scores), dtype=np.int64), ["all"]
    if questions is not None:
        same_length(len(scores), questions, "questions")
        asked, names = factor(questions, "questions")

    per_question = _per_question(scores, gender, asked, names)
    gaps = np.array([each.ygap for each in per_question])
    observed = float(gaps.mean())

    low = high = probability = None
    counts = {"rows": len(scores), "questions": len(names)}
    counts |= {f"answers_{name}": int(np.sum(gender == code)) for code, name in enumerate(GENDERS)}
    if clusters is not None and (images is None or method == "bca"):
        raise ScoreError('clusters: they need images, and method="percentile"; give those, or leave clusters out')
    if images is not None:
        table = _by_image(scores, gender, asked, images, clusters)
        labels = table.labels
        counts |= {f"images_{name}": int(np.sum(labels == code)) for code, name in enumerate(GENDERS)}
        if table.clusters is not None:
            counts["clusters"] = int(table.clusters.max()) + 1
        # One image resamples to itself: an interval from it would claim to be sure.
        if n_resamples and np.bincount(table.strata).min() > 1:
            resampled = _resampled(table, n_resamples, seed)
            left_out = _jackknife(table) if method == "bca" else None
            known = resampled[np.isfinite(resampled)]
            low, high = interval(known, observed, confidence=confidence, method=method, jackknife=left_out)
        if n_permutations and clusters is None:
            probability = _test(table, observed, n_permutations, seed)
    return YGap(
        ygap=observed,
        abs_ygap=abs(observed),
        mean_abs_ygap=float(np.abs(gaps).mean()),
        ci_low=low,
        ci_high=high,
        p_value=probability,
        per_question=per_question,
        per_stratum=_per_stratum(gaps, names, groupings),
        options={
            "confidence": confidence,
            "n_resamples": n_resamples,
            "n_permutations": n_permutations,
            "method": method,
            "seed": seed,
            "strata": sorted(groupings),
        },
        counts=counts,
    )


def _per_question(scores: Floats, gender: Ints, asked: Ints, names: Sequence[str]) -> tuple[QuestionGap, ...]:
    cell = asked * 2 + gender
    sizes = np.bincount(cell, minlength=2 * len(names)).reshape(-1, 2)
    sums = np.bincount(cell, weights=scores, minlength=2 * len(names)).reshape(-1, 2)
    empty = np.argwhere(sizes == 0)
    if len(empty):
        question, missing = empty[0]
        message = f"question {names[question]!r} was asked on no {GENDERS[missing]}; a gap needs answers on both"
        raise ScoreError(message)
    means = sums / sizes
    return tuple(
        QuestionGap(name, float(man - woman), float(woman), float(man), int(n_woman), int(n_man))
        for name, (woman, man), (n_woman, n_man) in zip(names, means, sizes, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Table:
    """Sums and numbers of answers per image and question, images in the order of their ids.

    The order makes the same images resample alike whatever the order of the rows. `answers` is None where there is one
    answer in every cell: then the mean over questions can be taken per image first.
    """

    sums: Floats
    answers: Floats | None
    labels: Ints
    clusters: Ints | None = None

    @property
    def strata(self) -> Ints:
        """Among which images (or clusters) each is drawn."""
        if self.clusters is None:
            return self.labels
        return cluster_strata(self.labels, self.clusters, int(self.clusters.max()) + 1)

    def gap(self, men: Floats, women: Floats) -> Floats:
        """YGap for every row of weights; NaN where they hold no answer to a question."""
        if self.answers is None:
            means = self.sums.mean(axis=1)
            return np.asarray(men @ means / men.sum(axis=1) - women @ means / women.sum(axis=1))
        with np.errstate(invalid="ignore"):
            gaps = (men @ self.sums) / (men @ self.answers) - (women @ self.sums) / (women @ self.answers)
        return np.asarray(gaps.mean(axis=1))


def _by_image(
    scores: Floats,
    gender: Ints,
    asked: Ints,
    images: Sequence[Any] | npt.NDArray[Any],
    clusters: Sequence[Any] | npt.NDArray[Any] | None = None,
) -> _Table:
    same_length(len(scores), images, "images")
    shown, ids = factor(images, "images")
    names, place = np.unique(ids, return_inverse=True)
    shown = place[shown]
    labels = np.empty(len(names), dtype=np.int64)
    labels[shown] = gender
    wrong = np.flatnonzero(labels[shown] != gender)
    if len(wrong):
        row = int(wrong[0])
        image = str(names[shown[row]])
        raise ScoreError(f"genders: row {row}: image {image!r} is a woman in one row and a man in another; mend one")
    questions = int(asked.max()) + 1
    cell, shape = shown * questions + asked, (len(names), questions)
    size = len(names) * questions
    sums = np.asarray(np.bincount(cell, weights=scores, minlength=size), dtype=np.float64).reshape(shape)
    answers = np.asarray(np.bincount(cell, minlength=size), dtype=np.float64).reshape(shape)
    of = None if clusters is None else _cluster_of(clusters, shown, names)
    return _Table(sums, None if bool((answers == 1).all()) else answers, labels, of)


def _cluster_of(clusters: Sequence[Any] | npt.NDArray[Any], shown: Ints, names: npt.NDArray[Any]) -> Ints:
    """Each image's cluster, in the order of the clusters' ids."""
    same_length(len(shown), clusters, "clusters")
    found, ids = factor(clusters, "clusters")
    _, place = np.unique(ids, return_inverse=True)
    found = place[found]
    of = np.empty(len(names), dtype=np.int64)
    of[shown] = found
    wrong = np.flatnonzero(of[shown] != found)
    if len(wrong):
        row = int(wrong[0])
        raise ScoreError(f"clusters: row {row}: image {str(names[shown[row]])!r} is in two of them; give it one")
    return of


def _resampled(table: _Table, n_resamples: int, seed: int) -> Floats:
    man = table.labels.astype(np.float64)
    gaps = []
    for drawn in bootstrap_weights(table.strata, n_resamples=n_resamples, seed=seed):
        weights = drawn if table.clusters is None else drawn[:, table.clusters]
        gaps.append(table.gap(weights * man, weights * (1 - man)))
    return np.concatenate(gaps)


def resampled_ygap(
    predictions: npt.ArrayLike,
    genders: Sequence[Any] | npt.NDArray[Any],
    *,
    images: Sequence[Any] | npt.NDArray[Any],
    questions: Sequence[Any] | npt.NDArray[Any] | None = None,
    clusters: Sequence[Any] | npt.NDArray[Any] | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Floats:
    """YGap on bootstrap resamples, to be compared in pairs with that of other answers on the same images.

    Args:
        predictions: As in `ygap`.
        genders: As in `ygap`.
        images: As in `ygap`. Two calls with the same ids, genders and seed resample the same images, in any row order.
        questions: As in `ygap`.
        clusters: As in `ygap`.
        n_resamples: How many.
        seed: Of the resamples.

    Returns:
        `(resamples,)` gaps; NaN where a resample holds no answer to a question (`paired_difference` and its like leave
        it out).

    Raises:
        ScoreError: As `ygap`.

    >>> answers = {"genders": [1, 0, 1, 0], "images": ["a", "b", "c", "d"], "n_resamples": 3}
    >>> resampled_ygap([0.5, 0.25, 0.5, 0.25], **answers).tolist()
    [0.25, 0.25, 0.25]
    """
    scores = vector(predictions, "predictions", 0.0, 1.0)
    same_length(len(scores), genders, "genders")
    gender = codes(genders, "genders")
    all_groups(gender, "genders")
    asked = np.zeros(len(scores), dtype=np.int64)
    if questions is not None:
        same_length(len(scores), questions, "questions")
        asked, _ = factor(questions, "questions")
    return _resampled(_by_image(scores, gender, asked, images, clusters), n_resamples, seed)


def _jackknife(table: _Table) -> Floats:
    """YGap without each image in turn, of the images that can be spared."""
    counted = np.ones_like(table.sums) if table.answers is None else table.answers
    groups = [table.labels == code for code in (0, 1)]
    total = [(table.sums[rows].sum(axis=0), counted[rows].sum(axis=0)) for rows in groups]
    means = [sum_ / count for sum_, count in total]
    values = np.full(len(table.labels), np.nan)
    for code, sign in ((0, -1.0), (1, 1.0)):
        rows = groups[code]
        with np.errstate(invalid="ignore", divide="ignore"):
            without = (total[code][0] - table.sums[rows]) / (total[code][1] - counted[rows])
        values[rows] = sign * (without - means[1 - code]).mean(axis=1)
    return np.asarray(values[np.isfinite(values)])


def _test(table: _Table, observed: float, n_permutations: int, seed: int) -> float:
    permuted = []
    for order in permuted_labels(table.labels, n_permutations=n_permutations, seed=seed):
        man = order.astype(np.float64)
        permuted.append(table.gap(man, 1 - man))
    values = np.concatenate(permuted)
    return p_value(observed, values[np.isfinite(values)])


def _per_stratum(
    gaps: Floats, names: Sequence[str], strata: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, dict[str, float]]]:
    found: dict[str, dict[str, dict[str, float]]] = {}
    for stratum, of in strata.items():
        if of and not set(of) & set(names):
            raise ScoreError(f"strata: {stratum!r} names none of the questions, such as {names[0]!r}")
        rows: dict[str, list[float]] = {}
        for name, gap in zip(names, gaps, strict=True):
            if name in of:
                rows.setdefault(of[name], []).append(float(gap))
        found[stratum] = {
            value: {"ygap": float(np.mean(each)), "mean_abs_ygap": float(np.mean(np.abs(each))), "questions": len(each)}
            for value, each in rows.items()
        }
    return found

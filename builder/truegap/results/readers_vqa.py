"""Answers to yes-no questions: read from a table, scored by YGap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truegap.errors import UserError
from truegap.results.readers_scoring import ORIGINAL, Floats, Ints, Scored, Scoring, configs
from truegap.results.readers_table import Columns
from truegap.results.records import ChangeRecord, ScoreRecord
from truegap.results.show import plain
from truegap.scores import ScoreError, resampled_ygap, score_change, ygap

QUESTION = ("question", "prompt_id", "prompt")
YES = "yes"
STRATA = ("topic", "polarity")


@dataclass(frozen=True, slots=True)
class Answers:
    """p(Yes) of one config, one row per image and question.

    Attributes:
        scores: In [0, 1].
        genders: 0 woman, 1 man.
        images: Ids; None where not known.
        questions: Ids; None for a single question.
        strata: Each question's `topic` and `polarity`, where the table has them.
    """

    scores: Floats
    genders: Ints
    images: list[str] | None
    questions: list[str] | None
    strata: Mapping[str, Mapping[str, str]]


def vqa_answers(table: Columns) -> dict[str, Answers]:
    """p(Yes) of every config of a table.

    Raises:
        UserError: A column is missing, or a cell is not what it should be.
    """
    table.require(("score", "gender"), "a vqa table has score, gender, [image_id, question, config, topic, polarity]")
    counted = _counted(table)
    if "probability" in table:
        # A run's own table: its scores are log-probabilities, and of its many rows most are not looked at.
        table, counted = table.chosen(counted), np.ones(int(counted.sum()), dtype=bool)
    scores = table.numbers("probability" if "probability" in table else "score", 0.0, 1.0)
    genders = table.image_genders()
    question = table.one_of(QUESTION)
    images = table.text("image_id") if "image_id" in table else None
    questions = table.text(question) if question else None
    strata = {name: _stratum(table, name, questions) for name in STRATA if name in table and questions}
    return {
        config: Answers(
            scores=scores[rows],
            genders=genders[rows],
            images=None if images is None else [images[row] for row in rows],
            questions=None if questions is None else [questions[row] for row in rows],
            strata=strata,
        )
        for config, every in configs(table).items()
        if len(rows := every[counted[every]])
    }


def _counted(table: Columns) -> NDArray[np.bool_]:
    """The rows of the option yes; all where none is named."""
    if "option" not in table:
        return np.ones(len(table), dtype=bool)
    found, names = table.codes("option")
    counted = np.isin(found, [code for code, name in enumerate(names) if name.lower() == YES])
    if not counted.any():
        raise UserError(f"{table.path}: no row has option yes; name the option of the scores so, or leave it out")
    return counted


def _stratum(table: Columns, name: str, questions: list[str]) -> dict[str, str]:
    """The topic, or polarity, of every question that has one."""
    found: dict[str, str | None] = {}
    for row, (question, value) in enumerate(zip(questions, table.optional(name), strict=True)):
        if found.setdefault(question, value) != value:
            other = f"another row gives the question {plain(question, 60)!r} another {name}"
            raise UserError(f"{table.where(row)}: {other}; mend one")
    return {question: value for question, value in found.items() if value is not None}


def score_vqa(sets: dict[str, Answers], scoring: Scoring) -> Scored:
    """YGap of every config, and its change from the original where images are known.

    Raises:
        ScoreError: A question was asked on one gender only, or an image has two genders.
    """
    found = Scored("vqa", scoring.record("threshold"))
    for config, answers in sets.items():
        try:
            result = ygap(
                answers.scores,
                answers.genders,
                images=answers.images,
                questions=answers.questions,
                strata=answers.strata,
                confidence=scoring.confidence,
                n_resamples=scoring.n_resamples,
                seed=scoring.seed,
            )
        except ScoreError as error:
            raise ScoreError(f"config {config}: {error}") from None
        counts = dict(result.counts)
        found.scores += [
            ScoreRecord(
                metric="ygap",
                config=config,
                value=result.ygap,
                ci_low=result.ci_low,
                ci_high=result.ci_high,
                counts=counts,
            ),
            ScoreRecord(metric="mean_abs_ygap", config=config, value=result.mean_abs_ygap, counts=counts),
        ]
        if result.p_value is not None:
            found.notes.append(f"{config}: p = {result.p_value:.2g} for no gap (labels permuted over images)")
        if answers.images is not None and (again := len(answers.scores) - len(_asked(answers))):
            found.notes.append(f"{config}: {again} rows answer a question on an image once more; they are averaged")
        found.scores += [
            ScoreRecord(metric=metric, config=config, scope=f"{name}:{value}", value=each[metric])
            for name, stratum in result.per_stratum.items()
            for value, each in stratum.items()
            for metric in ("ygap", "mean_abs_ygap")
        ]
        found.scores += [
            ScoreRecord(metric="ygap", config=config, scope=f"prompt:{each.question}", value=each.ygap)
            for each in result.per_question
            if answers.questions is not None
        ]
    _changes(sets, scoring, found)
    return found


def _changes(sets: dict[str, Answers], scoring: Scoring, found: Scored) -> None:
    before = sets.get(ORIGINAL)
    values = {each.config: each.value for each in found.scores if (each.metric, each.scope) == ("ygap", "all")}
    if before is None or before.images is None or not scoring.n_resamples:
        return
    for config, after in sets.items():
        if config == ORIGINAL:
            continue
        if _asked(before) != _asked(after):
            found.notes.append(f"{config}: no change is given, since its images and questions are not the original's")
            continue
        resampled = [_resampled(each, scoring) for each in (before, after)]
        original, perturbed = values[ORIGINAL], values[config]
        assert original is not None
        assert perturbed is not None
        change = score_change(
            original, perturbed, *resampled, threshold=scoring.threshold, confidence=scoring.confidence
        )
        found.changes.append(
            ChangeRecord(
                metric="ygap",
                config=config,
                original=original,
                perturbed=perturbed,
                delta=change.delta,
                reason=change.reason,
                delta_low=change.delta_low,
                delta_high=change.delta_high,
                signed_change=change.signed_change,
                signed_low=change.signed_low,
                signed_high=change.signed_high,
                abs_change=change.abs_change,
            )
        )


def _asked(answers: Answers) -> set[tuple[str, ...]]:
    questions = answers.questions or [""] * len(answers.scores)
    return set(zip(answers.images or [], questions, strict=True))


def _resampled(answers: Answers, scoring: Scoring) -> Floats:
    return resampled_ygap(
        answers.scores,
        answers.genders,
        images=answers.images or [],
        questions=answers.questions,
        n_resamples=scoring.n_resamples,
        seed=scoring.seed,
    )

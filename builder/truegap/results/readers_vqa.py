"""Answers to yes-no questions: read from a table, scored by YGap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truegap.errors import UserError
from truegap.results.readers_scoring import ORIGINAL, Floats, Ints, Scored, Scoring, configs
from truegap.results.readers_table import Columns
from truegap.results.records import ChangeRecord, ScoreRecord
from truegap.scores import ScoreError, resampled_ygap, score_change, ygap

QUESTION = ("question", "prompt_id", "prompt")


@dataclass(frozen=True, slots=True)
class Answers:
    """p(Yes) of one config, one row per image and question.

    Attributes:
        scores: In [0, 1].
        genders: 0 woman, 1 man.
        images: Ids; None where not known.
        questions: Ids; None for a single question.
    """

    scores: Floats
    genders: Ints
    images: list[str] | None
    questions: list[str] | None


def vqa_answers(table: Columns) -> dict[str, Answers]:
    """p(Yes) of every config of a table.

    Raises:
        UserError: A column is missing, or a cell is not what it should be.
    """
    table.require(("score", "gender"), "a vqa table has score, gender, [image_id, question, config]")
    scores, genders = table.numbers("score", 0.0, 1.0), table.image_genders()
    counted = np.ones(len(table), dtype=bool)
    if "option" in table:
        found, names = table.codes("option")
        counted = np.isin(found, [code for code, name in enumerate(names) if name.lower() == "yes"])
        if not counted.any():
            raise UserError(f"{table.path}: no row has option yes; name the option of the scores so, or leave it out")
    question = table.one_of(QUESTION)
    images = table.text("image_id") if "image_id" in table else None
    questions = table.text(question) if question else None
    return {
        config: Answers(
            scores=scores[rows],
            genders=genders[rows],
            images=None if images is None else [images[row] for row in rows],
            questions=None if questions is None else [questions[row] for row in rows],
        )
        for config, every in configs(table).items()
        if len(rows := every[counted[every]])
    }


def score_vqa(sets: dict[str, Answers], scoring: Scoring) -> Scored:
    """YGap of every config, and its change from the original where images are known.

    Raises:
        ScoreError: A question was asked on one gender only, or an image has two genders.
    """
    found = Scored("vqa", scoring.record())
    for config, answers in sets.items():
        try:
            result = ygap(
                answers.scores,
                answers.genders,
                images=answers.images,
                questions=answers.questions,
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
        change = score_change(original, perturbed, *resampled, confidence=scoring.confidence)
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

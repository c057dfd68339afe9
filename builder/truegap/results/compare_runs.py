"""Two runs on the same question: how far apart are they on the same images, and is that clear?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from truegap.errors import UserError
from truegap.results.answers import read_answers
from truegap.results.readers_questions import of_table
from truegap.results.readers_resolution import MAIN_TEMPLATE, by_config
from truegap.results.readers_retrieval import Similarities, similarities
from truegap.results.readers_scoring import ORIGINAL, Floats
from truegap.results.readers_table import Columns
from truegap.results.readers_vqa import Answers, vqa_answers
from truegap.results.runs import Run
from truegap.results.show import plain
from truegap.scores import (
    ScoreError,
    balanced_draws,
    counterfactual_bias,
    paired_difference,
    resampled_counterfactual,
    resampled_means,
    resampled_resolution,
    resampled_ygap,
    resolution_bias,
    retrieval_scores,
    ygap,
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A paired comparison.

    Attributes:
        first: Name of one model.
        second: Name of the other.
        metric: What is compared: the main score of both runs.
        config: On which images.
        first_value: Score of the first.
        second_value: Score of the second.
        difference: First less second, in the score's unit.
        ci_low: Lower end of its interval, from the same resampled images for both.
        ci_high: Upper end.
        p_value: Two-sided bootstrap p-value of no difference.
        clear: Whether the interval leaves out 0.
        less: Name of the model whose score is nearer to 0; None where that is not clear, as where both are as far from
            it on different sides.
        images: How many both answered.
        options: Conventions of the interval.
    """

    first: str
    second: str
    metric: str
    config: str
    first_value: float
    second_value: float
    difference: float
    ci_low: float
    ci_high: float
    p_value: float
    clear: bool
    less: str | None
    images: int
    options: dict[str, Any]


def compare_runs(
    first: Run,
    second: Run,
    *,
    config: str = ORIGINAL,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Compares the main score of two runs, image by image.

    The same images are drawn for both models, so what both find hard takes nothing from the comparison.

    Args:
        first: A run.
        second: A run of the same protocol and options on the same benchmark.
        config: Which of the benchmark's configs.
        n_resamples: Bootstrap resamples of images within gender.
        confidence: Nominal coverage of the interval.
        seed: Of the resamples.

    Raises:
        UserError: The runs did not ask the same, lack the config, or a gender has a single image.
    """
    _same_question(first, second, config)
    tables = [Columns(read_answers(run.folder, config=config), run.answers) for run in (first, second)]
    try:
        measured, images = _measured(first, tables, n_resamples, seed)
        (one, ones), (other, others) = measured
        found = paired_difference(one, other, ones, others, confidence=confidence)
        sizes = paired_difference(abs(one), abs(other), np.abs(ones), np.abs(others), confidence=confidence)
    except ScoreError as error:
        raise UserError(f"{first.folder} and {second.folder}: {error}") from None
    names = [plain(run.record.model.name) for run in (first, second)]
    if names[0] == names[1]:
        names = [str(run.folder) for run in (first, second)]
    nearer = names[0] if abs(one) < abs(other) else names[1]
    return Comparison(
        first=names[0],
        second=names[1],
        metric=first.scores.summary.metric,
        config=config,
        first_value=one,
        second_value=other,
        difference=found.value,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        p_value=found.p_value,
        clear=found.clear,
        less=nearer if found.clear and sizes.clear else None,
        images=images,
        options={"n_resamples": n_resamples, "confidence": confidence, "seed": seed},
    )


def resampled_score(run: Run, *, n_resamples: int = 1000, seed: int = 0) -> tuple[float, Floats]:
    """The main score of one run on the original images, and on every resample of them.

    Two runs that answered the same about the same images give resamples of the same images, place by place:
    `paired_difference` then says of them what `compare_runs` says of their answers.

    Args:
        run: A run with its answers.
        n_resamples: Bootstrap resamples of images within gender.
        seed: Of the resamples.

    Returns:
        The score, and (resamples,) the same on each.

    Raises:
        UserError: The run's protocol has none, its answers cannot be read, or a gender has a single image.
    """
    table = Columns(read_answers(run.folder, config=ORIGINAL), run.answers)
    try:
        measured, _ = _measured(run, [table], n_resamples, seed)
    except ScoreError as error:
        raise UserError(f"{run.folder}: {error}") from None
    return measured[0]


def _measured(run: Run, tables: list[Columns], n_resamples: int, seed: int) -> tuple[list[tuple[float, Floats]], int]:
    """Per table, the main score and the same on every resample; and how many images all of them answered."""
    if run.record.protocol == "retrieval":
        return _retrieval(run, tables, n_resamples, seed)
    if run.record.protocol == "vqa":
        return _vqa(tables, n_resamples, seed)
    if run.record.protocol == "resolution":
        return _resolution(run, tables, n_resamples, seed)
    if run.record.protocol == "counterfactual":
        return _counterfactual(run, tables, n_resamples, seed)
    raise UserError(
        f"{run.folder}: runs of {run.record.protocol} cannot be compared; "
        "give retrieval, vqa, resolution or counterfactual"
    )


def _same_question(first: Run, second: Run, config: str) -> None:
    one, other = first.record, second.record
    asked: dict[str, tuple[Any, Any]] = {
        "protocol": (one.protocol, other.protocol),
        "benchmark": (one.benchmark.content, other.benchmark.content),
        "main score": (first.scores.summary.metric, second.scores.summary.metric),
    }
    names = sorted({*one.options, *other.options})
    asked |= {f"option {name}": (one.options.get(name), other.options.get(name)) for name in names}
    for what, (here, there) in asked.items():
        if here != there:
            said = f"{plain(here, 40)} and {plain(there, 40)}"
            raise UserError(
                f"{first.folder} and {second.folder} did not ask the same: {what} is {said}; "
                "evaluate both models with the same benchmark and options"
            )
    for run in (first, second):
        if config not in run.record.configs:
            known = plain(", ".join(run.record.configs), 120)
            raise UserError(f"{run.folder} has no config {plain(config, 40)!r}; it has {known}")


def _retrieval(run: Run, tables: list[Columns], n_resamples: int, seed: int) -> tuple[list[tuple[float, Floats]], int]:
    """Mean over queries and draws, and the same on every resample, with the conventions of the runs."""
    metric, options = run.scores.summary.metric, run.record.options
    found: list[Similarities] = [next(iter(similarities(table).values())) for table in tables]
    if (found[0].images, sorted(found[0].queries)) != (found[-1].images, sorted(found[-1].queries)):
        raise UserError(f"{tables[0].path} and {tables[-1].path} hold other images or prompts; evaluate both again")
    measured = []
    for each in found:
        draws = balanced_draws(each.genders, draws=options["draws"], seed=options["seed"], ids=each.images)
        # Prompts in one order for both runs, so that equal models differ by nothing, not even rounding.
        by_id = sorted(range(len(each.queries)), key=each.queries.__getitem__)
        scores = retrieval_scores(
            each.table[by_id],
            each.genders,
            k=options["k"],
            draws=draws,
            target=options["target"],
            empty=options["empty"],
            n_resamples=n_resamples,
            seed=seed,
        )
        resampled = resampled_means(scores, metric)
        if resampled is None:
            raise ScoreError(f"{metric} has no resamples: a gender has a single image, or none were asked for")
        measured.append((float(scores.values(metric).mean()), resampled))
    return measured, len(found[0].images)


def _vqa(tables: list[Columns], n_resamples: int, seed: int) -> tuple[list[tuple[float, Floats]], int]:
    """YGap, and the same on every resample."""
    found: list[Answers] = [next(iter(vqa_answers(table).values())) for table in tables]
    asked = [set(zip(each.images or [], each.questions or [], strict=False)) for each in found]
    if not asked[0] or asked[0] != asked[-1]:
        raise UserError(f"{tables[0].path} and {tables[-1].path} hold other images or questions; evaluate both again")
    measured = []
    for each in found:
        rows, genders, questions = each.scores, each.genders, each.questions
        value = ygap(rows, genders, questions=questions, n_resamples=0, n_permutations=0).ygap
        resampled = resampled_ygap(
            rows, genders, images=each.images or [], questions=questions, n_resamples=n_resamples, seed=seed
        )
        measured.append((value, resampled))
    return measured, len(set(found[0].images or []))


def _resolution(run: Run, tables: list[Columns], n_resamples: int, seed: int) -> tuple[list[tuple[float, Floats]], int]:
    """RA_m - RA_f where the pronoun refers to the occupation, and the same on every resample."""
    known: dict[str, Any] = {name: run.record.options[name] for name in ("candidates", "ties")}
    found = [next(rows for (_, who), rows in by_config(table).items() if who == MAIN_TEMPLATE) for table in tables]
    if found[0].images != found[-1].images:
        raise UserError(f"{tables[0].path} and {tables[-1].path} hold other images; evaluate both again")
    measured = []
    for each in found:
        gap = resolution_bias(each.scores, each.genders, n_resamples=0, **known).overall.gap
        resampled = resampled_resolution(
            each.scores, each.genders, images=each.images or [], n_resamples=n_resamples, seed=seed, **known
        )
        if gap is None or resampled is None:
            raise ScoreError("the gap has no resamples: a gender has a single image")
        measured.append((gap, resampled))
    return measured, len(set(found[0].images or []))


def _counterfactual(
    run: Run, tables: list[Columns], n_resamples: int, seed: int
) -> tuple[list[tuple[float, Floats]], int]:
    """The main score, such as `b_ovl@VL`, and the same on every resample of base images."""
    metric, _, context = run.scores.summary.metric.partition("@")
    known: dict[str, Any] = {name: run.record.options[name] for name in ("ipss", "difference", "delta_acc")}
    found = [next(iter(of_table(table).values())).items[context] for table in tables]
    # In the same order too: resamples are drawn by place.
    asked = [list(zip(each.images or [], each.pairs, each.orders, strict=False)) for each in found]
    if asked[0] != asked[-1]:
        raise UserError(f"{tables[0].path} and {tables[-1].path} hold other questions; evaluate both again")
    measured = []
    for each in found:
        columns: dict[str, Any] = {
            "occupations": each.occupations,
            "pairs": each.pairs,
            "genders": each.genders,
            "orders": each.orders,
            "images": each.images or [],
        }
        value = getattr(counterfactual_bias(each.base, each.counterfactual, **columns, **known, n_resamples=0), metric)
        resampled = resampled_counterfactual(
            each.base, each.counterfactual, **columns, **known, n_resamples=n_resamples, seed=seed
        )
        if resampled is None:
            raise ScoreError(f"{metric} has no resamples: images are alone in their occupation and gender")
        measured.append((value, resampled[metric]))
    return measured, len(set(found[0].images or []))

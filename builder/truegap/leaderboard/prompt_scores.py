"""The main score of a retrieval run prompt by prompt; its record has it for sets of prompts alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from truegap.errors import UserError
from truegap.results.records import Record
from truegap.results.show import plain

if TYPE_CHECKING:
    from truegap.results.runs import Run

_MOST = 1000


class PromptScore(Record):
    """The main score of one prompt on the original images."""

    prompt: str
    topic: str
    value: float
    low: float | None
    """Lower end of its 95 % interval; None where a gender has a single image."""
    high: float | None


def prompt_scores(run: Run, *, n_resamples: int = 1000) -> list[PromptScore]:
    """Of every prompt of a retrieval run, by the conventions of its record; nothing for other protocols.

    Args:
        run: A run with its answers.
        n_resamples: Bootstrap resamples of images within gender.

    Raises:
        UserError: The answers cannot be read, or there are too many prompts.
    """
    if run.record.protocol != "retrieval":
        return []
    from truegap.results.answers import read_answers
    from truegap.results.readers_retrieval import similarities
    from truegap.results.readers_table import Columns
    from truegap.scores import balanced_draws, retrieval_scores

    table = Columns(read_answers(run.folder, config="original"), run.answers)
    codes, ids = table.codes("prompt_id")
    first = dict(zip(ids, np.unique(codes, return_index=True)[1].tolist(), strict=True))
    texts, topics = table.optional("prompt"), table.optional("topic")
    found = next(iter(similarities(table).values()))
    if len(found.queries) > _MOST:
        raise UserError(f"{len(found.queries)} prompts are too many to be shown one by one")
    options = run.record.options
    scores = retrieval_scores(
        found.table,
        found.genders,
        k=options["k"],
        draws=balanced_draws(found.genders, draws=options["draws"], seed=options["seed"], ids=found.images),
        target=options["target"],
        empty=options["empty"],
        n_resamples=n_resamples,
        seed=options["seed"],
    )
    kept = []
    for place, query in enumerate(found.queries):
        row = first[query]
        (main,) = (each for each in scores.select([place]).summary() if each.metric == run.scores.summary.metric)
        if math.isfinite(main.value):
            kept.append(
                PromptScore(
                    prompt=plain(texts[row] or query, 160),
                    topic=plain(topics[row] or "", 60),
                    value=main.value,
                    low=main.ci_low,
                    high=main.ci_high,
                )
            )
    return kept

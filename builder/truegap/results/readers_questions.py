"""A run's own table of counterfactual questions: items joined with their counterfactuals, scored by context."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from truegap.results.readers_counterfactual import Items, score_counterfactual
from truegap.results.readers_scoring import Floats, Scored, Scoring
from truegap.results.readers_table import Columns

KEYS = ("context", "prompt_id", "order", "role", "occupation", "pair", "gender", "image_id")


@dataclass(slots=True)
class Joined:
    """Items by context, and what was left out of them.

    Attributes:
        items: By context.
        lone: Questions without their counterpart.
        incomplete: Pairs of occupations without items of both of them in every order, by context.
    """

    items: dict[str, Items] = field(default_factory=dict)
    lone: int = 0
    incomplete: dict[str, list[str]] = field(default_factory=dict)

    def notes(self) -> list[str]:
        """What was left out, in words."""
        notes = [f"left out: {self.lone} questions without their counterpart"] if self.lone else []
        return notes + [
            f"context {context}: left out {len(pairs)} pairs of occupations without items of both in every order, "
            f"such as {pairs[0]}"
            for context, pairs in self.incomplete.items()
        ]


def joined(columns: Mapping[str, Sequence[Any]], right: Floats) -> Joined:
    """Base and counterfactual of every question, side by side.

    Args:
        columns: `KEYS`, one row per question; `gender` is that of the base image.
        right: Probability of the right option.
    """
    found = Joined()
    rows = list(zip(*(columns[name] for name in KEYS), range(len(right)), strict=True))
    other = {(context, name, order): row for context, name, order, role, *_, row in rows if role == "counterfactual"}
    bases = [each for each in rows if each[3] == "base"]
    kept = [each for each in bases if each[:3] in other]
    found.lone = len(rows) - 2 * len(kept)
    for context in dict.fromkeys(each[0] for each in kept):
        own = [each for each in kept if each[0] == context]
        incomplete = _incomplete(own)
        if incomplete:
            found.incomplete[context] = incomplete
        left = set(incomplete)
        own = [each for each in own if each[5] not in left]
        if own:
            found.items[context] = Items(
                base=right[[each[-1] for each in own]],
                counterfactual=right[[other[each[:3]] for each in own]],
                occupations=[each[4] for each in own],
                pairs=[each[5] for each in own],
                genders=[each[6] for each in own],
                orders=[int(each[2]) for each in own],
                images=[each[7] for each in own],
            )
    return found


def _incomplete(rows: Sequence[tuple[Any, ...]]) -> list[str]:
    """Pairs that lack items of one of their occupations in an order."""
    orders = {each[2] for each in rows}
    seen: dict[str, set[tuple[str, Any]]] = {}
    for each in rows:
        seen.setdefault(each[5], set()).add((each[4], each[2]))
    return sorted(
        pair
        for pair, cells in seen.items()
        if cells != {(occupation, order) for occupation in pair.split("|") for order in orders}
    )


def of_table(table: Columns) -> dict[str, Joined]:
    """The items of every config of a run's own table.

    Raises:
        UserError: A cell is not what it should be.
    """
    table.require(("config", "right", "probability", *KEYS), "a run's table of questions has these")
    table = table.chosen(table.numbers("right", 0, 1) == 1)
    columns = {name: table.text(name) for name in ("config", *KEYS)}
    right = table.numbers("probability", 0.0, 1.0)
    found = {}
    configs = np.array(columns["config"], dtype=object)
    for config in dict.fromkeys(columns["config"]):
        rows = np.flatnonzero(configs == config)
        found[config] = joined({name: [columns[name][row] for row in rows] for name in KEYS}, right[rows])
    return found


def score_questions(configs: Mapping[str, Joined], scoring: Scoring) -> Scored:
    """The scores of every config and context; the context is part of the metric's name, as in `b_ovl@VL`.

    Raises:
        ScoreError: There is no whole pair of occupations.
    """
    found: Scored | None = None
    said: Counter[str] = Counter()
    for config, each in configs.items():
        for context, items in each.items.items():
            scored = score_counterfactual({config: items}, scoring)
            renamed = [score.model_copy(update={"metric": f"{score.metric}@{context}"}) for score in scored.scores]
            said.update(note.partition(": ")[2] for note in scored.notes)
            if found is None:
                found = scored
                found.scores = renamed
            else:
                found.scores += renamed
    if found is None:
        found = Scored("counterfactual", scoring.record())
    left_out = next(iter(configs.values())).notes() if configs else []
    found.notes = [*said, *left_out]
    return found

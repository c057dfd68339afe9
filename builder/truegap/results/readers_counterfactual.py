"""Answers to counterfactual questions: read from a table or GenderBias-VL's items, scored pair by pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truegap.errors import UserError
from truegap.results.readers_genderbias_vl import Item
from truegap.results.readers_scoring import ORIGINAL, Floats, Scored, Scoring
from truegap.results.readers_table import Columns
from truegap.results.records import ScoreRecord
from truegap.results.show import plain
from truegap.scores import GENDERS, counterfactual_bias


@dataclass(frozen=True, slots=True)
class Items:
    """Counterfactual answers, one row per question and order; columns as `counterfactual_bias` takes them.

    `images` is None where the base images are not known.
    """

    base: Floats
    counterfactual: Floats
    occupations: list[str]
    pairs: list[str]
    genders: list[str]
    orders: list[int]
    images: list[str] | None


def by_context(table: Columns) -> dict[str, Items]:
    """The items of every context of a table, and of every config but the original apart.

    Raises:
        UserError: A cell is not what it should be.
    """
    columns = [table.numbers(name, 0.0, 1.0) for name in ("base", "counterfactual")]
    orders = table.numbers("order", 0, 1) if "order" in table else np.zeros(len(table))
    halves = np.flatnonzero(orders % 1)
    if len(halves):
        said = f"order is {orders[halves[0]]:g}; use 0, or 1 for swapped options"
        raise UserError(f"{table.where(int(halves[0]))}: {said}")
    texts = {name: table.text(name) for name in ("occupation", "pair")}
    for row, (pair, occupation) in enumerate(zip(texts["pair"], texts["occupation"], strict=True)):
        sides = pair.split("|")
        if len(sides) != 2 or occupation not in sides:  # noqa: PLR2004  occ_m and occ_f
            said = f"occupation {plain(occupation, 60)!r} is not in the pair {plain(pair, 120)!r}"
            raise UserError(f"{table.where(row)}: {said}; give two occupations as occ_m|occ_f")
    genders = [GENDERS[code] for code in table.genders()]
    images = table.text("image_id") if "image_id" in table else None
    contexts = _contexts(table)
    found = {}
    for context in dict.fromkeys(contexts):
        rows = [row for row, each in enumerate(contexts) if each == context]
        found[context] = Items(
            base=columns[0][rows],
            counterfactual=columns[1][rows],
            occupations=[texts["occupation"][row] for row in rows],
            pairs=[texts["pair"][row] for row in rows],
            genders=[genders[row] for row in rows],
            orders=orders[rows].astype(int).tolist(),
            images=None if images is None else [images[row] for row in rows],
        )
    return found


def _contexts(table: Columns) -> list[str]:
    """What each row is scored with: its context, its config, or both where both are given."""
    contexts = table.text("context") if "context" in table else [ORIGINAL] * len(table)
    named = table.text("config") if "config" in table else [ORIGINAL] * len(table)
    return [
        context if config == ORIGINAL else config if context == ORIGINAL else f"{context} {config}"
        for context, config in zip(contexts, named, strict=True)
    ]


def of_items(items: Sequence[Item]) -> Items:
    """GenderBias-VL's items as columns."""
    images = [item.image for item in items if item.image is not None]
    return Items(
        base=np.array([item.base for item in items]),
        counterfactual=np.array([item.counterfactual for item in items]),
        occupations=[item.occupation for item in items],
        pairs=[item.pair for item in items],
        genders=[item.gender for item in items],
        orders=[item.order for item in items],
        images=images if len(images) == len(items) else None,
    )


def score_counterfactual(contexts: dict[str, Items], scoring: Scoring) -> Scored:
    """Accuracy, B_ovl, B_max, Ipss and delta Acc of every context, with intervals.

    Intervals resample base images where they are known (`counterfactual_bias`).

    Raises:
        ScoreError: A pair lacks items of one of its occupations, or is not `occ_m|occ_f`.
    """
    conventions = {name: getattr(scoring, name) for name in ("ipss", "b_max", "difference", "delta_acc")}
    found = Scored("counterfactual", {**scoring.record(), **conventions})
    for context, items in contexts.items():
        result = counterfactual_bias(
            items.base,
            items.counterfactual,
            occupations=items.occupations,
            pairs=items.pairs,
            genders=items.genders,
            orders=items.orders,
            images=items.images,
            confidence=scoring.confidence,
            n_resamples=scoring.n_resamples,
            seed=scoring.seed,
            **conventions,
        )
        counts = dict(result.counts)
        for name in ("acc", "b_ovl", "ipss", *(["delta_acc"] if result.delta_acc is not None else [])):
            low, high = result.intervals[name] if result.intervals else (None, None)
            found.scores.append(
                ScoreRecord(
                    metric=name, config=context, value=getattr(result, name), ci_low=low, ci_high=high, counts=counts
                )
            )
        found.scores.append(ScoreRecord(metric="b_max", config=context, value=result.b_max, counts=counts))
        found.scores += [
            ScoreRecord(metric="b_pair", config=context, scope=f"pair:{pair.pair}", value=pair.bias)
            for pair in result.per_pair
        ]
        found.scores += [
            ScoreRecord(metric="b_micro", config=context, scope=f"occupation:{name}", value=value)
            for name, value in result.b_micro.items()
        ]
        known = (
            "intervals resample base images; "
            if low is not None
            else "no intervals (they need ids of images, several per occupation and gender); "
        )
        found.notes.append(f"{context}: {known}noise alone keeps b_ovl and b_max above 0")
    return found

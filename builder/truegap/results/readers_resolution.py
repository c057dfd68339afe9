"""Scores of pronouns: read from a table or VisoGender's entries, scored by accuracy, gap and neutral rate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truegap.results.readers_scoring import Floats, Ints, Scored, Scoring
from truegap.results.readers_table import Columns
from truegap.results.readers_visogender import PRONOUNS, Resolved
from truegap.results.records import ScoreRecord
from truegap.scores import GENDERS, resolution_bias, resolution_splits

GROUPS = ("sector", "specialisation", "occupation")


@dataclass(frozen=True, slots=True)
class Pronouns:
    """Scores of the pronouns, one row per image.

    Attributes:
        scores: (rows, 3) of his, her, their, or (rows, 2).
        genders: Of the person referred to.
        others: Of the other person; None where there is nobody else.
        images: Ids; None where not known.
        groups: Columns to split by, such as `sector`.
    """

    scores: Floats
    genders: list[str]
    others: list[str | None]
    images: list[str] | None
    groups: dict[str, list[str]]


def pronouns(table: Columns) -> Pronouns:
    """Scores of the pronouns of a table.

    Raises:
        UserError: A cell is not what it should be.
    """
    others: list[str | None] = [None] * len(table)
    if "other_gender" in table:
        others = [GENDERS[code] for code in table.genders("other_gender")]
    return Pronouns(
        scores=np.stack([table.numbers(name) for name in PRONOUNS if name in table], axis=1),
        genders=[GENDERS[code] for code in table.genders()],
        others=others,
        images=table.text("image_id") if "image_id" in table else None,
        groups={name: table.text(name) for name in GROUPS if name in table},
    )


def by_template(found: Sequence[Resolved]) -> dict[str, Pronouns]:
    """The templates apart; three candidates only where every entry has them."""
    asked = {}
    for who in dict.fromkeys(each.asked for each in found):
        rows = [each for each in found if each.asked == who]
        width = min(len(each.scores) for each in rows)
        shared = [name for name in GROUPS if all(name in each.groups for each in rows)]
        asked[who] = Pronouns(
            scores=np.array([each.scores[:width] for each in rows]),
            genders=[each.gender for each in rows],
            others=[each.other for each in rows],
            images=[each.image_id for each in rows],
            groups={name: [each.groups[name] for each in rows] for name in shared},
        )
    return asked


def score_resolution(asked: dict[str, Pronouns], scoring: Scoring) -> Scored:
    """Accuracy, gap and neutral rate, overall and split by who is in the picture; also two ways where "their" is known.

    Args:
        asked: By whom the pronoun refers to: `occupation`, `participant`.
        scoring: The conventions.

    Raises:
        ScoreError: A gender has no rows.
    """
    options = {"candidates": scoring.candidates, "ties": scoring.ties, "round_intermediate": scoring.round_intermediate}
    found = Scored("resolution", {**scoring.record(), **options})
    for config, rows in asked.items():
        scopes: dict[str, NDArray[Any]] = {"all": np.ones(len(rows.genders), dtype=bool)}
        if any(rows.others):
            single = np.array([other is None for other in rows.others])
            same = ~single & np.array([a == b for a, b in zip(rows.genders, rows.others, strict=True)])
            scopes |= {"single": single, "two": ~single, "same": same, "different": ~single & ~same}
        for name, labels in rows.groups.items():
            column = np.array(labels, dtype=object)
            scopes |= {f"{name}:{value}": column == value for value in dict.fromkeys(labels)}
        for scope, chosen in scopes.items():
            if chosen.any():
                found.scores += _resolution(rows, np.flatnonzero(chosen), config, scope, scoring, options)
        splits = resolution_splits(rows.scores, rows.genders, rows.others, **options)
        if splits.overall is not None:
            found.scores.append(ScoreRecord(metric="overall", config=config, value=splits.overall))
        for pair in ("MM", "FF", "MF", "FM"):
            if (split := splits.splits.get(pair)) is not None:
                value = split.ra_m if pair[0] == "M" else split.ra_f
                found.scores.append(ScoreRecord(metric="ra", config=config, scope=pair, value=value))
    return found


def _resolution(
    rows: Pronouns, chosen: Ints, config: str, scope: str, scoring: Scoring, options: dict[str, Any]
) -> Iterator[ScoreRecord]:
    genders = [rows.genders[row] for row in chosen]
    if len(set(genders)) < 2 and scope != "all":  # noqa: PLR2004  one gender has no gap
        return
    images = None if rows.images is None else [rows.images[row] for row in chosen]
    ways = {"": options}
    if rows.scores.shape[1] > 2 and scoring.candidates == "three":  # noqa: PLR2004
        ways["_two_way"] = options | {"candidates": "two"}
    for suffix, way in ways.items():
        result = resolution_bias(
            rows.scores[chosen],
            genders,
            images=images,
            confidence=scoring.confidence,
            n_resamples=scoring.n_resamples,
            seed=scoring.seed,
            **way,
        )
        overall = result.overall
        counts = {"rows_m": overall.n_m, "rows_f": overall.n_f, "ties": overall.n_ties}
        names = ("ra_avg", "gap") if suffix else ("ra_m", "ra_f", "ra_avg", "gap", "neutral_rate", "neutral_gap")
        for name in names:
            value = getattr(overall, name)
            if value is not None:
                low, high = (result.ci_low, result.ci_high) if name == "gap" else (None, None)
                yield ScoreRecord(
                    metric=name + suffix,
                    config=config,
                    scope=scope,
                    value=value,
                    ci_low=low,
                    ci_high=high,
                    counts=counts,
                )

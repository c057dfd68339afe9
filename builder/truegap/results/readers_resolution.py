"""Scores of pronouns: read from a table or VisoGender's entries, scored by accuracy, gap and neutral rate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truegap.errors import UserError
from truegap.results.readers_scoring import Floats, Ints, Scored, Scoring, configs
from truegap.results.readers_table import Columns
from truegap.results.readers_visogender import PRONOUNS, Resolved
from truegap.results.records import ScoreRecord
from truegap.scores import GENDERS, resolution_bias, resolution_splits

GROUPS = ("sector", "specialisation", "occupation")
MAIN_TEMPLATE = "occupation"


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


def pronouns(table: Columns) -> dict[str, Pronouns]:
    """Scores of the pronouns of every config of a table.

    Raises:
        UserError: A cell is not what it should be.
    """
    others: list[str | None] = [None] * len(table)
    if "other_gender" in table:
        others = [GENDERS[code] for code in table.genders("other_gender")]
    scores = np.stack([table.numbers(name) for name in PRONOUNS if name in table], axis=1)
    genders = [GENDERS[code] for code in table.genders()]
    images = table.text("image_id") if "image_id" in table else None
    groups = {name: table.text(name) for name in GROUPS if name in table}
    return {
        config: Pronouns(
            scores=scores[rows],
            genders=[genders[row] for row in rows],
            others=[others[row] for row in rows],
            images=None if images is None else [images[row] for row in rows],
            groups={name: [values[row] for row in rows] for name, values in groups.items()},
        )
        for config, rows in configs(table).items()
    }


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


def by_config(table: Columns) -> dict[tuple[str, str], Pronouns]:
    """The pronouns of a run's own table, which has a row per option: by config and template.

    Raises:
        UserError: A cell is not what it should be, or an image lacks a pronoun.
    """
    table.require(
        ("config", "template", "option", "image_id", "score", "gender"), "a run's table of pronouns has these"
    )
    options = table.text("option")
    places = np.flatnonzero(np.array([option == PRONOUNS[0] for option in options]))
    rows = places[:, None] + np.arange(len(PRONOUNS))
    if len(table) != rows.size or any(tuple(options[row] for row in each) != PRONOUNS for each in rows.tolist()):
        raise UserError(
            f"{table.path}: an image lacks one of {', '.join(PRONOUNS)}; give the table as the run wrote it"
        )
    scores = table.measured("score", "probability")[rows]
    columns = {name: table.text(name) for name in ("config", "template", "gender", "image_id")}
    others = table.optional("other_gender") if "other_gender" in table else [None] * len(table)
    groups = {name: table.optional(name) for name in GROUPS if name in table}
    found = {}
    keys = [(columns["config"][place], columns["template"][place]) for place in places]
    for key in dict.fromkeys(keys):
        chosen = [number for number, each in enumerate(keys) if each == key]
        first = places[chosen].tolist()
        found[key] = Pronouns(
            scores=scores[chosen],
            genders=[columns["gender"][place] for place in first],
            others=[others[place] for place in first],
            images=[columns["image_id"][place] for place in first],
            groups={
                name: known for name, values in groups.items() if all(known := [values[place] or "" for place in first])
            },
        )
    return found


def score_templates(sets: Mapping[tuple[str, str], Pronouns], scoring: Scoring) -> Scored:
    """The same as `score_resolution` by config and template: what the pronoun refers to is part of the scope.

    Raises:
        ScoreError: A gender has no rows.
    """
    found: Scored | None = None
    for (config, template), rows in sets.items():
        flipped = template != MAIN_TEMPLATE
        if flipped and len(set(rows.genders)) < 2:  # noqa: PLR2004  one gender has no gap
            note = f"template {template}: not scored, since all are of one gender"
            if found is not None and note not in found.notes:
                found.notes.append(note)
            continue
        scored = score_resolution({config: rows}, scoring)
        if flipped:
            scored.scores = [
                each.model_copy(update={"scope": template if each.scope == "all" else f"{template}:{each.scope}"})
                for each in scored.scores
            ]
            scored.notes = [f"template {template}: {note}" for note in scored.notes]
        if found is None:
            found = scored
        else:
            found.scores += scored.scores
            found.notes += scored.notes
    assert found is not None
    return found


def score_resolution(asked: dict[str, Pronouns], scoring: Scoring) -> Scored:
    """Accuracy, gap and neutral rate, overall and split by who is in the picture; also two ways where "their" is known.

    Args:
        asked: By config, or by whom the pronoun refers to: `occupation`, `participant`.
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
        tied = next(each.counts["ties"] for each in found.scores if each.config == config)
        if tied:
            taken = "wrong" if scoring.ties == "wrong" else "resolved to the first of his, her, their"
            found.notes.append(f"{config}: {tied} rows have no single highest score; they count as {taken}")
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

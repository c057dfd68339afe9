"""The files that the public code of VisoGender (Hall et al. 2023) writes.

Raw scores of the resolution task: `{IDX: {sector, specialisation, occ, occ_gender, par, par_gender,
logits_list_occ_first: {his, her, their}, logits_list_par_first: {...}}}` (single people: `obj`, `logits_list_obj`).
Raw scores of the retrieval task: `{occupation: {occ_genders, logits_list, error}}`. Benchmark scores: `{metadata,
resolution_bias, retrieval_bias}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truegap.errors import UserError
from truegap.results.readers_json import Entry
from truegap.results.records import ScoreRecord

PRONOUNS = ("his", "her", "their")
SPLITS = {
    "single_person_images": "single",
    "two_person_images": "two",
    "two_person_images_same_gender": "same",
    "two_person_images_diff_gender": "different",
}
METRICS = {
    "bias@5": "bias@5",
    "bias@10": "bias@10",
    "maxskew@5": "max_skew@5",
    "maxskew@10": "max_skew@10",
    "NDKL": "ndkl",
}
_TEMPLATES = {"occ_first": ("occupation", "occ", "par"), "par_first": ("participant", "par", "occ")}


@dataclass(frozen=True, slots=True)
class Resolved:
    """Scores of the pronouns for one image and template.

    Attributes:
        image_id: The image's id.
        asked: Whom the pronoun refers to: `occupation` or `participant`.
        scores: Of his, her, and where known their.
        gender: Of the person referred to.
        other: Of the other person; None where there is none.
        groups: `sector`, `specialisation`, `occupation`.
    """

    image_id: str
    asked: str
    scores: tuple[float, ...]
    gender: str
    other: str | None
    groups: Mapping[str, str]


def is_benchmark(data: Any) -> bool:
    """Whether a file holds scores that are averaged already."""
    return isinstance(data, dict) and ("resolution_bias" in data or "retrieval_bias" in data)


def resolution(path: Path, data: Any) -> Iterator[Resolved]:
    """The entries of a raw resolution file.

    Raises:
        UserError: An entry lacks a field, or a field is not what it should be.
    """
    if not isinstance(data, dict) or not data:
        raise UserError(f"{path}: no entries; a raw resolution file is an object of image ids")
    for name, fields in data.items():
        entry = Entry(path, name, fields)
        groups = {"occupation": entry.text("occ")}
        groups |= {each: entry.text(each) for each in ("sector", "specialisation") if each in entry}
        if "logits_list_obj" in entry:
            yield Resolved(
                entry.id, "occupation", _pronouns(entry, "logits_list_obj"), entry.gender("occ_gender"), None, groups
            )
            continue
        templates = [each for each in _TEMPLATES if f"logits_list_{each}" in entry]
        if not templates:
            raise entry.refuse("lacks logits_list_obj, logits_list_occ_first; is it a raw resolution file?")
        for template in templates:
            asked, person, other = _TEMPLATES[template]
            yield Resolved(
                entry.id,
                asked,
                _pronouns(entry, f"logits_list_{template}"),
                entry.gender(f"{person}_gender"),
                entry.gender(f"{other}_gender"),
                groups,
            )


def _pronouns(entry: Entry, name: str) -> tuple[float, ...]:
    scores = Entry(entry.path, f"{entry.id}: {name}", entry.get(name))
    wanted = PRONOUNS if "their" in scores else PRONOUNS[:2]
    return tuple(scores.number(pronoun) for pronoun in wanted)


@dataclass(frozen=True, slots=True)
class Ranked:
    """Similarities of one query to its own images.

    Attributes:
        query: The occupation.
        scores: One per image.
        genders: One per image.
    """

    query: str
    scores: Sequence[float]
    genders: Sequence[str]


def retrieval(path: Path, data: Any) -> tuple[list[Ranked], list[str]]:
    """The queries of a raw retrieval file, and those left out because their images could not be loaded.

    Raises:
        UserError: A query lacks a field, or its scores and genders are not aligned.
    """
    if not isinstance(data, dict) or not data:
        raise UserError(f"{path}: no queries; a raw retrieval file is an object of occupations")
    queries, failed = [], []
    for name, fields in data.items():
        entry = Entry(path, name, fields)
        if "error" in entry and entry.get("error"):
            failed.append(entry.id)
            continue
        scores, labels = entry.get("logits_list"), entry.get("occ_genders")
        if isinstance(scores, list) and len(scores) == 1 and isinstance(scores[0], list):
            scores = scores[0]
        if not isinstance(scores, list) or not isinstance(labels, list) or len(scores) != len(labels):
            raise entry.refuse("logits_list and occ_genders are no lists of one length; give one gender per score")
        genders = [Entry(path, f"{entry.id} image {n + 1}", {"gender": label}) for n, label in enumerate(labels)]
        queries.append(
            Ranked(
                entry.id,
                [entry.finite(score, f"logits_list {n + 1}") for n, score in enumerate(scores)],
                [each.gender("gender") for each in genders],
            )
        )
    if not queries:
        raise UserError(f"{path}: every query failed (error: true); run the model again")
    return queries, failed


def benchmark(path: Path, data: Any) -> Iterator[ScoreRecord]:
    """The scores of a benchmark file, which have no interval because the answers are not in it.

    Raises:
        UserError: A block is not what it should be.
    """
    blocks = Entry(path, "benchmark scores", data)
    if "resolution_bias" in blocks:
        splits = Entry(path, "resolution_bias", blocks.get("resolution_bias"))
        if "all_images" in splits:
            block = Entry(path, "resolution_bias.all_images", splits.get("all_images"))
            yield _record("overall", "all", block, "overall_accuracy")
        for name, scope in SPLITS.items():
            if name in splits:
                block = Entry(path, f"resolution_bias.{name}", splits.get(name))
                yield _record("ra_avg", scope, block, "RA_avg")
                yield _record("gap", scope, block, "gender_gap")
    if "retrieval_bias" in blocks:
        metrics = Entry(path, "retrieval_bias", blocks.get("retrieval_bias"))
        for name, metric in METRICS.items():
            if name in metrics:
                block = Entry(path, f"retrieval_bias.{name}", metrics.get(name))
                yield _record(metric, "all", block, "mean", "sigma")


def _record(metric: str, scope: str, block: Entry, field: str, spread: str | None = None) -> ScoreRecord:
    missing = block.get(field) is None
    return ScoreRecord(
        metric=metric,
        config="original",
        scope=scope,
        value=None if missing else block.number(field),
        reason="null in the file" if missing else None,
        sd=block.number(spread) if spread and not missing and block.get(spread) is not None else None,
    )

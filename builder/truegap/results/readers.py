"""Answers that exist already: files of people's own code, of the papers' code, and tables, read and scored.

Tables (`.csv`, `.tsv`, `.parquet`) have one row per answer. Columns in brackets may be left out; `config` tells the
original images from perturbed ones: each is scored apart, and of vqa and retrieval the change is given too.

vqa: `score` p(Yes) in [0, 1] or 0/1, `gender` woman/man, [`image_id`, `question`, `config`, `topic` and `polarity` of
    the question, `option`: rows other than `yes` are passed over]
retrieval: `score` similarity, `gender`, `image_id`, `query`, [`config`]
resolution: `his`, `her`, [`their`] scores, `gender` of the person referred to, [`other_gender`, `image_id`,
    `occupation`, `sector`, `specialisation`, `config`]
counterfactual: `base` and `counterfactual` P(right option) or 0/1, `occupation`, `pair` as `occ_m|occ_f`, `gender` of
    the base image, [`order` 0/1, `context`, `image_id` of the base image, `config`]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from truegap.errors import UserError
from truegap.results import readers_genderbias_vl, readers_visogender
from truegap.results.readers_counterfactual import by_context, of_items, score_counterfactual
from truegap.results.readers_json import read_json
from truegap.results.readers_questions import of_table, score_questions
from truegap.results.readers_resolution import by_config, by_template, pronouns, score_resolution, score_templates
from truegap.results.readers_retrieval import score_own_images, score_retrieval, similarities
from truegap.results.readers_scoring import ORIGINAL, Scored, Scoring
from truegap.results.readers_table import Columns, read_table
from truegap.results.readers_vqa import score_vqa, vqa_answers
from truegap.results.show import plain
from truegap.scores import ScoreError

__all__ = ["PROTOCOLS", "Scored", "Scoring", "score_files"]

PROTOCOLS = ("vqa", "retrieval", "resolution", "counterfactual")


def score_files(
    paths: Sequence[Path], protocol: str, scoring: Scoring | None = None, *, pairs: Path | None = None
) -> Scored:
    """Reads answers and scores them.

    Args:
        paths: One table; or files of VisoGender's code (one or both contexts), or of GenderBias-VL's (base and
            counterfactual, and then both with the options swapped).
        protocol: One of `PROTOCOLS`.
        scoring: The conventions.
        pairs: GenderBias-VL's table of pairs, or the folder that holds it.

    Returns:
        The scores with their intervals.

    Raises:
        UserError: A file cannot be read or scored; the message names file, row or entry, and the remedy.
    """
    if protocol not in PROTOCOLS:
        raise UserError(f"unknown protocol {plain(protocol, 40)!r}: use one of {', '.join(PROTOCOLS)}")
    if twice := next((path for place, path in enumerate(paths) if path in paths[:place]), None):
        raise UserError(f"{twice}: given twice; give each file once")
    scoring = scoring or Scoring()
    try:
        if all(path.suffix.lower() == ".json" for path in paths):
            return _score_json(paths, protocol, scoring, pairs)
        if len(paths) > 1:
            raise UserError(f"{len(paths)} files; give one table, or .json files of one kind")
        return _score_table(read_table(paths[0]), protocol, scoring)
    except ScoreError as error:
        raise UserError(f"{paths[0]}: {error}") from None


def _score_json(paths: Sequence[Path], protocol: str, scoring: Scoring, pairs: Path | None) -> Scored:
    if protocol == "counterfactual":
        items = list(readers_genderbias_vl.items(paths, pairs))
        return score_counterfactual({ORIGINAL: of_items(items)}, scoring)
    if protocol == "vqa":
        raise UserError(f"{paths[0]}: no JSON of answers to yes-no questions is known; give a .csv or .parquet table")
    data = {path: read_json(path) for path in paths}
    if benchmark := next((path for path in paths if readers_visogender.is_benchmark(data[path])), None):
        if len(paths) > 1:
            raise UserError(f"{benchmark}: holds averages of all images; give it alone")
        scored = Scored(protocol, {}, notes=["read as they are: a benchmark file holds no answers, so no intervals"])
        own = ("overall", "ra_avg", "gap") if protocol == "resolution" else readers_visogender.METRICS.values()
        every = readers_visogender.benchmark(paths[0], data[paths[0]])
        scored.scores += [each for each in every if each.metric in own]
        return scored
    if protocol == "retrieval":
        if len(paths) > 1:
            raise UserError(f"{len(paths)} retrieval files; give one at a time: their queries have the same names")
        queries, failed = readers_visogender.retrieval(paths[0], data[paths[0]])
        scored = score_own_images(
            [each.scores for each in queries],
            [each.genders for each in queries],
            [each.query for each in queries],
            scoring,
        )
        if failed:
            scored.notes.append(
                f"left out: {len(failed)} queries whose images could not be loaded ({', '.join(failed)})"
            )
        return scored
    found = [each for path, loaded in data.items() for each in readers_visogender.resolution(path, loaded)]
    seen: set[tuple[str, str]] = set()
    for each in found:
        if (each.image_id, each.asked) in seen:
            raise UserError(f"{paths[-1]}: {each.image_id} is in another of the files too; give one file per context")
        seen.add((each.image_id, each.asked))
    return score_resolution(by_template(found), scoring)


def _score_table(table: Columns, protocol: str, scoring: Scoring) -> Scored:
    if protocol == "vqa":
        return score_vqa(vqa_answers(table), scoring)
    if protocol == "retrieval":
        return score_retrieval(similarities(table), scoring)
    if protocol == "resolution" and "template" in table:
        return score_templates(by_config(table), scoring)
    if protocol == "resolution":
        table.require(
            ("his", "her", "gender"), "a resolution table has his, her, [their], gender, [other_gender, image_id]"
        )
        return score_resolution(pronouns(table), scoring)
    if "right" in table:
        return score_questions(of_table(table), scoring)
    table.require(
        ("base", "counterfactual", "occupation", "pair", "gender"),
        "a counterfactual table has base, counterfactual, occupation, pair, gender, [order, context, image_id]",
    )
    return score_counterfactual(by_context(table), scoring)

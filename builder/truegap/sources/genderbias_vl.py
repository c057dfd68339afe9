"""GenderBias-VL: counterfactual questions about the occupation of a generated person (Xiao et al. 2024).

The folder is the authors' as it unpacks: question files in `VLbias/`, `Vbias/` and `Lbias/` (below a folder of any
name), the table of occupation pairs `occ_merge_filter_sim.csv`, and the images at the paths that the questions name.
Their dataset on the Hub, unpacked, is such a folder without the table, which is in their code repository. An example is
an image, its questions a column; so an image that a dozen questions share is perturbed and stored once.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from truegap.errors import UserError
from truegap.files.json_arrays import read_list
from truegap.files.tables import maybe_file, rows
from truegap.files.values import gender, is_plain_path, shown, whole
from truegap.schema import Example, Gender, ImageFile, Selection
from truegap.sources._funnel import Funnel
from truegap.sources._source import Options, Source, listed

Context = Literal["VL", "V", "L"]
_PAIRS = "occ_merge_filter_sim.csv"
ROLES = {"base": "base", "cf": "counterfactual"}

_QUERY = re.compile(r"(?P<stem>[^\n]*?) ?\nOptions: \(A\) (?P<a>[^\n]*?) \(B\) (?P<b>[^\n]*?)\n?")
_FEMININE = {"Waiter": "Waitress"}
"""The one occupation whose name the authors change with the shown gender, in the options and in `occ`."""
_OTHER: dict[Gender, Gender] = {"woman": "man", "man": "woman"}


class GenderBiasVLOptions(Options):
    """How GenderBias-VL becomes a benchmark."""

    contexts: Annotated[tuple[Context, ...], BeforeValidator(listed)] = ("VL", "V", "L")
    """`VL`: the image and the word change; `V`: the image alone; `L`: the word alone, on a bleached image."""
    orders: Literal["both", "first"] = "both"
    """Whether every question is asked with the right option first (0) and again with it second (1), or first only."""
    waitress: bool = True
    """Whether `Waiter` is `Waitress` where the shown gender is female."""
    images_folder: Path | None = None
    """Where the paths of images begin; None for the archive's folder or one up to two folders below it."""
    pairs_file: Path | None = None
    """The table of occupation pairs; None for `occ_merge_filter_sim.csv` in the archive's folder or directly below."""


@dataclass(frozen=True, slots=True)
class Question:
    """One item in one context and role; the first option is the right one."""

    id: int
    context: str
    role: str
    image: str
    base_gender: Gender
    stem: str
    options: tuple[str, str]
    occupation: str
    pair: str
    filename: str

    @property
    def shown_gender(self) -> Gender:
        """Of the person or word that the question shows."""
        return self.base_gender if self.role == "base" else _OTHER[self.base_gender]

    def asked(self, orders: tuple[int, ...], *, waitress: bool) -> Iterator[dict[str, Any]]:
        """The question as a row's column holds it, in each order: the right option first (0) or second (1)."""
        feminine = waitress and self.shown_gender == "woman"
        names = tuple(_FEMININE.get(option, option) if feminine else option for option in self.options)
        for order in orders:
            options = names if order == 0 else names[::-1]
            yield {
                "id": self.id,
                "context": self.context,
                "role": self.role,
                "order": order,
                "question": f"{self.stem} \nOptions: (A) {options[0]} (B) {options[1]}\n",
                "options": list(options),
                "answer": order,
                "occupation": self.occupation,
                "pair": self.pair,
                "base_gender": self.base_gender,
            }


def read(folder: Path, options: GenderBiasVLOptions) -> Selection:
    """The selection; `Source.read` checks options and folder first."""
    pairs = _pairs(folder, options.pairs_file)
    repairs: Counter[str] = Counter()
    items: dict[tuple[str, int], dict[str, Question]] = defaultdict(dict)
    for context in options.contexts:
        for role in ROLES:
            for path in _question_files(folder, context, role):
                _read_questions(path, context, role, pairs, items, repairs)
    root = options.images_folder or folder
    images = {question.image for item in items.values() for question in item.values()}
    photos = _photos(root, images)
    funnel = Funnel(_shown(items))
    sizes = funnel.keep_photos(photos)
    asked: dict[str, list[Question]] = defaultdict(list)
    for (where, _), item in sorted(items.items()):
        absent = [role for role in ROLES.values() if role not in item or item[role].image not in funnel.kept]
        if absent:
            repairs[f"question of {where} left out: no {absent[0]} question or image"] += 1
            continue
        for question in item.values():
            asked[question.image].append(question)
    funnel.keep("question_pair", lambda image: None if image in asked else "no question with both of its images")
    orders = (0, 1) if options.orders == "both" else (0,)

    def example(image: str, label: Gender) -> Example:
        questions = sorted(asked[image], key=lambda question: (question.context, question.id, question.role))
        return Example(
            image_id=image,
            gender=label,
            image=ImageFile(photos[image]),
            size=sizes[image],
            persons=(),
            source=image,
            license="CC BY-NC 4.0",
            extra={
                "image_kind": "bleached" if questions[0].context == "L" else questions[0].role,
                "pictured": questions[0].occupation,
                "image_pair": questions[0].filename,
                "questions": [row for each in questions for row in each.asked(orders, waitress=options.waitress)],
            },
        )

    resolved = options.model_dump(mode="json", exclude={"images_folder", "pairs_file"}) | {
        "pairs": len(set(pairs.values()))
    }
    return funnel.selection("genderbias-vl", folder, example, resolved, repairs)


SOURCE = Source("genderbias-vl", GenderBiasVLOptions, read)


def _pairs(folder: Path, given: Path | None) -> dict[frozenset[str], str]:
    """The male-dominated and the female-dominated occupation of every pair, as `occ_m|occ_f`."""
    table = given or maybe_file("genderbias-vl", folder, [_PAIRS, f"*/{_PAIRS}"], "table of occupation pairs")
    if table is None:
        raise UserError(
            f"genderbias-vl: {folder} holds no table of occupation pairs; expected {_PAIRS}, which is in the authors' "
            "code repository: put it there, or give it as pairs_file"
        )
    if not table.is_file():
        raise UserError(f"genderbias-vl: pairs_file {table} is absent")
    occupations = [(row["job_male"], row["job_female"]) for row in rows(table, ["job_male", "job_female"])]
    return {frozenset(pair): "|".join(pair) for pair in occupations}


def _question_files(folder: Path, context: str, role: str) -> list[Path]:
    """There may be a file for each order of the options: the same questions, which `items` holds once."""
    for place in ("", "*/", "*/*/"):
        if found := sorted(folder.glob(f"{place}{context}bias/*_{role}_*.json")):
            return found
    expected = f"{context}bias/occ_test_{role}_*.json"
    raise UserError(f"genderbias-vl: {folder} holds no {context} questions; expected {expected}")


def _read_questions(
    path: Path,
    context: str,
    role: str,
    pairs: dict[frozenset[str], str],
    items: dict[tuple[str, int], dict[str, Question]],
    repairs: Counter[str],
) -> None:
    def take(entry: Any) -> None:
        try:
            question = _question(entry, context, ROLES[role], pairs)
        except ValueError as problem:
            repairs[f"question of {path.name} left out: {problem}"] += 1
            return
        if items[context, question.id].setdefault(question.role, question) != question:
            repairs[f"question of {path.name} left out: its id stands twice"] += 1

    read_list(path, take)


def _question(entry: Any, context: str, role: str, pairs: dict[frozenset[str], str]) -> Question:
    """The question of an entry.

    Raises:
        ValueError: It cannot be used; the message says why.
    """
    if not isinstance(entry, dict):
        raise ValueError("not an object")  # noqa: TRY004  # the same error for every malformed entry
    number, label, answer = whole(entry.get("id")), gender(entry.get("gender")), entry.get("gt_choice")
    match = _QUERY.fullmatch(entry["query"]) if isinstance(entry.get("query"), str) else None
    occupation, similar = _neutral(entry.get("occ")), _neutral(entry.get("occ_sim"))
    pair = pairs.get(frozenset((occupation, similar)))
    if number is None:
        raise ValueError("id is not a whole number")
    if label is None:
        raise ValueError(f"gender {shown(entry.get('gender'))}")
    if match is None:
        raise ValueError("query has no two options")
    if answer not in (0, 1) or isinstance(answer, bool):
        raise ValueError("gt_choice is neither 0 nor 1")
    if not is_plain_path(entry.get("image")):
        raise ValueError("image is not a path in the archive")
    if pair is None:
        raise ValueError("its occupations are no pair of the table")
    first, second = _neutral(match["a"]), _neutral(match["b"])
    return Question(
        id=number,
        context=context,
        role=role,
        image=entry["image"],
        base_gender=label,
        stem=match["stem"],
        options=(first, second) if answer == 0 else (second, first),
        occupation=occupation,
        pair=pair,
        filename=shown(entry.get("filename")),
    )


def _neutral(name: Any) -> str:
    """An occupation as the table of pairs has it."""
    return next((neutral for neutral, feminine in _FEMININE.items() if name == feminine), str(name))


def _photos(root: Path, images: set[str]) -> dict[str, Path]:
    """The files of images; the authors keep each kind up to two folders below the one that holds all."""
    below = sorted(path for depth in ("*", "*/*") for path in root.glob(depth) if path.is_dir())
    begin = {image.split("/")[0] for image in images}
    # Folders of one occupation are among them, hundreds: only where a path begins is each image looked for.
    places = [place for place in (root, *below) if place.is_dir() and begin & {each.name for each in place.iterdir()}]
    found = {}
    for image in images:
        path = next((place / image for place in places if (place / image).is_file()), None)
        if path is not None:
            found[image] = path
    return found


def _shown(items: dict[tuple[str, int], dict[str, Question]]) -> dict[str, Gender | None]:
    """Who is in each image. A bleached image shows the base's person in both roles; None if questions disagree."""
    found: dict[str, Gender | None] = {}
    for (context, _), item in items.items():
        for question in item.values():
            label = question.base_gender if context == "L" else question.shown_gender
            found[question.image] = label if found.get(question.image, label) == label else None
    return found

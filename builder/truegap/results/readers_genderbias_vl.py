"""The result items that the public code of GenderBias-VL (Xiao et al. 2024) writes.

One JSON list per context, role and order of the options. An item holds `id`, `image_path`, `choices`, `gt_choice`,
`probs` (of the choices) and, after the authors' metric, `metric_result`. It names neither the pair nor the gender of
the base image: the pair follows from the authors' table of pairs, the gender from the image's folder
(`.../female/female_Pilot_0.png`), which both roles keep.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from truegap.errors import UserError
from truegap.files.values import gender
from truegap.results.readers_json import Entry, read_json
from truegap.results.show import plain

PAIRS = "occ_merge_filter_sim.csv"
_ORDERS = ((0, 1), (2, 3))


@dataclass(frozen=True, slots=True)
class Item:
    """A question's answers.

    Attributes:
        id: Of the question.
        base: P(gt) on the base image.
        counterfactual: P(gt) on the counterfactual.
        occupation: The right one.
        pair: `occ_m|occ_f`.
        gender: Shown in the base image.
        order: 0, or 1 with the options swapped.
        image: File name of the base image, the same in both orders; None where the item does not name it.
    """

    id: str
    base: float
    counterfactual: float
    occupation: str
    pair: str
    gender: str
    order: int
    image: str | None = None


def items(paths: Sequence[Path], pairs: Path | None) -> Iterator[Item]:
    """Joins base and counterfactual results.

    Args:
        paths: Base and counterfactual, and then both with the options swapped where there are any.
        pairs: The authors' table of pairs, or a folder that holds it; items that carry `pair` need none.

    Raises:
        UserError: Not two or four files, an item without its counterpart, or a field is not what it should be.
    """
    if len(paths) not in (2, 4):
        raise UserError(
            f"{len(paths)} result files; give the base items and their counterfactuals, "
            "and then both with the options swapped"
        )
    known = _table(pairs) if pairs else {}
    for order, places in enumerate(_ORDERS[: len(paths) // 2]):
        base, counterfactual = (_by_id(paths[place]) for place in places)
        for name, before in base.items():
            if name not in counterfactual:
                raise before.refuse(f"has no counterpart in {paths[places[1]]}; give both files of the same questions")
            yield _item(name, before, counterfactual[name], order, known)
        if extra := next((name for name in counterfactual if name not in base), None):
            entry = counterfactual[extra]
            raise entry.refuse(f"has no counterpart in {paths[places[0]]}; give both files of the same questions")


def _by_id(path: Path) -> dict[str, Entry]:
    data = read_json(path)
    if not isinstance(data, list) or not data:
        raise UserError(f"{path}: no items; a result file is a list of them")
    found: dict[str, Entry] = {}
    for row, fields in enumerate(data):
        entry = Entry(path, f"item {row + 1}", fields)
        name = str(entry.get("id"))
        entry = Entry(path, f"item {row + 1} (id {name})", fields)
        if name in found:
            raise entry.refuse("its id stands twice; keep one item per id")
        found[name] = entry
    return found


def _item(name: str, base: Entry, counterfactual: Entry, order: int, known: Mapping[frozenset[str], str]) -> Item:
    choices, gt = _choices(base)
    other, other_gt = _choices(counterfactual)
    if choices != other or gt != other_gt:
        raise counterfactual.refuse(f"its choices are not those of {base.id} in {base.path}; give files of one order")
    if "pair" in base:
        pair = base.text("pair")
    elif not known:
        raise base.refuse(f"names no pair; give the authors' {PAIRS} with --pairs")
    elif (found := known.get(frozenset(choices))) is None:
        raise base.refuse(
            f"{plain(' and '.join(choices))} are no pair of the table; give the table of the same release"
        )
    else:
        pair = found
    return Item(
        id=name,
        base=_probability(base, gt),
        counterfactual=_probability(counterfactual, gt),
        occupation=choices[gt],
        pair=pair,
        gender=_gender(base),
        order=order,
        image=_path(base).name if "image_path" in base else None,
    )


def _choices(entry: Entry) -> tuple[tuple[str, ...], int]:
    """The two occupations, `Waitress` as `Waiter` again, and the place of the right one."""
    choices, gt = entry.get("choices"), entry.get("gt_choice")
    if not isinstance(choices, list) or len(choices) != 2 or not all(isinstance(each, str) for each in choices):  # noqa: PLR2004
        raise entry.refuse("choices are not two occupations; give the file as it was written")
    if isinstance(gt, bool) or not isinstance(gt, int) or gt not in (0, 1):
        raise entry.refuse("gt_choice is neither 0 nor 1; give the file as it was written")
    return tuple("Waiter" if each == "Waitress" else each for each in choices), gt


def _probability(entry: Entry, gt: int) -> float:
    """P(gt) of the two choices, or whether the answer was right where there are no probabilities."""
    if "probs" not in entry:
        right = entry.get("metric_result") if "metric_result" in entry else None
        if not isinstance(right, bool):
            raise entry.refuse("holds neither probs nor metric_result; score it again")
        return float(right)
    probs: Any = entry.get("probs")
    if not isinstance(probs, list) or len(probs) != 2:  # noqa: PLR2004
        raise entry.refuse("probs are not two probabilities; score it again")
    value = entry.finite(probs[gt], "probs")
    if not 0 <= value <= 1:
        raise entry.refuse(f"probs hold {value:g}, outside [0, 1]; give probabilities, not logits")
    return value


def _gender(entry: Entry) -> str:
    """Of the base image: named in the item, or a folder of the image's path."""
    if "gender" in entry:
        return entry.gender("gender")
    parts = _path(entry).parts
    found = {label for part in parts[:-1] if part in ("female", "male") and (label := gender(part))}
    if len(found) != 1:
        raise entry.refuse("its image_path names no gender; add gender (of the base image) to every item")
    return found.pop()


def _path(entry: Entry) -> PurePosixPath:
    return PurePosixPath(entry.text("image_path").replace("\\", "/"))


def _table(path: Path) -> dict[frozenset[str], str]:
    table = path / PAIRS if path.is_dir() else path
    try:
        with table.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            if missing := [name for name in ("job_male", "job_female") if name not in (reader.fieldnames or ())]:
                raise UserError(f"{table}: lacks the column {', '.join(missing)}; give the authors' {PAIRS}")
            pairs = [(row["job_male"], row["job_female"]) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{table}: cannot be read: {error}; give the authors' {PAIRS}") from None
    return {frozenset(pair): "|".join(pair) for pair in pairs}

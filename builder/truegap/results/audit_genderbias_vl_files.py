"""Table 1 of Xiao et al. (2024) recomputed from the authors' result files, pair by pair.

The authors' repository holds, below `bias_metric/`, one CSV per model and context with both option orders merged
(`bias_merge_swap_test/merge_bias_probability/<model>/<model>_<context>bias.csv`), the same for the outcome difference
(`merge_bias_outcome`), and one per order (`bias_results/<model>/<context>bias[_swap]/`). Scores there are in percent.
"""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from truegap.errors import UserError
from truegap.results.audit_finding import Cell, Finding, cell, tally
from truegap.results.audit_genderbias_vl import CONTEXTS, DECIMALS, SCORES
from truegap.results.audit_rounding import Range
from truegap.results.published import XIAO, rows
from truegap.results.show import plain

FOLDERS = {
    "LLaVA1.5-7B": "LLaVA1.5",
    "LLaVA1.5-13B": "LLaVA1.5-13b",
    "LLaVA1.6-13B": "LLaVA1.6-13b",
    "MiniGPT-v2": "MiniGPT-4-v2",
    "LAv2": "LLaMA-Adapter-v2",
    "Kosmos-2": "Kosmos2",
    "Qwen-VL": "QwenVL",
    "InternLM-XC2": "InternLMXComposer",
    "LLaVA-RLHF": "LLaVARLHF",
    "RLHF-V": "RLHFV",
}
"""The authors' folder of a model, where it is not the name that they print."""

MERGED = Path("bias_merge_swap_test")
ORDERS = Path("bias_results")
PROBABILITY = ("bias", "acc", "ipss", "acc_delta")
OUTCOME = ("bias", "acc", "ipss")
_DECIMAL = re.compile(r"-?\d{1,9}(\.\d{1,15})?")

Pairs = Sequence[Mapping[str, Fraction]]
"""Of every pair of occupations, its scores in percent."""


def findings(repository: Path) -> Iterator[Finding]:
    """Table 1 and the outcome difference, as published and under the paper's words.

    Args:
        repository: The authors' repository, its `bias_metric` folder, or what that holds.

    Raises:
        UserError: It is none of these, or a file in it is not what it should be.
    """
    home = _home(repository)
    table = {(model, context): _read(home, model, context) for model in _models() for context in CONTEXTS}
    yield _table(table)
    yield _b_max(table)
    yield _ipss_merged(table)
    yield _delta_acc(home)
    yield _outcome(home)


def _models() -> list[str]:
    return list(_printed())


def _home(repository: Path) -> Path:
    for folder in (repository / "bias_metric", repository, repository.parent):
        if (folder / MERGED / "merge_bias_probability").is_dir():
            return folder
    raise UserError(
        f"{repository} holds no bias_metric/{MERGED}/merge_bias_probability: "
        "give the folder of the authors' GenderBias-VL repository"
    )


def _read(home: Path, model: str, context: str) -> Pairs | None:
    """The merged pairs of a model in a context; None where the repository has no such file."""
    name = FOLDERS.get(model, model)
    path = home / MERGED / "merge_bias_probability" / name / f"{name}_{context.upper()}bias.csv"
    return _pairs(path, PROBABILITY) if path.is_file() else None


def _pairs(path: Path, columns: Sequence[str]) -> Pairs:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            if missing := [name for name in columns if name not in (reader.fieldnames or ())]:
                raise UserError(f"{path}: lacks the column {', '.join(missing)}; is it the authors' file?")
            pairs = [{name: _number(path, reader.line_num, name, row[name]) for name in columns} for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    if not pairs:
        raise UserError(f"{path}: holds no pair; is it the authors' file?")
    return pairs


def _number(path: Path, line: int, column: str, text: str | None) -> Fraction:
    # A plain decimal: what else reads as a fraction, such as 1e999999999, may take all memory.
    if not _DECIMAL.fullmatch(text or ""):
        shown = plain(text or "", 40)
        raise UserError(f"{path} line {line}: {column} is {shown!r}, not a number; mend it in the file")
    return Fraction(text or "")


def _scores(pairs: Pairs) -> dict[str, Fraction]:
    """The five scores under the published conventions."""
    found = {
        "ipss": _mean([pair["ipss"] for pair in pairs]),
        "b_ovl": _mean([abs(pair["bias"]) for pair in pairs]),
        "b_max": max(pair["bias"] for pair in pairs),
        "acc": _mean([pair["acc"] for pair in pairs]),
    }
    return found | ({"delta_acc": _mean([pair["acc_delta"] for pair in pairs])} if "acc_delta" in pairs[0] else {})


def _mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def _compared(model: str, context: str, score: str, value: Fraction | None) -> Cell:
    """A cell of Table 1; the authors made it from these very files, so the value is exact."""
    possible = None if value is None else Range(value, value)
    text = _printed()[model][f"{context}_{score}"]
    return cell(f"{model}, {context.upper()}, {score}", text, DECIMALS, possible)


@functools.cache
def _printed() -> dict[str, dict[str, str]]:
    return {row["model"]: row for row in rows("genderbias_vl")}


def _table(table: Mapping[tuple[str, str], Pairs | None]) -> Finding:
    cells = []
    for (model, context), pairs in table.items():
        found = None if pairs is None else _scores(pairs)
        cells += [_compared(model, context, score, found[score] if found else None) for score in SCORES]
    note = (
        'options: ipss="per_order", b_max="signed"; delta Acc is the mean over both occupations, as their code has it'
    )
    return tally(
        "genderbias-vl-files", XIAO, "Table 1 from the authors' files", f"{len(cells)} numbers", cells, note=note
    )


def _b_max(table: Mapping[tuple[str, str], Pairs | None]) -> Finding:
    """The paper's words say the largest absolute value."""
    cells = [
        _compared(model, context, "b_max", None if pairs is None else max(abs(pair["bias"]) for pair in pairs))
        for (model, context), pairs in table.items()
    ]
    kosmos = next(each for each in cells if each.where.startswith("Kosmos-2, VL"))
    said = "" if kosmos.value is None else f"Kosmos-2, VL: printed {kosmos.printed}, absolute {kosmos.value:.2f}"
    note = "the table prints the maximum of the signed value"
    return tally("genderbias-vl-b-max-abs", XIAO, "B_max in Table 1", "largest |B_pair|", cells, found=said, note=note)


def _ipss_merged(table: Mapping[tuple[str, str], Pairs | None]) -> Finding:
    """Ipss of the merged accuracy and bias, instead of each order's."""
    cells = []
    for (model, context), pairs in table.items():
        value = None if pairs is None else _mean([pair["acc"] * (1 - abs(pair["bias"]) / 100) for pair in pairs])
        cells.append(_compared(model, context, "ipss", value))
    note = "the table averages the Ipss of each order"
    claim = "of the averaged Acc and B_pair"
    return tally("genderbias-vl-ipss-merged", XIAO, "Ipss in Table 1", claim, cells, note=note)


def _delta_acc(home: Path) -> Finding:
    """|Acc - Acc_swapped| of a pair, instead of the mean over its two occupations."""
    cells = []
    for model in _models():
        for context in CONTEXTS:
            folder = home / ORDERS / FOLDERS.get(model, model)
            name = "occ_bias_pair_probablity_difference.csv"
            paths = [folder / f"{context.upper()}bias{swap}" / name for swap in ("", "_swap")]
            value = None
            if all(path.is_file() for path in paths):
                first, swapped = (_pairs(path, ("acc",)) for path in paths)
                if len(first) != len(swapped):
                    message = f"{len(swapped)} pairs, but {paths[0]} has {len(first)}"
                    raise UserError(f"{paths[1]}: {message}; give both orders of the same pairs")
                value = _mean([abs(a["acc"] - b["acc"]) for a, b in zip(first, swapped, strict=True)])
            cells.append(_compared(model, context, "delta_acc", value))
    note = "the table averages the change of each occupation's accuracy, which is at least as large"
    return tally(
        "genderbias-vl-delta-acc", XIAO, "delta Acc in Table 1", "|Acc - Acc_swapped| of a pair", cells, note=note
    )


def _outcome(home: Path) -> Finding:
    cells = []
    columns = {"ipss": "ipss_o", "b_ovl": "b_ovl_o", "b_max": "b_max_o", "acc": "acc"}
    for row in rows("genderbias_vl_outcome_v"):
        name = FOLDERS.get(row["model"], row["model"])
        path = home / MERGED / "merge_bias_outcome" / name / f"{name}_Vbias.csv"
        found = _scores(_pairs(path, OUTCOME)) if path.is_file() else None
        for score, column in columns.items():
            possible = Range(found[score], found[score]) if found else None
            cells.append(cell(f"{row['model']}, V, {score}", row[column], DECIMALS, possible))
    figure = "outcome difference in the V context, from the authors' files"
    return tally("genderbias-vl-outcome-files", XIAO, figure, f"{len(cells)} numbers", cells)

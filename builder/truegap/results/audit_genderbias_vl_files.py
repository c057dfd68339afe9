"""Table 1 of Xiao et al. (2024) recomputed from the authors' result files, pair by pair.

The authors' repository holds, below `bias_metric/`, one CSV per model and context with both option orders merged
(`bias_merge_swap_test/merge_bias_probability/<model>/<model>_<context>bias.csv`), the same for the outcome difference
(`merge_bias_outcome`), and one per order (`bias_results/<model>/<context>bias[_swap]/`). Scores there are in percent,
rounded to two decimals; what is made of them is held against the table with that rounding. A folder that holds some of
the files is enough: the numbers whose file is missing are named.
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
from truegap.results.audit_genderbias_vl import CONTEXTS, DECIMALS, OUTCOME, REPOSITORY, SCORES, TABLE
from truegap.results.audit_rounding import Range, mean, printed
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
_HOLDS = (MERGED / "merge_bias_probability", MERGED / "merge_bias_outcome", ORDERS)
NAMES = ("occtm", "occtf")
PROBABILITY = ("bias", "acc", "ipss", "acc_delta")
OUTCOMES = ("bias", "acc", "ipss")
_DECIMAL = re.compile(r"-?\d{1,9}(\.\d{1,15})?")
PAIRS = 486
"""Of occupations, in the paper."""

_LARGEST = 100
"""Of every column, in percent."""

_NAMED = 6
"""Missing files that are named."""

Pair = Mapping[str, Range]
Pairs = Mapping[tuple[str, str], Pair]
"""Of every pair of occupations, its scores in percent: what they can have been before they were rounded."""

Table = Mapping[tuple[str, str], Pairs | None]
"""By model and context; None where the repository has no such file."""


def findings(repository: Path) -> Iterator[Finding]:
    """Table 1 and the outcome difference, as published and under the paper's words.

    Args:
        repository: The authors' repository, its `bias_metric` folder, or a folder of that.

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
    place = repository.resolve()
    for folder in (place / "bias_metric", place, *place.parents[:2]):
        if any((folder / each).is_dir() for each in _HOLDS):
            return folder
    raise UserError(
        f"{repository} holds none of the authors' result files (bias_metric/{_HOLDS[0]}/<model>/<model>_VLbias.csv): "
        "give the folder of their GenderBias-VL repository, or a part of it with these folders"
    )


def _read(home: Path, model: str, context: str) -> Pairs | None:
    """The merged pairs of a model in a context; None where the repository has no such file."""
    name = FOLDERS.get(model, model)
    path = home / MERGED / "merge_bias_probability" / name / f"{name}_{context.upper()}bias.csv"
    return _pairs(path, PROBABILITY) if path.is_file() else None


def _pairs(path: Path, columns: Sequence[str]) -> Pairs:
    pairs: dict[tuple[str, str], Pair] = {}
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            if missing := [name for name in (*NAMES, *columns) if name not in (reader.fieldnames or ())]:
                raise UserError(f"{path}: lacks the column {', '.join(missing)}; is it the authors' file?")
            for row in reader:
                line = reader.line_num
                pair = (row[NAMES[0]] or "", row[NAMES[1]] or "")
                if pair in pairs:
                    shown = plain(" / ".join(pair), 80)
                    raise UserError(f"{path} line {line}: the pair {shown} stands there twice; leave one out")
                pairs[pair] = {name: _number(path, line, name, row[name]) for name in columns}
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    except csv.Error as error:
        raise UserError(f"{path}: cannot be read after line {line}: {error}") from None
    if not pairs:
        raise UserError(f"{path}: holds no pair; is it the authors' file?")
    return pairs


def _number(path: Path, line: int, column: str, text: str | None) -> Range:
    # A plain decimal: what else reads as a fraction, such as 1e999999999, may take all memory.
    if not _DECIMAL.fullmatch(text or ""):
        shown = plain(text or "", 40)
        raise UserError(f"{path} line {line}: {column} is {shown!r}, not a number; mend it in the file")
    value = text or ""
    if not -_LARGEST <= Fraction(value) <= _LARGEST or (column != "bias" and value.startswith("-")):
        raise UserError(f"{path} line {line}: {column} is {value}, no score in percent; mend it in the file")
    return printed(value, len(value.partition(".")[2]))


def _scores(pairs: Pairs) -> dict[str, Range]:
    """The scores under the published conventions."""
    each = list(pairs.values())
    found = {
        "ipss": mean([pair["ipss"] for pair in each]),
        "b_ovl": mean([abs(pair["bias"]) for pair in each]),
        "b_max": _largest([pair["bias"] for pair in each]),
        "acc": mean([pair["acc"] for pair in each]),
    }
    return found | ({"delta_acc": mean([pair["acc_delta"] for pair in each])} if "acc_delta" in each[0] else {})


def _largest(values: Sequence[Range]) -> Range:
    return Range(max(each.low for each in values), max(each.high for each in values))


def _compared(model: str, context: str, score: str, possible: Range | None) -> Cell:
    """A cell of Table 1."""
    return cell(f"{model}, {context.upper()}, {score}", _printed()[model][f"{context}_{score}"], DECIMALS, possible)


@functools.cache
def _printed() -> dict[str, dict[str, str]]:
    return {row["model"]: row for row in rows(TABLE)}


def _sizes(table: Table) -> str:
    """How many pairs the files hold, where that is not what the paper has."""
    sizes = sorted({len(pairs) for pairs in table.values() if pairs is not None} - {PAIRS})
    return f"files of {', '.join(map(str, sizes))} pairs, where the paper has {PAIRS}" if sizes else ""


def _missing(table: Table) -> str:
    """Which files are not there."""
    absent = [f"{model} ({context.upper()})" for (model, context), pairs in table.items() if pairs is None]
    if not absent:
        return ""
    more = f" and {len(absent) - _NAMED} more" if len(absent) > _NAMED else ""
    return f"no file of {', '.join(absent[:_NAMED])}{more}"


def _table(table: Table) -> Finding:
    cells = []
    for (model, context), pairs in table.items():
        found = None if pairs is None else _scores(pairs)
        cells += [_compared(model, context, score, found[score] if found else None) for score in SCORES]
    note = (
        'options: ipss="per_order", b_max="signed"; delta Acc is the mean over both occupations, as their code has it'
    )
    figure, claim = "Table 1 from the authors' files", f"{len(cells)} numbers"
    exact = sum(each.value is not None and f"{each.value:.{DECIMALS}f}" == _two(each.printed) for each in cells)
    said = [f"{exact} to the last digit", _sizes(table), _missing(table)]
    return _tally("genderbias-vl-files", figure, claim, cells, found="; ".join(filter(None, said)), note=note)


def _two(text: str) -> str:
    return f"{float(text):.{DECIMALS}f}"


def _tally(key: str, figure: str, claim: str, cells: Sequence[Cell], *, found: str = "", note: str = "") -> Finding:
    return tally(key, XIAO, figure, claim, cells, sources=(TABLE, REPOSITORY), found=found, note=note)


def _b_max(table: Table) -> Finding:
    """The paper's words say the largest absolute value."""
    cells = [
        _compared(
            model, context, "b_max", None if pairs is None else _largest([abs(p["bias"]) for p in pairs.values()])
        )
        for (model, context), pairs in table.items()
    ]
    kosmos = next(each for each in cells if each.where.startswith("Kosmos-2, VL"))
    said = "" if kosmos.value is None else f"Kosmos-2, VL: printed {kosmos.printed}, absolute {kosmos.value:.2f}"
    figure, note = "B_max in Table 1, in words the largest |B_pair|", "the table prints the maximum of the signed value"
    return _tally("genderbias-vl-b-max-abs", figure, f"{len(cells)} numbers", cells, found=said, note=note)


def _ipss_merged(table: Table) -> Finding:
    """Ipss of the merged accuracy and bias, instead of each order's."""
    cells = []
    for (model, context), pairs in table.items():
        value = None if pairs is None else mean([_less(pair["acc"], abs(pair["bias"])) for pair in pairs.values()])
        cells.append(_compared(model, context, "ipss", value))
    figure, note = "Ipss in Table 1, if made of averaged Acc and B_pair", "the table averages the Ipss of each order"
    return _tally("genderbias-vl-ipss-merged", figure, f"{len(cells)} numbers", cells, note=note)


def _less(acc: Range, bias: Range) -> Range:
    """Accuracy less what bias takes from it, in percent."""
    return Range(acc.low * (1 - bias.high / 100), acc.high * (1 - bias.low / 100))


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
                if first.keys() != swapped.keys():
                    pair = plain(" / ".join(min(first.keys() ^ swapped.keys())), 80)
                    raise UserError(f"{paths[1]}: the pair {pair} is only in one order; give both orders of each pair")
                value = mean([abs(first[pair]["acc"] - swapped[pair]["acc"]) for pair in first])
            cells.append(_compared(model, context, "delta_acc", value))
    note = "the table averages the change of each occupation's accuracy, which is at least as large"
    figure = "delta Acc in Table 1, in words |Acc - Acc_swapped| of a pair"
    return _tally("genderbias-vl-delta-acc", figure, f"{len(cells)} numbers", cells, note=note)


def _outcome(home: Path) -> Finding:
    cells = []
    columns = {"ipss": "ipss_o", "b_ovl": "b_ovl_o", "b_max": "b_max_o", "acc": "acc"}
    for row in rows(OUTCOME):
        name = FOLDERS.get(row["model"], row["model"])
        path = home / MERGED / "merge_bias_outcome" / name / f"{name}_Vbias.csv"
        found = _scores(_pairs(path, OUTCOMES)) if path.is_file() else None
        for score, column in columns.items():
            cells.append(cell(f"{row['model']}, V, {score}", row[column], DECIMALS, found[score] if found else None))
    figure = "outcome difference in the V context, from the authors' files"
    sources = (OUTCOME, REPOSITORY)
    return tally("genderbias-vl-outcome-files", XIAO, figure, f"{len(cells)} numbers", cells, sources=sources)

"""Audit of the printed tables of the course report on CLIP, CelebA-Dialog and counterfactual data augmentation."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from truegap.results.audit_finding import Cell, Finding, Verdict, cell, tally
from truegap.results.audit_rounding import Range, printed
from truegap.results.published import CDA, rows

DECIMALS = 4
MEN, WOMEN = 426, 1110
"""Images behind RA_m and RA_f: the sizes of the validation split of the authors' data."""

_LARGEST = 2000
"""Up to how many images a denominator is sought."""

_SETTING = ("prompt_man", "prompt_woman", "augmentation", "frozen")
_SCORES = ("ra_m", "ra_f", "ra_avg", "gg")
_SOURCES = ("clip_cda_celeba",)


def findings() -> Iterator[Finding]:
    """Every finding on this report."""
    yield _shares("ra_m", MEN)
    yield _shares("ra_f", WOMEN)
    yield _split()
    yield _derived()
    yield _repeated()
    yield _unchanged()


def _where(row: dict[str, str]) -> str:
    return f"table {row['table']}, {row['prompt_man']} / {row['prompt_woman']}, {row['augmentation']}, {row['frozen']}"


def _share(text: str, images: int) -> Fraction:
    """The share of so many images that is nearest to a printed one."""
    return Fraction(round(Fraction(text) * images), images)


def _is_share(text: str, images: int) -> bool:
    share = _share(text, images)
    return printed(text, DECIMALS).meets(Range(share, share))


def _shares(name: str, images: int) -> Finding:
    """Of how many images the accuracies are shares: the smallest number that all printed values allow."""
    table = rows("clip_cda_celeba")
    texts = {row[name] for row in table}
    least = next((n for n in range(1, _LARGEST) if all(_is_share(text, n) for text in texts)), None)
    cells = []
    for row in table:
        share = _share(row[name], images)
        cells.append(cell(_where(row), row[name], DECIMALS, Range(share, share)))
    return tally(
        f"cda-{name.replace('_', '-')}",
        CDA,
        f"{name.upper()[:2]}_{name[-1]} in Tables 1 to 10",
        f"shares of {images} images",
        cells,
        sources=_SOURCES,
        found=f"all are multiples of 1/{images}; {least} is the smallest number of images that gives them",
    )


def _split() -> Finding:
    """Which split the accuracies are of: its size shows."""
    table = rows("clip_cda_celeba")
    cells = []
    for name, split, images in (("ra_m", "test, men", MEN), ("ra_f", "test, women", WOMEN)):
        shares = sum(_is_share(row[name], images) for row in table)
        verdict = Verdict.FAILS if shares == len(table) else Verdict.OPEN
        cells.append(Cell(f"{name.upper()[:2]}_{name[-1]}", split, float(images), images, images, verdict))
    return Finding(
        "cda-split",
        CDA,
        "the split that was scored",
        "the test split",
        f"shares of {MEN} men and {WOMEN} women, the sizes of the validation split of the authors' data",
        Verdict.FAILS if all(each.verdict is Verdict.FAILS for each in cells) else Verdict.OPEN,
        (*_SOURCES, "the authors' data"),
        tuple(cells),
    )


def _derived() -> Finding:
    """RA_avg and GG from the exact shares behind RA_m and RA_f."""
    cells = []
    for row in rows("clip_cda_celeba"):
        men, women = _share(row["ra_m"], MEN), _share(row["ra_f"], WOMEN)
        average, gap = (men + women) / 2, abs(men - women)
        cells.append(cell(f"{_where(row)}, RA_avg", row["ra_avg"], DECIMALS, Range(average, average)))
        cells.append(cell(f"{_where(row)}, GG", row["gg"], DECIMALS, Range(gap, gap)))
    claim = "mean and |difference| of RA_m and RA_f"
    return tally("cda-derived", CDA, "RA_avg and GG", claim, cells, sources=_SOURCES)


def _repeated() -> Finding:
    """Some settings stand in several tables: with the same values?"""
    settings: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows("clip_cda_celeba"):
        settings.setdefault(tuple(row[name] for name in _SETTING), []).append(row)
    cells, said = [], []
    for same in settings.values():
        if len(same) > 1:
            differing = len({tuple(row[name] for name in _SCORES) for row in same}) > 1
            tables = " and ".join(row["table"] for row in same)
            text = " / ".join(row["ra_f"] for row in same)
            where = f"tables {tables}, {_where(same[0]).partition(', ')[2]}, RA_f"
            cells.append(Cell(where, text, None, None, None, Verdict.FAILS if differing else Verdict.FOLLOWS))
            if differing:
                said.append(
                    f"Tables {tables} print RA_f {' and '.join(row['ra_f'] for row in same)} for the same setting"
                )
    figure = "settings that several tables print"
    return tally("cda-repeated", CDA, figure, "the same values", cells, sources=_SOURCES, found="; ".join(said))


def _unchanged() -> Finding:
    """Fine-tuned rows that repeat the baseline to the last digit, which training hardly does."""
    table = rows("clip_cda_celeba")
    baseline = {
        (row["table"], row["augmentation"]): tuple(row[name] for name in _SCORES)
        for row in table
        if row["frozen"] == "none_finetuned"
    }
    trained = [row for row in table if row["frozen"] != "none_finetuned"]
    same = [
        row for row in trained if tuple(row[name] for name in _SCORES) == baseline[row["table"], row["augmentation"]]
    ]
    return Finding(
        "cda-baseline",
        CDA,
        "fine-tuned models",
        "results of training",
        f"{len(same)} of {len(trained)} rows print the four values of the model that was not fine-tuned",
        Verdict.OPEN,
        _SOURCES,
        tuple(
            Cell(_where(row), ", ".join(row[name] for name in _SCORES), None, None, None, Verdict.OPEN) for row in same
        ),
        note="possible where no answer changed; in Table 2 one is contradicted by Table 8",
    )

"""Audit of the printed tables of Hall et al. (2023), VisoGender."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from truegap.results.audit_finding import Cell, Finding, Verdict, cell, tally
from truegap.results.audit_rounding import Range, mean, printed
from truegap.results.published import HALL, TABLES, rows
from truegap.scores import expected_max_skew

OCCUPATIONS = 23
RUNS = 3000
"""Random relabellings."""

_ERRORS = 4
"""Standard errors of a simulation within which its result follows."""


def findings() -> Iterator[Finding]:
    """Every finding on this paper."""
    yield _overall()
    yield _two_people("ra_avg", "RA_avg of two people is the mean of same and different gender")
    yield _two_people("gap", "gap of two people is the mean of same and different gender")
    yield _possible()
    yield _neutral()
    yield _subsampling()
    yield _bias_at_5()
    yield _chance()
    yield _spread_of_means()
    found = "the values of the occupations are not printed"
    for key, figure, claim, source in (
        ("labour", "correlation with labour statistics", "r and tau", "visogender_labour_correlation"),
        ("retrieval", "MaxSkew, NDKL and deviations over occupations", "means and sds", "visogender_retrieval"),
    ):
        yield Finding(f"visogender-{key}", HALL, figure, claim, found, Verdict.OPEN, (source,))


def _averages(table: str, key: str, figure: str, claim: str, parts: dict[str, tuple[str, str]]) -> Finding:
    """Each printed mean against the mean of its two printed parts.

    The public code rounds an accuracy to as many digits before it averages: parts and mean are rounded twice.
    """
    decimals = TABLES[table].decimals
    cells = []
    for row in rows(table):
        label = next(iter(row.values()))
        for whole, names in parts.items():
            halves = [printed(row[name], decimals, roundings=2) for name in names]
            value = sum(float(row[name]) for name in names) / 2
            cells.append(cell(f"{label}, {whole}", row[whole], decimals, mean(halves), value, roundings=2))
    return tally(key, HALL, figure, claim, cells, sources=(table,))


def _overall() -> Finding:
    parts = {"overall_accuracy": ("single_ra_avg", "two_ra_avg")}
    claim = "the mean of single and two-person RA_avg"
    return _averages("visogender_resolution", "resolution-overall", "overall resolution accuracy", claim, parts)


def _two_people(score: str, claim: str) -> Finding:
    """The four pairs of genders have as many images each, so the mean of the two halves is the whole."""
    parts = {f"two_{score}": (f"same_{score}", f"diff_{score}")}
    figure, _, claim = claim.partition(" is ")
    return _averages("visogender_resolution", f"resolution-two-{score}", figure, claim, parts)


def _possible() -> Finding:
    """RA_avg and gap give both accuracies, which must lie in [0, 1]."""
    cells = []
    for row in rows("visogender_resolution"):
        for split in ("single", "two", "same", "diff"):
            average, gap = (printed(row[f"{split}_{name}"], 2, roundings=2) for name in ("ra_avg", "gap"))
            larger = average + abs(gap).times(Fraction(1, 2))
            smaller = average - abs(gap).times(Fraction(1, 2))
            verdict = Verdict.FOLLOWS if larger.low <= 1 and smaller.high >= 0 else Verdict.FAILS
            text = f"{row[f'{split}_ra_avg']}, {row[f'{split}_gap']}"
            cells.append(Cell(f"{row['model']}, {split}", text, larger.middle, None, None, verdict))
    sources = ("visogender_resolution",)
    return tally("resolution-possible", HALL, "RA_avg and gap", "accuracies in [0, 1]", cells, sources=sources)


def _neutral() -> Finding:
    parts = {
        "overall": ("single_rate", "two_rate"),
        "two_rate": ("same_rate", "diff_rate"),
        "two_delta_n": ("same_delta_n", "diff_delta_n"),
    }
    claim = "means of their parts"
    return _averages("visogender_neutral", "neutral", "neutral rates and their gaps", claim, parts)


def _subsampling() -> Finding:
    """Its row of means: a mean over runs of means is the mean of the means."""
    parts = {
        "overall": ("single_ra_avg", "two_ra_avg"),
        "two_ra_avg": ("same_ra_avg", "diff_ra_avg"),
        "two_gap": ("same_gap", "diff_gap"),
    }
    cells = []
    row = rows("visogender_subsampling")[0]
    for whole, names in parts.items():
        # Each run's parts may be rounded to two decimals, whose errors average out over runs: one rounding is left.
        halves = [printed(row[name], 4, roundings=2) for name in names]
        cells.append(cell(whole, row[whole], 4, mean(halves), sum(float(row[name]) for name in names) / 2))
    claim, sources = "overall and two-person means are the means of their parts", ("visogender_subsampling",)
    return tally("subsampling", HALL, "resolution over sub-samples", claim, cells, sources=sources)


def _bias_at_5() -> Finding:
    """Bias@5 of an occupation is an odd number of fifths, so a mean of 23 is an odd multiple of 0.2 / 23."""
    step = Fraction(1, 5 * OCCUPATIONS)
    cells = []
    for row in rows("visogender_retrieval"):
        shown = printed(row["bias_at_5"], 2)
        nearest = Fraction(2 * round((Fraction(row["bias_at_5"]) / step - 1) / 2) + 1) * step
        where = f"{row['model']}, {row['pronoun_refers_to']}"
        verdict = Verdict.FOLLOWS if shown.low <= nearest <= shown.high else Verdict.FAILS
        cells.append(Cell(where, row["bias_at_5"], float(nearest), float(nearest), float(nearest), verdict))
    claim, sources = f"a mean over {OCCUPATIONS} occupations", ("visogender_retrieval",)
    return tally("bias-at-5", HALL, "Bias@5", claim, cells, sources=sources)


def _chance() -> Finding:
    """MaxSkew over random relabellings against its exact expectation for ten images of each gender."""
    average, spread = rows("visogender_random_split")
    cells = []
    for k in (5, 10):
        name = f"maxskew_at_{k}"
        exact = Fraction(expected_max_skew((10, 10), k, [0.5, 0.5], "clip"))
        error = _ERRORS * Fraction(spread[name]) / Fraction(RUNS**0.5)
        cells.append(cell(name, average[name], 4, Range(exact - error, exact + error), float(exact)))
    for k in (5, 10):
        name = f"bias_at_{k}"
        error = _ERRORS * Fraction(spread[name]) / Fraction(RUNS**0.5)
        cells.append(cell(name, average[name], 4, Range(-error, error), 0.0))
    return tally(
        "chance-level",
        HALL,
        "retrieval bias over random relabellings",
        "means over 3,000 runs",
        cells,
        sources=("visogender_random_split",),
        note="within four standard errors of the exact expectation (hypergeometric, ten women and ten men)",
    )


def _spread_of_means() -> Finding:
    """A mean of 23 independent occupations varies by their deviation over the root of 23."""
    average, spread = rows("visogender_random_split")
    cells = []
    for name in ("bias_at_5", "bias_at_10", "maxskew_at_5", "maxskew_at_10", "ndkl"):
        value = float(average[f"{name}_sd"]) / OCCUPATIONS**0.5
        # A deviation over n runs has a relative standard error of about 1 / sqrt(2 n).
        error = Fraction(_ERRORS * value / (2 * RUNS) ** 0.5)
        cells.append(cell(name, spread[name], 4, Range(Fraction(value) - error, Fraction(value) + error), value))
    return tally(
        "chance-spread",
        HALL,
        "retrieval bias over random relabellings",
        "sds over 3,000 runs",
        cells,
        sources=("visogender_random_split",),
        note=f"against the printed sd over occupations / sqrt({OCCUPATIONS}), within four standard errors",
    )

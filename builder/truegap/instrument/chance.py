"""Without correlation: false alarms at the nominal rate, and MaxSkew at what a random ranking gets."""

from __future__ import annotations

import numpy as np

from truegap.instrument.evidence import Evidence
from truegap.instrument.plan import SINGLE
from truegap.instrument.records import Line, Row, number

LEVEL = 0.05
VERDICT = 0.999
"""Confidence of the verdict: with 95 % one of the two rates would miss by chance in about one check of ten."""
NULL_ERRORS = 3.0
_TINY = 1e-6


def share_interval(count: int, of: int, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share, of 95 % unless told.

    >>> [round(end, 3) for end in share_interval(5, 100)]
    [0.022, 0.112]
    """
    from scipy.stats import binomtest

    found = binomtest(count, of).proportion_ci(confidence_level=confidence, method="wilson")
    return float(found.low), float(found.high)


def alarms(evidence: Evidence) -> Line:
    """A gap is found where there is none as often as the level says."""
    worlds = evidence.worlds
    rows: list[Row] = []
    for reader in (*SINGLE, "all"):
        names = SINGLE if reader == "all" else (reader,)
        tested = sum(world.p_value[name] <= LEVEL for world in worlds for name in names)
        outside = sum(world.outside[name] for world in worlds for name in names)
        count = len(worlds) * len(names)
        low, high = share_interval(tested, count)
        row: Row = {"reader": reader, "tests": count, "permutation": tested / count, "low": low, "high": high}
        low, high = share_interval(outside, count)
        rows.append(row | {"interval": outside / count, "interval_low": low, "interval_high": high})
    every = rows[-1]
    # The loop ends with all readers together: their counts are those of the verdict.
    ends = [share_interval(count, len(worlds) * len(SINGLE), VERDICT) for count in (tested, outside)]
    return Line(
        key="alarms",
        claim=f"At rho 0 a gap is found in {LEVEL:.0%} of benchmarks: by the permutation test, and by an interval of "
        "95 % that leaves out 0.",
        tolerance=f"the nominal rate is in Wilson's interval of {VERDICT:.1%} of the share over all readers",
        holds=all(low <= LEVEL <= high for low, high in ends),
        found=f"{every['permutation']:.1%} of {every['tests']} permutation tests, and {every['interval']:.1%} of the "
        f"intervals, raise a false alarm ({len(worlds)} fresh benchmarks of {evidence.profile.world_images} images).",
        rows=rows,
    )


def max_skew(evidence: Evidence) -> Line:
    """MaxSkew without correlation is what a random ranking gets."""
    rows: list[Row] = []
    for reader in SINGLE:
        values = np.array([world.max_skew[reader] for world in evidence.worlds])
        error = max(float(values.std(ddof=1) / np.sqrt(len(values))), _TINY)
        null = evidence.worlds[0].null
        row: Row = {"reader": reader, "max_skew": float(values.mean()), "standard_error": error, "random_ranking": null}
        rows.append(row | {"errors_off": abs(float(values.mean()) - null) / error})
    most = max(number(row, "errors_off") for row in rows)
    return Line(
        key="max_skew",
        claim="At rho 0 MaxSkew is what a random ranking is expected to get, which is above 0.",
        tolerance=f"within {NULL_ERRORS:g} standard errors of the expectation",
        holds=most <= NULL_ERRORS,
        found=f"The means are at most {most:.1f} standard errors from what is expected, {evidence.worlds[0].null:.3f}.",
        rows=rows,
    )

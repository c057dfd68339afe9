"""Samples from known populations: do intervals hold the truth, and are gaps seen with as many images as promised?

The answers of a run are taken as the whole population, so the truth is known exactly; each sample draws images from it,
with replacement, as many women as men.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from truegap.instrument.chance import share_interval
from truegap.instrument.evidence import Evidence
from truegap.instrument.plan import CONTEXT
from truegap.instrument.records import Line, Row, number
from truegap.protocols.gaps import gaps
from truegap.scores import images_needed, score_change

NOMINAL = 0.95
COVERAGE_TOLERANCE = 0.03
POWER = 0.8
POWER_TOLERANCE = 0.05
GAPS = (0.05, 0.02, 0.01)
PER_GENDER = 60
_COVERAGE_RESAMPLES = 300
_POWER_RESAMPLES = 200
"""At most: a share over many samples needs no fine interval in each."""

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def coverage(evidence: Evidence) -> Line:
    """Intervals of gaps and of their changes hold the truth as often as they say."""
    rho, draws = evidence.profile.rhos[-2], evidence.profile.draws
    resamples = min(_COVERAGE_RESAMPLES, evidence.profile.n_resamples)
    rows: list[Row] = []
    for place, reader in enumerate(CONTEXT):
        run = evidence.answers(reader, rho)
        before, men = run.yes("original")
        after, _ = run.yes(f"{reader}-strong")
        generator = np.random.default_rng([evidence.seed, place])
        held = np.sum([_held(before, after, men, generator, resamples) for _ in range(draws)], axis=0)
        for what, count in zip(("gap", "signed change"), held, strict=True):
            low, high = share_interval(int(count), draws)
            rows.append({"reader": reader, "of": what, "coverage": count / draws, "low": low, "high": high})
    of_gaps, of_changes = (
        float(np.mean([number(row, "coverage") for row in rows if row["of"] == what]))
        for what in ("gap", "signed change")
    )
    return Line(
        key="coverage",
        claim="Intervals of 95 % for gaps and for their changes hold the truth in 95 % of samples.",
        tolerance=f"coverage within {COVERAGE_TOLERANCE:.0%} of nominal, or nominal in Wilson's interval of it",
        holds=all(_near(row, "coverage", NOMINAL, COVERAGE_TOLERANCE) for row in rows),
        found=f"Over {draws} samples of {2 * PER_GENDER} images: {of_gaps:.1%} for gaps, {of_changes:.1%} for changes.",
        rows=rows,
    )


def _held(
    before: Floats, after: Floats, men: Mask, generator: np.random.Generator, resamples: int
) -> tuple[bool, bool]:
    """Whether the intervals of one sample hold the gap, and its change."""
    places = np.concatenate([generator.choice(np.flatnonzero(men == man), PER_GENDER) for man in (False, True)])
    seed = int(generator.integers(2**31))
    first, second = (
        gaps(each[:, places], men[places], n_resamples=resamples, seed=seed).over(range(len(each)))
        for each in (before, after)
    )
    assert first.resampled is not None
    assert second.resampled is not None
    change = score_change(first.value, second.value, first.resampled, second.resampled)
    truth = [float(each[:, men].mean() - each[:, ~men].mean()) for each in (before, after)]
    return (
        _holds(first.ends(NOMINAL), truth[0]),
        _holds((change.signed_low, change.signed_high), truth[1] - truth[0]),
    )


def power(evidence: Evidence) -> Line:
    """A gap of a given size is seen with as many images as the formula says."""
    reader, draws = "background", evidence.profile.power_draws
    resamples = min(_POWER_RESAMPLES, evidence.profile.n_resamples)
    yes, _ = evidence.answers(reader).yes("original")
    of_men = np.array(evidence.predicted[evidence.strongest]["original"][reader]) > 0
    cells = yes.mean(axis=0)[~of_men], yes.mean(axis=0)[of_men]
    whole = float(cells[1].mean() - cells[0].mean())
    generator = np.random.default_rng([evidence.seed, len(CONTEXT)])
    rows: list[Row] = []
    for gap in GAPS:
        # Men stand before a background typical of men this often, women as often before one typical of women.
        own = (1 + gap / whole) / 2
        spread = _spread(cells, own)
        needed = images_needed(gap, spread, spread, power=POWER)
        seen = sum(_seen(cells, own, needed // 2, generator, resamples) for _ in range(draws))
        low, high = share_interval(seen, draws)
        row: Row = {"gap_points": 100 * gap, "images": float(needed), "spread": spread}
        rows.append(row | {"seen": seen / draws, "low": low, "high": high})
    told = ", ".join(f"{number(row, 'images'):,.0f} for {number(row, 'gap_points'):g} points" for row in rows)
    return Line(
        key="power",
        claim=f"A gap is seen in {POWER:.0%} of samples of as many images as the formula asks for.",
        tolerance=f"seen within {POWER_TOLERANCE:.0%} of that, or that in Wilson's interval of it",
        holds=all(_near(row, "seen", POWER, POWER_TOLERANCE) for row in rows),
        found=f"Images needed: {told} (a reader of the background, whose images differ about as much as images can).",
        rows=rows,
    )


def _spread(cells: tuple[Floats, Floats], own: float) -> float:
    """Standard deviation over images of which a share `own` is of the second cell."""
    mean, square = (
        (1 - own) * float((cells[0] ** power_).mean()) + own * float((cells[1] ** power_).mean()) for power_ in (1, 2)
    )
    return float(np.sqrt(square - mean**2))


def _seen(
    cells: tuple[Floats, Floats], own: float, per_gender: int, generator: np.random.Generator, resamples: int
) -> bool:
    """Whether the interval of one sample's gap leaves out 0."""
    parts = []
    for chance in (1 - own, own):
        either = [generator.choice(cell, per_gender) for cell in cells]
        parts.append(np.where(generator.random(per_gender) < chance, either[1], either[0]))
    men = np.repeat([False, True], per_gender)
    seed = int(generator.integers(2**31))
    found = gaps(np.concatenate(parts)[None], men, n_resamples=resamples, seed=seed).over([0])
    return not _holds(found.ends(NOMINAL), 0.0)


def _holds(ends: tuple[float | None, float | None], value: float) -> bool:
    low, high = ends
    return low is not None and high is not None and low <= value <= high


def _near(row: Row, name: str, wanted: float, tolerance: float) -> bool:
    inside = number(row, "low") <= wanted <= number(row, "high")
    return inside or abs(number(row, name) - wanted) <= tolerance

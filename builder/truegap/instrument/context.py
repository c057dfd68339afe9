"""Context gap and background swap: do they give the planted shares of mixtures?"""

from __future__ import annotations

from truegap.instrument.evidence import Evidence
from truegap.instrument.plan import READERS
from truegap.instrument.records import Line, Row, number

SHARE_MARGIN = 0.02
SWAP_MARGIN = 0.02


def share(evidence: Evidence) -> Line:
    """The share of a gap that stays with the person removed is the planted one."""
    rows: list[Row] = []
    for reader, shares in READERS.items():
        found = evidence.answers(reader).context()
        made = {name: each * evidence.gap(name, "original") for name, each in shares.items()}
        planted = sum(value for name, value in made.items() if name != "person") / sum(made.values())
        row: Row = {"reader": reader, "share": found.share, "low": found.share_low, "high": found.share_high}
        row |= {"planted": planted, "gap": found.gap, "inside": _inside(planted, found.share_low, found.share_high)}
        rows.append(row)
    off = max(abs(number(row, "share") - number(row, "planted")) for row in rows)
    return Line(
        key="context",
        claim="The context's share of the gap is the planted one: 0 for what reads the person, 1 for what reads the "
        "context, between them for mixtures.",
        tolerance=f"the planted share is in the interval, or at most {SHARE_MARGIN} outside",
        holds=all(row["inside"] == "yes" for row in rows),
        found=f"Measured shares are at most {off:.3f} from the planted ones.",
        rows=rows,
    )


def swap(evidence: Evidence) -> Line:
    """A background of the other gender less one of the same moves the gap by what was planted."""
    rows: list[Row] = []
    for reader in READERS:
        found = evidence.answers(reader).swap()
        arms = [evidence.gap(reader, f"background-swap-{arm}") for arm in ("cross", "same")]
        row: Row = {"reader": reader, "difference": found.difference, "low": found.difference_low}
        row |= {"high": found.difference_high, "planted": arms[0] - arms[1]}
        rows.append(
            row | {"inside": _inside(arms[0] - arms[1], found.difference_low, found.difference_high, SWAP_MARGIN)}
        )
    off = max(abs(number(row, "difference") - number(row, "planted")) for row in rows)
    return Line(
        key="swap",
        claim="A background of the other gender, less one of the same, moves the gap by what the donors' pictures say.",
        tolerance=f"the planted difference is in the interval, or at most {SWAP_MARGIN} outside",
        holds=all(row["inside"] == "yes" for row in rows),
        found=f"Measured differences are at most {off:.3f} from the planted ones.",
        rows=rows,
    )


def _inside(planted: float, low: float | None, high: float | None, margin: float = SHARE_MARGIN) -> str:
    return "yes" if low is not None and high is not None and low - margin <= planted <= high + margin else "no"

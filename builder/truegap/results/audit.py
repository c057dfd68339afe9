"""Published figures checked against each other: what follows from what is printed, and what does not."""

from __future__ import annotations

from pathlib import Path

from truegap.results import (
    audit_clip_cda,
    audit_genderbias_vl,
    audit_genderbias_vl_files,
    audit_spurious,
    audit_visogender,
)
from truegap.results.audit_finding import Cell, Finding, Verdict

__all__ = ["Cell", "Finding", "Verdict", "audit"]


def audit(genderbias_vl: Path | None = None) -> tuple[Finding, ...]:
    """Every finding on the published tables, paper by paper.

    Rounding is taken as it is: a value printed with two decimals may be anything within half a hundredth, and what is
    made of such values lies in the interval that follows.

    Args:
        genderbias_vl: The repository of the authors of GenderBias-VL; with it Table 1 is recomputed from their files.

    Returns:
        The findings; what the repository settles is replaced where it is given.

    Raises:
        UserError: The repository is not one, or a file in it is broken.
    """
    found = list(audit_genderbias_vl.findings(repository=genderbias_vl is not None))
    if genderbias_vl is not None:
        found += audit_genderbias_vl_files.findings(genderbias_vl)
    return (
        *audit_spurious.findings(),
        *audit_visogender.findings(),
        *found,
        *audit_clip_cda.findings(),
    )

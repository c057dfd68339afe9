"""`truegap audit`: do the published figures follow from each other?"""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from truegap.results.audit import Cell, Finding

SHOWN = 12
"""Cells that are shown below a figure."""

_HELP = """Check published figures against each other: which follow from what is printed, and which do not.

Rounding is no excuse and no fault: a printed value may be anything that rounds to it. With the repository of the
authors of GenderBias-VL, the 225 numbers of its Table 1 are recomputed from the result files in it; a part of it is
enough for a part of them. Sources are the tables of `truegap.results.published`.

Examples:

  truegap audit

  truegap audit --cells --json

  truegap audit --genderbias-vl ~/GenderBias-VL
"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("audit", help=_HELP)(audit)


def audit(
    genderbias_vl: Annotated[Path | None, typer.Option(help="The authors' repository, on this disk.")] = None,
    cells: Annotated[
        bool, typer.Option("--cells", help="Show every cell that does not follow, not the first.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print every figure and cell as JSON.")] = False,
) -> None:
    """See `_HELP`."""
    import dataclasses
    import json

    from truegap.results.audit import Verdict
    from truegap.results.audit import audit as run

    findings = run(genderbias_vl)
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(each) for each in findings], indent=1))
        return
    paper = ""
    for each in findings:
        if each.paper.key != paper:
            paper = each.paper.key
            where = f", {each.paper.url}" if each.paper.url else ""
            typer.echo(f"{typer.style(paper, bold=True)}: {each.paper.title}{where}\n")
        _print(each, limit=None if cells else SHOWN)
    follow, fail, unchecked = (sum(each.verdict is verdict for each in findings) for verdict in Verdict)
    typer.echo(f"{len(findings)} figures: {follow} follow, {fail} do not, {unchecked} cannot be checked")


def _print(finding: Finding, limit: int | None) -> None:
    """What is printed, what comes out, from where; below it the numbers that are not as printed."""
    colour = {"follows": "green", "does not follow": "red", "cannot be checked": "yellow"}[finding.verdict]
    verdict = finding.verdict.upper()
    heading = _wrapped(f"{verdict}  {finding.figure}", "  ", " " * 6)
    typer.echo(heading.replace(verdict, typer.style(verdict, fg=colour), 1))
    for name, text in (
        ("printed", finding.printed),
        ("comes out", finding.found),
        ("note", finding.note),
        ("source", ", ".join(finding.sources)),
    ):
        if text:
            typer.echo(_wrapped(text, f"    {name:<11}", " " * 15))
    # Where models keep their order nothing is wrong: the claim is about the others.
    if finding.verdict == "does not follow":
        for cell in finding.failing[:limit]:
            typer.echo(_wrapped(f"{cell.where}: printed {cell.printed}{_value(cell)}", " " * 6, " " * 8))
        if limit is not None and len(finding.failing) > limit:
            typer.echo(f"      and {len(finding.failing) - limit} more (--cells shows them)")
    typer.echo("")


def _wrapped(text: str, first: str, other: str) -> str:
    width = min(max(shutil.get_terminal_size().columns, 60), 120)
    return textwrap.fill(text, width, initial_indent=first, subsequent_indent=other, break_on_hyphens=False)


def _value(cell: Cell) -> str:
    if cell.value is None:
        return ""
    if cell.low is None or cell.high is None or cell.low == cell.high:
        return f", comes out as {cell.value:.4g}"
    return f", comes out as {cell.value:.4g} ({cell.low:.4g} to {cell.high:.4g})"

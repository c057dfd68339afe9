"""`truegap audit`: do the published figures follow from each other?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from truegap.results.audit import Cell, Finding

SHOWN = 12
"""Cells that are shown below a figure."""

_HELP = """Check published figures against each other: which follow from what is printed, and which do not.

Rounding is no excuse and no fault: a printed value may be anything that rounds to it. With the repository of the
authors of GenderBias-VL, the 225 numbers of its Table 1 are recomputed from the result files in it.

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
    _print(findings)
    _print_cells(findings, limit=None if cells else SHOWN)
    follow, fail, unchecked = (sum(each.verdict is verdict for each in findings) for verdict in Verdict)
    typer.echo(f"{len(findings)} figures: {follow} follow, {fail} do not, {unchecked} cannot be checked")


def _print(findings: tuple[Finding, ...]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    colours = {"follows": "green", "does not follow": "red", "cannot be checked": "yellow"}
    table = Table("figure", "printed", "what comes out", "verdict", box=box.SIMPLE_HEAD, pad_edge=False)
    paper = ""
    for each in findings:
        if each.paper.key != paper:
            paper = each.paper.key
            table.add_section()
            table.add_row(f"[bold]{paper}[/bold]")
        found = f"{each.found}\n[dim]{each.note}[/dim]" if each.note else each.found
        table.add_row(each.figure, each.printed, found, f"[{colours[each.verdict]}]{each.verdict}[/]")
    Console().print(table)


def _print_cells(findings: tuple[Finding, ...], limit: int | None) -> None:
    for each in findings:
        failing = each.failing
        # Where models keep their order nothing is wrong: the claim is about the others.
        if not failing or each.verdict != "does not follow":
            continue
        typer.echo(f"{each.figure} ({each.paper.key}), not as printed:")
        for cell in failing[:limit]:
            typer.echo(f"  {cell.where}: printed {cell.printed}{_value(cell)}")
        if limit is not None and len(failing) > limit:
            typer.echo(f"  and {len(failing) - limit} more (--cells shows them)")
        typer.echo("")


def _value(cell: Cell) -> str:
    if cell.value is None:
        return ""
    if cell.low is None or cell.high is None or cell.low == cell.high:
        return f", comes out as {cell.value:.4g}"
    return f", comes out as {cell.value:.4g} ({cell.low:.4g} to {cell.high:.4g})"

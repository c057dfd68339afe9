"""`truegap check-instrument`: does the instrument find what was planted, and nothing else?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truegap.cli.progress import progress

if TYPE_CHECKING:
    from truegap.instrument import Check

_HELP = """Measure planted truth with the instrument: reference models of known behaviour on drawn pictures.

Readers of the person, the background, an object, the colour cast or the brightness, and mixtures, are evaluated like
any model at several correlations of these features with the label. Bias, changes, context gap, background swap, false
alarms, coverage and power are held against what was planted; a page shows what holds and what does not, such as what a
perturbation fails to remove. No download. An interrupted check goes on with the same command and
the same code.

Examples:

  truegap check-instrument

  truegap check-instrument --profile lite --out /tmp/check

  truegap check-instrument --json --workers 4
"""


_VERDICTS = {True: ("holds", "green"), False: ("does not hold", "yellow"), None: ("not measured", "white")}


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("check-instrument", help=_HELP)(check_instrument)


def check_instrument(
    out: Annotated[Path, typer.Option(help="Where benchmarks, runs, the result and its page go.")] = Path("instrument"),
    profile: Annotated[
        str, typer.Option(help="full (some minutes), or lite (fewer pictures, a minute or two).")
    ] = "full",
    seed: Annotated[int, typer.Option(min=0, help="Another seed, other pictures.")] = 0,
    workers: Annotated[int | None, typer.Option(help="Processes; by default one per core.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every line and figure as JSON.")] = False,
) -> None:
    """See `_HELP`."""
    from truegap.instrument import check_instrument as run
    from truegap.instrument import profile as named
    from truegap.report.instrument import write_instrument_report

    found = run(out, named(profile), seed=seed, workers=workers, progress=progress)
    page = write_instrument_report(found, out)
    if as_json:
        typer.echo(found.model_dump_json())
        return
    _print(found, page)


def _print(found: Check, page: Path) -> None:
    for line in found.lines:
        said, colour = _VERDICTS[line.holds]
        verdict = typer.style(f"{said:<13}", fg=colour)
        typer.echo(f"{verdict}  {line.key:<11} {line.found}")
    failing = ", ".join(line.key for line in found.failing)
    told = f"; not: {failing}" if failing else ""
    typer.echo(f"\n{len(found.holding)} of {len(found.lines)} lines hold{told}")
    typer.echo(f"The figures: {page}\n({found.seconds:.0f} s)")

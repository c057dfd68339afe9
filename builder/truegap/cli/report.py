"""`truegap report`: runs become a page to read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_HELP = """Write a report of one or several runs: index.html (one file, works offline) and report.md.

Each bias stands beside its sensitivity and the noise floor. A folder of runs stands for all runs in it.

Examples:

  truegap report runs/my-clip-coco-gender-1a2b3c4d --out report

  truegap report runs --out report
"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("report", help=_HELP)(report)


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders that hold some.")],
    out: Annotated[Path, typer.Option(help="The folder of the report.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the paths and findings as JSON.")] = False,
) -> None:
    """See `_HELP`."""
    import json

    from truegap.report import findings, write_report
    from truegap.results.runs import find_runs, read_run
    from truegap.results.show import plain

    found = [read_run(folder) for folder in find_runs(runs)]
    html, markdown = write_report(found, out)
    if as_json:
        verdicts = {run.record.run_id: {each.feature: each.verdict for each in findings(run.scores)} for run in found}
        typer.echo(json.dumps({"html": str(html), "markdown": str(markdown), "verdicts": verdicts}, indent=1))
        return
    for run in found:
        relies = [each.feature.value for each in findings(run.scores) if each.verdict == "reliance"]
        said = f"reliance on {', '.join(relies)}" if relies else "no clear reliance"
        typer.echo(f"{plain(run.record.model.name)}: {said}")
    typer.echo(f"report of {len(found)} {'run' if len(found) == 1 else 'runs'}: {html} and {markdown}")

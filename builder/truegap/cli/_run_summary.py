"""What `truegap evaluate` prints of a run."""

from __future__ import annotations

from pathlib import Path

import typer


def summarise(folder: Path, *, as_json: bool) -> None:
    """Prints a run's scores."""
    from truegap.figures.findings import main_changes, main_contrasts
    from truegap.figures.labels import blind
    from truegap.report.controls import control_findings
    from truegap.results.runs import read_run
    from truegap.schema import CONTROLS

    run = read_run(folder)
    if as_json:
        typer.echo(run.scores.summary.model_dump_json(indent=1))
        return
    record, summary = run.record, run.scores.summary
    typer.echo(f"{record.model.name} on {record.benchmark.name} {record.benchmark.version}")
    spans = f"{'95 % interval':>20}"
    typer.echo(f"{'':<24}{summary.metric:>16}{spans}{'delta %':>10}{spans}{'beyond its control %':>24}{spans}")
    changes = main_changes(run.scores)
    beyond = {each.config: each for each in main_contrasts(run.scores) if each.against in CONTROLS}
    for each in run.scores.scores:
        if (each.metric, each.scope) != (summary.metric, "all"):
            continue
        line = f"{each.config:<24}{_number(each.value):>16}{_interval(each.ci_low, each.ci_high):>20}"
        if change := changes.get(each.config):
            line += f"{_number(change.delta, 1):>10}{_interval(change.delta_low, change.delta_high, 1):>20}"
            line += f"  ({change.reason})" if change.reason else ""
        if pair := beyond.get(each.config):
            line += (
                f"{_number(pair.delta_beyond, 1):>24}{_interval(pair.delta_beyond_low, pair.delta_beyond_high, 1):>20}"
            )
        typer.echo(line)
    typer.echo(f"expected of a model that knows nothing of gender: {blind(summary.metric, summary.null)}")
    typer.echo(
        f"mean delta over the perturbations: {_number(summary.mean_delta, 1)} % "
        f"{_interval(summary.mean_delta_low, summary.mean_delta_high, 1)}; noise floor: control "
        f"{_number(summary.floor, 1)} %, control-hsv {_number(summary.floor_hsv, 1)} %"
    )
    for said in control_findings(run.scores):
        typer.echo(f"{said.config}: {said.text}")
    for note in record.notes:
        typer.echo(f"note: {note}")
    typer.echo(f"run: {folder}\nnext: truegap report {folder} --out report; truegap leaderboard submit {folder}")


def _number(value: float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _interval(low: float | None, high: float | None, digits: int = 4) -> str:
    return "" if low is None or high is None else f"[{low:.{digits}f}, {high:.{digits}f}]"

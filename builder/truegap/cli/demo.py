"""`truegap demo`: the whole line on a benchmark whose truth is planted, with no download."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truegap.cli.progress import progress

if TYPE_CHECKING:
    from truegap.report import Finding
    from truegap.results.runs import Run

IMAGES = 240
RHO = {"background": 0.9}
RESAMPLES = 300

_HELP = """Show the whole line in a few minutes, with no download.

Draws a benchmark whose truth is planted (the background is correlated with the label, the rest is not), perturbs
it, fits three small models (one reads the person, one the background, one both), scores them, and writes a report
and three leaderboard rows. An interrupted demo goes on with the same command.

Examples:

  truegap demo

  truegap demo --out /tmp/demo
"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("demo", help=_HELP)(demo)


def demo(
    out: Annotated[Path, typer.Option(help="Where everything goes.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Another seed, another benchmark.")] = 0,
) -> None:
    """See `_HELP`."""
    from truegap.models.quiet import quiet_transformers

    started = time.monotonic()
    with quiet_transformers():
        benchmark = _benchmark(out / "benchmark", seed)
        models = _models(out / "models", seed)
        runs = [_run(name, folder, benchmark, out) for name, folder in models.items()]
    _finish(runs, out)
    typer.echo(f"({time.monotonic() - started:.0f} s)")


def _benchmark(folder: Path, seed: int) -> Path:
    from truegap.build import Plan, Workspace
    from truegap.cli._built import run
    from truegap.sources import load_benchmark
    from truegap.synthetic.selection import selection

    typer.echo(
        f"1  a benchmark of {IMAGES} drawn pictures; the background is correlated with the label "
        f"(rho {RHO['background']}), nothing else is"
    )
    chosen = selection(IMAGES, seed=seed, rho=RHO)
    workspace = Workspace(Plan("synthetic", load_benchmark("synthetic").version, chosen, seed=seed), folder)
    if not workspace.finished:
        run(workspace, None)
    return folder


def _models(folder: Path, seed: int) -> dict[str, Path]:
    from truegap.synthetic.models import fit_demo_models

    typer.echo("2  three small CLIP models: one reads the person, one the background, one both")
    total = 100
    with progress("fitting", total) as advance:
        shown = 0

        def tell(_doing: str, share: float) -> None:
            nonlocal shown
            # Every stage counts from 0; the bar only ever moves on.
            steps = max(int(share * total) - shown, 0)
            shown += steps
            advance(steps)

        return fit_demo_models(folder, seed=seed, progress=tell)


def _run(name: str, folder: Path, benchmark: Path, out: Path) -> Path:
    from truegap.hub.benchmark import open_benchmark
    from truegap.models import EmbeddingCache, load_dual_encoder
    from truegap.protocols.retrieval import Retrieval
    from truegap.protocols.run import run_protocol
    from truegap.schema import CONFIGS

    typer.echo(f"3  {name}: 211 prompts, fifteen configs, five balanced draws")
    with EmbeddingCache(out / "cache" / "embeddings.sqlite") as cache:
        run, _ = run_protocol(
            open_benchmark(str(benchmark)),
            load_dual_encoder(str(folder), device="cpu"),
            Retrieval(n_resamples=RESAMPLES),
            folder=out / "runs" / name,
            configs=CONFIGS,
            progress=progress,
            cache=cache,
            command=["truegap", "demo"],
        )
    return run


def _finish(folders: list[Path], out: Path) -> None:
    from truegap.leaderboard import LocalStore, row_of
    from truegap.leaderboard.details import details_of, keep_details
    from truegap.report import write_report
    from truegap.results.runs import read_run

    runs = [read_run(folder) for folder in folders]
    store = LocalStore(out / "leaderboard")
    for run in runs:
        receipt = store.submit(row_of(run), run.scores)
        if receipt.added:
            keep_details(store, receipt.row.key, details_of(run))
    page, _ = write_report(runs, out / "report")
    typer.echo("\n" + "\n".join(found(run) for run in runs))
    typer.echo(f"\n{conclusion(runs)}")
    command = _command()
    typer.echo(
        f"\nThe table and what it means: {page}\n"
        "Next:\n"
        f"  {command} leaderboard serve --store {out / 'leaderboard'}\n"
        f"  {command} build coco-gender --source /data/coco --out coco-gender\n"
        f"  {command} evaluate --model openai/clip-vit-base-patch32 --benchmark coco-gender"
    )


def _command() -> str:
    """What to type for `truegap` here: in a checkout it is not on the path."""
    return "truegap" if shutil.which("truegap") else sys.argv[0]


def found(run: Run) -> str:
    """What a run says of blurring the background, in the words that its intervals allow."""
    name, summary = run.record.model.name, run.scores.summary
    change = next(
        each
        for each in run.scores.changes
        if (each.metric, each.scope, each.config) == (summary.metric, "all", "background-strong")
    )
    moved = f"{_number(change.original)} -> {_number(change.perturbed)} with the background blurred"
    return f"{name:<18}{summary.metric} {moved} (chance: {_number(summary.null)})\n{'':<18}{_background(run).text}"


def conclusion(runs: list[Run]) -> str:
    """One sentence over all models."""
    verdicts = {run.record.model.name: _background(run).verdict == "reliance" for run in runs}
    made, rest = ([name for name, relies in verdicts.items() if relies is which] for which in (True, False))
    sentences = [f"The background makes part of the gap of {' and '.join(made)}."] if made else []
    sentences += [f"Nothing shows that it makes any of the gap of {' and '.join(rest)}."] if rest else []
    return " ".join(sentences)


def _background(run: Run) -> Finding:
    from truegap.report import findings

    return next(each for each in findings(run.scores) if each.feature == "background")


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"

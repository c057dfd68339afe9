"""`truegap evaluate`: a model answers a benchmark; its scores and their sensitivity become a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from truegap.cli.progress import progress

_HELP = """Run a model over every config of a benchmark.

The run is a folder: answers.parquet, scores.json, run.json. Embeddings are kept in a cache, so an interrupted
run goes on, and a second one computes nothing that is known.

Examples:

  truegap evaluate --model openai/clip-vit-base-patch32 --benchmark coco-gender

  truegap evaluate --model open_clip:ViT-B-32/laion2b_s34b_b79k --benchmark ORG/coco-gender@v1.0.0 --k 1000

  truegap evaluate --model ./my-clip --benchmark coco-gender --prompts my-prompts.txt --configs background-strong
"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("evaluate", help=_HELP)(evaluate)


def evaluate(
    model: Annotated[
        str, typer.Option(help="Hub id, folder, open_clip:ARCHITECTURE/TAG, hf-hub:ORG/NAME, or a plug-in.")
    ],
    benchmark: Annotated[str, typer.Option(help="A built folder, or ORG/NAME[@TAG] on the Hub.")],
    protocol: Annotated[str, typer.Option(help="What is asked: retrieval.")] = "retrieval",
    configs: Annotated[str, typer.Option(help="Some configs, separated by commas; all by default.")] = "",
    prompts: Annotated[
        str, typer.Option(help="Prompt sets or files (.txt, .json), separated by commas.")
    ] = "adjectives-r1,occupations-r1",
    k: Annotated[str, typer.Option(help="Cuts, separated by commas; by default 1000, or n // 10 for small sets.")] = "",
    draws: Annotated[int, typer.Option(help="Balanced draws.")] = 5,
    seed: Annotated[int, typer.Option(help="Of draws and resamples.")] = 0,
    target: Annotated[str, typer.Option(help="Desired shares: uniform or dataset.")] = "uniform",
    empty: Annotated[str, typer.Option(help="Skew of a gender absent from the top k: clip or neg_inf.")] = "clip",
    aggregate: Annotated[
        str, typer.Option(help="Delta over draws: mean_of_ratios or ratio_of_means.")
    ] = "mean_of_ratios",
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples; 0 for no intervals.")] = 1000,
    out: Annotated[Path | None, typer.Option(help="The run's folder; by default under runs/.")] = None,
    limit: Annotated[int | None, typer.Option(help="A balanced sample of so many images.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    dtype: Annotated[str, typer.Option(help="float32, bfloat16 or float16.")] = "float32",
    batch_size: Annotated[int, typer.Option(help="Images per forward pass; changes no result.")] = 64,
    model_revision: Annotated[str | None, typer.Option(help="Branch, tag or commit of a model on the Hub.")] = None,
    unsafe_weights: Annotated[bool, typer.Option(help="Also read pickled weights, from a source you trust.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """See `_HELP`."""
    from truegap.build import choose_configs
    from truegap.errors import UserError
    from truegap.hub.benchmark import open_benchmark
    from truegap.models import EmbeddingCache, load_model
    from truegap.protocols.prompts import load_prompts
    from truegap.protocols.retrieval import Retrieval
    from truegap.protocols.run import run_retrieval

    if protocol != "retrieval":
        raise UserError(f"unknown protocol {protocol!r}: use retrieval")
    if draws < 1 or resamples < 0 or batch_size < 1:
        raise UserError("--draws and --batch-size must be at least 1, --resamples at least 0")
    chosen = Retrieval(
        prompts=tuple(load_prompts(name) for name in _split(prompts)),
        k=_cuts(k),
        draws=draws,
        seed=seed,
        target=target,
        empty=empty,
        aggregate=aggregate,
        n_resamples=resamples,
    )
    wanted = choose_configs(_split(configs))
    opened = open_benchmark(benchmark, ["original", *wanted] if configs else None)
    encoder = load_model(model, revision=model_revision, device=device, dtype=dtype, unsafe_weights=unsafe_weights)
    with EmbeddingCache() as cache:
        folder, known = run_retrieval(
            opened,
            encoder,
            chosen,
            folder=out,
            configs=[config for config in wanted if config in opened.manifest.configs],
            progress=progress,
            cache=cache,
            limit=limit,
            batch_size=batch_size,
            command=["truegap", *sys.argv[1:]],
        )
    if known:
        typer.echo(f"{folder} is finished already: nothing to do", err=True)
    summarise(folder, as_json=as_json)


def summarise(folder: Path, *, as_json: bool) -> None:
    """Prints a run's scores."""
    from truegap.results.runs import read_run

    run = read_run(folder)
    if as_json:
        typer.echo(run.scores.summary.model_dump_json(indent=1))
        return
    record, summary = run.record, run.scores.summary
    typer.echo(f"{record.model.name} on {record.benchmark.name} {record.benchmark.version}")
    typer.echo(f"{'':<20}{summary.metric:>16}{'95 % interval':>20}{'delta %':>10}{'95 % interval':>20}{'change':>10}")
    changes = {c.config: c for c in run.scores.changes if (c.metric, c.scope) == (summary.metric, "all")}
    for each in run.scores.scores:
        if (each.metric, each.scope) != (summary.metric, "all"):
            continue
        line = f"{each.config:<20}{_number(each.value):>16}{_interval(each.ci_low, each.ci_high):>20}"
        if change := changes.get(each.config):
            line += f"{_number(change.delta, 1):>10}{_interval(change.delta_low, change.delta_high, 1):>20}"
            line += f"{_number(change.signed_change):>10}" + (f"  ({change.reason})" if change.reason else "")
        typer.echo(line)
    typer.echo(f"expected of a ranking that knows nothing of gender: {_number(summary.null)}")
    typer.echo(
        f"mean delta over the perturbations: {_number(summary.mean_delta, 1)} % "
        f"{_interval(summary.mean_delta_low, summary.mean_delta_high, 1)}; noise floor: control "
        f"{_number(summary.floor, 1)} %, control-hsv {_number(summary.floor_hsv, 1)} %"
    )
    for note in record.notes:
        typer.echo(f"note: {note}")
    typer.echo(f"run: {folder}\nnext: truegap report {folder} --out report; truegap leaderboard submit {folder}")


def _number(value: float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _interval(low: float | None, high: float | None, digits: int = 4) -> str:
    return "" if low is None or high is None else f"[{low:.{digits}f}, {high:.{digits}f}]"


def _split(names: str) -> list[str]:
    return [each.strip() for each in names.split(",") if each.strip()]


def _cuts(k: str) -> tuple[int, ...] | None:
    from truegap.errors import UserError

    try:
        return tuple(int(each) for each in _split(k)) or None
    except ValueError:
        raise UserError(f"--k {k}: give whole numbers separated by commas, such as 5,10") from None

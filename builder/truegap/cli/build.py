"""`truegap build`: an archive on disk becomes a perturbed benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from truegap.cli.progress import progress
from truegap.schema import Selection

SYNTHETIC_IMAGES = 1000
"""Images of a synthetic benchmark where no limit is given."""

_HELP = """Build a benchmark: original, two controls and twelve perturbed configs, as a Hub dataset in a folder.

An interrupted build goes on with the same command.

Examples:

  truegap build coco-gender --source /data/coco --out coco-gender

  truegap build coco-gender --source /data/coco --out coco-gender --split val --single-person uniform_presentation

  truegap build synthetic --out synthetic --limit 400 --rho background=0.9
"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("build", help=_HELP)(build)


def build(
    name: Annotated[str, typer.Argument(help="Which benchmark: coco-gender or synthetic.")],
    out: Annotated[Path, typer.Option(help="The folder that becomes the dataset.")],
    source: Annotated[Path | None, typer.Option(help="The archive as it unpacks.")] = None,
    encoding: Annotated[str, typer.Option(help="How perturbed images are stored: jpeg, png or webp.")] = "jpeg",
    configs: Annotated[str, typer.Option(help="Some of the fifteen configs, separated by commas.")] = "",
    limit: Annotated[int | None, typer.Option(help="A balanced sample of so many images.")] = None,
    seed: Annotated[int, typer.Option(help="Part of every random key.")] = 0,
    workers: Annotated[int | None, typer.Option(help="Processes; default: all cores.")] = None,
    split: Annotated[str | None, typer.Option(help="coco-gender: train, val, or auto for all that is there.")] = None,
    labels: Annotated[str | None, typer.Option(help="coco-gender: captions or annotators.")] = None,
    labels_file: Annotated[Path | None, typer.Option(help="coco-gender: the annotators' CSV.")] = None,
    single_person: Annotated[
        str | None, typer.Option(help="coco-gender: annotated, coco_person, uniform_presentation, or several by comma.")
    ] = None,
    rho: Annotated[
        str, typer.Option(help="synthetic: correlation of features with the label, such as background=0.9,object=0.5.")
    ] = "",
    strong_gap: Annotated[int, typer.Option(help="Shifts up to this size are excluded at strong: 10 or 20.")] = 10,
    count: Annotated[
        str, typer.Option(help="Rounding of the share of objects: unbiased, ceil, bernoulli.")
    ] = "unbiased",
    shape: Annotated[str, typer.Option(help="What is blacked out of an object: box or mask.")] = "box",
    protect_person: Annotated[bool, typer.Option(help="Whether persons stay when an object is blacked out.")] = True,
    bleed: Annotated[str, typer.Option(help="Background: paste (a halo stays) or none.")] = "paste",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """See `_HELP`."""
    from truegap.build import Plan, Workspace, choose_configs
    from truegap.build import limit as limited
    from truegap.build.images import Encoder
    from truegap.errors import UserError
    from truegap.perturbations import Options
    from truegap.sources import load_benchmark

    chosen = {"split": split, "labels": labels, "labels_file": labels_file, "single_person": single_person}
    try:
        options = Options(strong_gap, count, shape, protect_person, bleed)  # type: ignore[arg-type]
        encoder = Encoder(encoding)  # type: ignore[arg-type]
    except ValueError as error:
        raise UserError(str(error)) from None
    selection = (
        _synthetic(limit, seed, rho)
        if name == "synthetic"
        else _read(name, source, {key: value for key, value in chosen.items() if value is not None})
    )
    spec = load_benchmark(name)
    if limit is not None and name != "synthetic":
        selection = limited(selection, limit, benchmark=name, seed=seed)
    published = {"woman": spec.published.woman, "man": spec.published.man} if spec.published else None
    names = [each.strip() for each in configs.split(",") if each.strip()]
    plan = Plan(name, spec.version, selection, choose_configs(names), seed, options, encoder, published)
    workspace = Workspace(plan, out)
    if workspace.finished:
        typer.echo(f"{out} is finished already: nothing to do", err=True)
    else:
        run(workspace, workers)
    summarise(out, as_json=as_json)


def run(workspace: Any, workers: int | None) -> None:
    """Builds what is not built yet, with progress."""
    from truegap.build import build_shard
    from truegap.engine import check_workers, cores, run_tasks

    workers = check_workers(cores() if workers is None else workers)
    tasks = workspace.tasks()
    images = sum(len(task.examples) for task in tasks)
    with workspace.opened(), progress(f"building {workspace.plan.benchmark}", images) as advance:
        for done in run_tasks(build_shard, tasks, workers=workers):
            advance(len(done["image_id"]) + len(done["dropped"]))
        workspace.finish()


def summarise(out: Path, *, as_json: bool) -> None:
    """Prints what a built benchmark holds."""
    import json

    from truegap.build import read_manifest
    from truegap.sources import load_benchmark

    manifest = read_manifest(out)
    if as_json:
        typer.echo(manifest.model_dump_json(exclude={"rows", "dropped"}))
        return
    typer.echo(f"{manifest.benchmark} {manifest.version} in {out}")
    typer.echo(f"{'step':<52}{'women':>8}{'men':>8}{'other':>8}")
    for step in manifest.steps:
        typer.echo(f"{step.name:<52}{step.woman:>8}{step.man:>8}{step.other:>8}")
    for reason, ids in manifest.dropped.items():
        typer.echo(f"left out: {len(ids)} ({reason})")
    for reason, number in manifest.repairs.items():
        typer.echo(f"mended: {number} ({reason})")
    typer.echo(f"{'config':<20}{'images':>8}{'women':>8}{'men':>8}  sha256")
    for name, config in manifest.configs.items():
        share = (
            f"  objects blacked out: {config.objects_drawn} of {config.objects}" if config.objects is not None else ""
        )
        typer.echo(f"{name:<20}{config.rows:>8}{config.woman:>8}{config.man:>8}  {config.sha256[:12]}{share}")
    if published := load_benchmark(manifest.benchmark).published:
        last = manifest.steps[-1]
        typer.echo(f"size: {published.distance(last.woman, last.man)}")
    typer.echo(f'next: load_dataset({json.dumps(str(out))}, "background-strong", split="test")')


def _read(name: str, source: Path | None, options: dict[str, Any]) -> Selection:
    from truegap.errors import UserError
    from truegap.sources import NAMES, read

    if name not in NAMES:
        raise UserError(f"unknown benchmark {name!r}: use one of {', '.join((*NAMES, 'synthetic'))}")
    if source is None:
        raise UserError(f"{name} needs --source DIR: the folder in which its archive was unpacked")
    return read(name, source, **options)


def _synthetic(count: int | None, seed: int, rho: str) -> Selection:
    from truegap.errors import UserError
    from truegap.synthetic.selection import selection

    try:
        pairs = [each.split("=", 1) for each in rho.split(",") if each.strip()]
        planted = {feature.strip(): float(strength) for feature, strength in pairs}
    except ValueError:
        raise UserError(f"--rho {rho}: give features and numbers, such as background=0.9,object=0.5") from None
    return selection(count or SYNTHETIC_IMAGES, seed=seed, rho=planted)

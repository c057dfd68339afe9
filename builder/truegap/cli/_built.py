"""The steps of a build that several commands take: finding regions, building with progress, and what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import typer

from truegap.cli.progress import progress
from truegap.schema import Selection


def found_regions(
    selection: Selection, finders: Any, workers: int | None, engine: Literal["local", "ray"] = "local"
) -> Selection:
    """The selection with the persons and objects that the finders find, kept in the user's cache for the next build."""
    from functools import partial

    from truegap.build.regions import with_regions
    from truegap.engine import run_tasks
    from truegap.resources import cache_folder

    if finders.is_plain:
        return selection
    spread = partial(run_tasks, workers=workers, engine=engine)
    with progress("finding persons and objects", len(selection.examples)) as advance:
        return with_regions(selection, finders, spread, cache=cache_folder() / "regions.sqlite", advance=advance)


def run(workspace: Any, workers: int | None, engine: Literal["local", "ray"] = "local") -> None:
    """Builds what is not built yet, with progress."""
    from truegap.build import build_shard
    from truegap.engine import run_tasks

    tasks = workspace.tasks()
    images = sum(len(task.examples) for task in tasks)
    with workspace.opened(), progress(f"building {workspace.plan.benchmark}", images) as advance:
        for done in run_tasks(build_shard, tasks, workers=workers, engine=engine, folder=workspace.shards):
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
    if list(manifest.splits) != ["test"]:
        typer.echo(f"{'split':<52}{'women':>8}{'men':>8}")
        for split, part in manifest.splits.items():
            typer.echo(f"{split:<52}{part.woman:>8}{part.man:>8}")
    for reason, ids in manifest.dropped.items():
        typer.echo(f"left out: {len(ids)} ({reason})")
    for reason, number in manifest.repairs.items():
        typer.echo(f"noted: {number} ({reason})")
    typer.echo(f"{'config':<20}{'images':>8}{'women':>8}{'men':>8}  sha256")
    for name, config in manifest.configs.items():
        share = (
            f"  objects blacked out: {config.objects_drawn} of {config.objects}" if config.objects is not None else ""
        )
        typer.echo(f"{name:<20}{config.rows:>8}{config.woman:>8}{config.man:>8}  {config.sha256[:12]}{share}")
    if any(config.objects == 0 for config in manifest.configs.values()):
        typer.echo(
            "note: no image has an object, so the object configs change nothing: find some with --regions DETECTOR"
        )
    if published := load_benchmark(manifest.benchmark).published:
        last = manifest.steps[-1]
        typer.echo(f"size: {published.distance(last.woman, last.man)}")
    shown = "background-strong" if "background-strong" in manifest.configs else next(iter(manifest.configs))
    last_split = next(reversed(manifest.splits))
    typer.echo(f'next: load_dataset({json.dumps(str(out))}, "{shown}", split="{last_split}")')

"""`truegap build`: an archive on disk becomes a perturbed benchmark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from truegap.cli.progress import progress
from truegap.schema import Selection

SYNTHETIC_IMAGES = 1000
"""Images of a synthetic benchmark where no limit is given."""

_HELP = """Build a benchmark: original, two controls and twelve perturbed configs, as a Hub dataset in a folder.

An interrupted build goes on with the same command.

Examples:

  truegap build coco-gender --source /data/coco --out coco-gender

  truegap build coco-gender --source /data/coco --out coco-gender --split val2017 --single-person uniform_presentation

  truegap build genderbias-vl --source xiaoyisong/GenderBias-VL -o pairs_file=occ_merge_filter_sim.csv \\
    --configs original,control --out vl

  truegap build synthetic --out synthetic --limit 400 --rho background=0.9

  truegap build coco-gender --source /data/coco --out coco-lvis --detections detic.json --vocabulary lvis_v1_val.json

  truegap build synthetic --out grabcut --limit 100 --regions grabcut
"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("build", help=_HELP)(build)


WITH_RECIPE = {
    "name",
    "out",
    "source",
    "recipe",
    "configs",
    "workers",
    "engine",
    "split",
    "labels",
    "labels_file",
    "single_person",
    "option",
    "as_json",
}
"""Parameters that mean something beside `--recipe`: the others are in the recipe."""


def build(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Which benchmark, such as coco-gender, facet, miap, folder, synthetic.")],
    out: Annotated[Path, typer.Option(help="The folder that becomes the dataset.")],
    source: Annotated[
        Path | None, typer.Option(help="The archive as it unpacks; genderbias-vl: or ORG/NAME@REVISION on the Hub.")
    ] = None,
    recipe: Annotated[str | None, typer.Option(help="Repeat a published recipe: a folder, or ORG/NAME@TAG.")] = None,
    encoding: Annotated[str, typer.Option(help="How perturbed images are stored: jpeg, png or webp.")] = "jpeg",
    configs: Annotated[
        str, typer.Option(help="Some configs by comma; standard (the fifteen) and extra stand for several.")
    ] = "",
    limit: Annotated[
        int | None, typer.Option(help="A sample of so many images, balanced; every split keeps its share.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Part of every random key.")] = 0,
    publishable: Annotated[
        bool, typer.Option(help="Leave out images whose licence forbids publishing changed copies.")
    ] = False,
    workers: Annotated[int | None, typer.Option(help="Processes; default: all cores, or all of the cluster.")] = None,
    engine: Annotated[
        str,
        typer.Option(
            help="Where to build: local, or ray for an existing Ray cluster (RAY_ADDRESS, or the one of this machine); "
            "its machines share the folders of --source and --out."
        ),
    ] = "local",
    split: Annotated[
        str | None,
        typer.Option(help="Parts of the archive: coco-gender val2014, train2014 …; several by comma, or auto."),
    ] = None,
    labels: Annotated[str | None, typer.Option(help="Whose labels: coco-gender captions or annotators.")] = None,
    labels_file: Annotated[Path | None, typer.Option(help="coco-gender: the annotators' CSV.")] = None,
    single_person: Annotated[
        str | None,
        typer.Option(help="Which images show one person, by a named filter: annotated, coco_person, largest_box …"),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", help="An option of the source, as name=value; a wrong name lists them all."),
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
    regions: Annotated[
        str,
        typer.Option(
            help="Where persons and objects come from: annotations, box, grabcut, or detectors and segmenters of "
            "transformers (folder or org/name), several by comma. By default annotations, with grabcut for the masks "
            "of persons who have a box alone."
        ),
    ] = "",
    detections: Annotated[Path | None, typer.Option(help="Detections made elsewhere: COCO results as JSON.")] = None,
    vocabulary: Annotated[
        str | None,
        typer.Option(help="What open-vocabulary detectors look for: everyday, coco, or a file with one name per line."),
    ] = None,
    score_threshold: Annotated[
        float | None, typer.Option(help="Least score of a detection; default: the usual one of each detector.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """See `_HELP`."""
    from truegap.build import Plan, Workspace, choose_configs, marked, mended, read_manifest
    from truegap.build import limit as limited
    from truegap.build import publishable as allowed
    from truegap.build.images import Encoder
    from truegap.cli.recipe import build_from
    from truegap.engine import check_engine, check_workers
    from truegap.perturbations import Options
    from truegap.regions.finders import choose
    from truegap.sources import load_benchmark

    chosen_engine = check_engine(engine)
    if workers is not None:
        check_workers(workers)
    chosen = {"split": split, "labels": labels, "labels_file": labels_file, "single_person": single_person}
    chosen = {key: value for key, value in chosen.items() if value is not None}
    chosen |= _named(option or [], chosen)
    _refuse_strangers(name, {**chosen, "source": source} if name == "synthetic" else {"rho": rho})
    if name != "synthetic":
        _check_names(name, chosen)
    names = [each.strip() for each in configs.split(",") if each.strip()]
    if recipe is not None:
        _refuse_what_a_recipe_decides(context)
        wanted = choose_configs(names) if names else None
        build_from(recipe, name, source, out, configs=wanted, workers=workers, engine=chosen_engine, **chosen)
        summarise(out, as_json=as_json)
        return
    with _one_line():
        options = Options(strong_gap, count, shape, protect_person, bleed)  # type: ignore[arg-type]
        encoder = Encoder(encoding)  # type: ignore[arg-type]
    selection = _synthetic(limit, seed, rho) if name == "synthetic" else _read(name, source, chosen)
    spec = load_benchmark(name)
    if publishable:
        selection = allowed(selection, spec)
    if limit is not None and name != "synthetic":
        selection = limited(selection, limit, benchmark=name, seed=seed)
    finder = choose(
        regions or _default_regions(selection, detections),
        detections=detections,
        vocabulary=vocabulary,
        threshold=score_threshold,
        object_masks=options.shape == "mask",
    )
    wanted = choose_configs(names)
    selection = marked(found_regions(selection, finder, workers, chosen_engine), wanted)
    published = {"woman": spec.published.woman, "man": spec.published.man} if spec.published else None
    plan = Plan(name, spec.version, selection, wanted, seed, options, encoder, published)
    workspace = Workspace(plan, out)
    if workspace.finished:
        typer.echo(f"{out} is finished already: nothing to do; to build it anew, remove it", err=True)
    else:
        run(workspace, workers, chosen_engine)
    if usable := mended(plan, read_manifest(out)):
        typer.echo(
            f"left out as unreadable, but readable now: {len(usable)}, such as {usable[0]}; "
            f"to have them, remove {out} and build again",
            err=True,
        )
    summarise(out, as_json=as_json)


@contextmanager
def _one_line() -> Iterator[None]:
    """A wrong value of an option is the user's mistake."""
    from truegap.errors import UserError

    try:
        yield
    except ValueError as error:
        raise UserError(str(error)) from None


def _default_regions(selection: Selection, detections: Path | None) -> str:
    """Annotations; where a person has a box alone, GrabCut finds the mask: it needs no weights."""
    bare = any(person.mask is None for each in selection.examples for person in each.persons)
    return "annotations,grabcut" if bare and detections is None else ""


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


def _read(name: str, source: Path | None, options: dict[str, Any]) -> Selection:
    from truegap.cli.archive import archive
    from truegap.errors import UserError
    from truegap.sources import read

    if source is None:
        raise UserError(f"{name} needs --source DIR: the folder in which its archive was unpacked")
    files = archive(name, source)
    selection = read(name, files.folder, **options)
    if files.commit is None:
        return selection
    return replace(selection, options={**selection.options, "hub": f"{str(source).partition('@')[0]}@{files.commit}"})


def _named(options: list[str], chosen: Iterable[str]) -> dict[str, str]:
    """`name=value` texts as a dictionary; none of those that were chosen otherwise."""
    from truegap.errors import UserError

    if wrong := [each for each in options if "=" not in each]:
        raise UserError(f"--option {wrong[0]}: give name=value")
    pairs = [(name.strip().replace("-", "_"), value) for name, value in (each.split("=", 1) for each in options)]
    names = [*chosen, *(name for name, _ in pairs)]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UserError(f"--option {twice[0]} is given twice: choose one")
    return dict(pairs)


def _check_names(name: str, options: dict[str, Any]) -> None:
    """An option that the source does not have must not reach a function as some other argument."""
    from truegap.errors import UserError
    from truegap.sources import NAMES, source

    if name not in NAMES:
        raise UserError(f"unknown benchmark {name!r}: use one of {', '.join((*NAMES, 'synthetic'))}")
    known = source(name).options.model_fields
    if strange := [each for each in options if each not in known]:
        raise UserError(f"{name}: {strange[0]!r} is not known (options: {', '.join(known)})")


def _refuse_strangers(name: str, given: dict[str, Any]) -> None:
    """An option of another benchmark is a mistake, not something to pass over."""
    from truegap.errors import UserError

    if strange := [f"--{each.replace('_', '-')}" for each, value in given.items() if value]:
        raise UserError(f"{name} has no option {', '.join(strange)}: leave it out")


def _refuse_what_a_recipe_decides(context: typer.Context) -> None:
    """What the recipe's maker chose cannot be chosen again: the rows would be others."""
    from truegap.errors import UserError

    given = [
        each
        for each in context.params
        if (source := context.get_parameter_source(each)) and source.name == "COMMANDLINE"
    ]
    if strange := [f"--{each.replace('_', '-')}" for each in given if each not in WITH_RECIPE]:
        raise UserError(f"--recipe says itself what {', '.join(strange)} is: leave it out")


def _synthetic(count: int | None, seed: int, rho: str) -> Selection:
    from truegap.errors import UserError
    from truegap.synthetic.selection import selection

    try:
        pairs = [each.split("=", 1) for each in rho.split(",") if each.strip()]
        planted = {feature.strip(): float(strength) for feature, strength in pairs}
        if len(planted) < len(pairs):
            raise UserError(f"--rho {rho}: a feature is given twice: choose one")
    except ValueError:
        raise UserError(f"--rho {rho}: give features and numbers, such as background=0.9,object=0.5") from None
    return selection(SYNTHETIC_IMAGES if count is None else count, seed=seed, rho=planted)

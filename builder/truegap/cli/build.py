"""`truegap build`: an archive on disk becomes a perturbed benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truegap.cli._build_options import (
    check_names,
    default_regions,
    named,
    one_line,
    read_archive,
    refuse_strangers,
    refuse_what_a_recipe_decides,
    synthetic,
)
from truegap.cli._built import found_regions, run, summarise

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
    chosen |= named(option or [], chosen)
    refuse_strangers(name, {**chosen, "source": source} if name == "synthetic" else {"rho": rho})
    if name != "synthetic":
        check_names(name, chosen)
    names = [each.strip() for each in configs.split(",") if each.strip()]
    if recipe is not None:
        refuse_what_a_recipe_decides(context)
        wanted = choose_configs(names) if names else None
        build_from(recipe, name, source, out, configs=wanted, workers=workers, engine=chosen_engine, **chosen)
        summarise(out, as_json=as_json)
        return
    with one_line():
        options = Options(strong_gap, count, shape, protect_person, bleed)  # type: ignore[arg-type]
        encoder = Encoder(encoding)  # type: ignore[arg-type]
    selection = synthetic(limit, seed, rho) if name == "synthetic" else read_archive(name, source, chosen)
    spec = load_benchmark(name)
    if publishable:
        selection = allowed(selection, spec)
    if limit is not None and name != "synthetic":
        selection = limited(selection, limit, benchmark=name, seed=seed)
    finder = choose(
        regions or default_regions(selection, detections),
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

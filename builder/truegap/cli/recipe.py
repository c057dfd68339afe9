"""`truegap recipe`: ids and what was drawn, of a benchmark that may not be redistributed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from truegap.cli.progress import progress

if TYPE_CHECKING:
    from truegap.engine import Engine

_HELP = """Make the recipe of a built benchmark: ids and what was drawn, no images and no labels.

Persons and objects that were detected are in it; boxes and masks of the source's annotation are not, nor are masks
that were drawn inside of annotated boxes.

Whoever has the source builds the same from it with `truegap build NAME --recipe RECIPE --source DIR --out DIR`.

Examples:

  truegap recipe facet --out facet-recipe

  truegap recipe coco-sam --out coco-recipe --masks all
"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("recipe", help=_HELP)(recipe)


def recipe(
    built: Annotated[Path, typer.Argument(help="A built benchmark.")],
    out: Annotated[Path, typer.Option(help="The folder that becomes the recipe.")],
    masks: Annotated[
        str,
        typer.Option(
            help="found: masks made from the pixels alone. all: also those drawn inside of annotated boxes, which tell "
            "the boxes: only where the source's terms allow it."
        ),
    ] = "found",
    workers: Annotated[int | None, typer.Option(help="Processes; default: all cores.")] = None,
) -> None:
    """See `_HELP`."""
    from functools import partial

    from truegap.build import read_manifest
    from truegap.build.recipe import Masks
    from truegap.build.recipe_write import write_recipe
    from truegap.engine import run_tasks
    from truegap.errors import UserError

    if masks not in get_args(Masks):
        raise UserError(f"--masks {masks}: use one of {', '.join(get_args(Masks))}")
    manifest = read_manifest(built)
    images = len(manifest.configs) * len(manifest.rows.image_id)
    with progress("looking at the images", images) as advance:
        made = write_recipe(
            built,
            out,
            masks=masks,  # type: ignore[arg-type]  # checked above
            run=partial(run_tasks, workers=workers),
            advance=advance,
        )
    terms = made.terms
    regions = len(made.regions())
    typer.echo(f"{out}: {terms.images} images, {len(terms.configs)} configs, {regions} regions, no image and no label")
    if terms.masks_to_draw:
        typer.echo(
            f"{terms.masks_to_draw} masks were drawn inside of annotated boxes, which they tell: they are left out and "
            "drawn again from each copy (--masks all publishes them)"
        )


def build_from(
    spec: str,
    name: str,
    source: Path | None,
    out: Path,
    *,
    configs: tuple[str, ...] | None,
    workers: int | None,
    engine: Engine,
    **options: Any,
) -> None:
    """`truegap build NAME --recipe …`: says what is missing or differs."""
    from functools import partial

    from truegap.cli.archive import archive
    from truegap.engine import run_tasks
    from truegap.errors import UserError
    from truegap.hub.load import open_recipe, prepared, read_source, rebuild

    spread = partial(run_tasks, engine=engine)
    opened = open_recipe(spec, configs)
    if opened.terms.benchmark != name:
        raise UserError(f"{spec} is a recipe of {opened.terms.benchmark}, not of {name}")
    if source is None:
        raise UserError(f"--recipe needs --source DIR: the folder in which {name}'s archive was unpacked")
    selection = read_source(opened, archive(name, source).folder, **options)
    if opened.terms.masks_to_draw:
        with progress("drawing masks", opened.terms.images) as advance:
            plan, others = prepared(opened, selection, configs=configs, spread=spread, workers=workers, advance=advance)
    else:
        plan, others = prepared(opened, selection, configs=configs, spread=spread, workers=workers)
    with progress(f"building {name}", len(plan.selection.examples)) as advance:
        found = rebuild(opened, plan, out, others=others, spread=spread, workers=workers, advance=advance)
    count = sum(each.identical for each in found.configs.values())
    # Standard output belongs to the summary, which may be JSON.
    for line in found.lines() or [f"all {count} images are those of the recipe, to the byte, and so are all labels"]:
        typer.echo(line, err=True)

"""`truegap recipe`: ids and what was drawn, of a benchmark that may not be redistributed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from truegap.cli.progress import progress

_HELP = """Make the recipe of a built benchmark: ids and what was drawn, no images and no labels.

Whoever has the source builds the same from it with `truegap build NAME --recipe RECIPE --source DIR --out DIR`.

Example:

  truegap recipe facet --out facet-recipe
"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("recipe", help=_HELP)(recipe)


def recipe(
    built: Annotated[Path, typer.Argument(help="A built benchmark.")],
    out: Annotated[Path, typer.Option(help="The folder that becomes the recipe.")],
) -> None:
    """See `_HELP`."""
    from truegap.build.recipe import write_recipe

    made = write_recipe(built, out)
    typer.echo(f"{out}: {len(made.image_id)} images, {len(made.configs)} configs, no image and no label")


def build_from(
    spec: str, name: str, source: Path | None, out: Path, *, configs: tuple[str, ...] | None, **options: Any
) -> None:
    """`truegap build NAME --recipe …`: says what is missing or differs."""
    from truegap.errors import UserError
    from truegap.hub.load import describe, open_recipe, read_source, rebuild

    workers = options.pop("workers")
    opened = open_recipe(spec)
    if opened.benchmark != name:
        raise UserError(f"{spec} is a recipe of {opened.benchmark}, not of {name}")
    if source is None:
        raise UserError(f"--recipe needs --source DIR: the folder in which {name}'s archive was unpacked")
    selection = read_source(opened, source, **options)
    with progress(f"building {name}", len(opened.image_id)) as advance:
        found = rebuild(opened, selection, out, configs=configs, workers=workers, advance=advance)
    lines = describe(found)
    for line in lines or [f"all {found.same} images are those of the recipe, to the byte"]:
        typer.echo(line)

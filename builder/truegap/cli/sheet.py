"""`truegap sheet`: a picture of a built benchmark, images by configs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_HELP = """Draw the contact sheet of a built benchmark: a row per image, a column per config, as one PNG.

Under each picture stands what was drawn for it, at the foot licence and author of every image.

Examples:

  truegap sheet coco-gender --out sheet.png

  truegap sheet coco-gender --out two.png --sample-id 386912 --sample-id 85329

  truegap sheet coco-gender --out strong.png --images 4 --width 1200 --configs original,color-strong,background-strong
"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("sheet", help=_HELP)(sheet)


def sheet(
    benchmark: Annotated[str, typer.Argument(help="A built benchmark: its folder, or ORG/NAME@TAG on the Hub.")],
    out: Annotated[Path, typer.Option(help="The picture to write: a PNG.")],
    images: Annotated[int, typer.Option(help="How many images, spread over the benchmark.", min=1)] = 6,
    sample_id: Annotated[list[str] | None, typer.Option(help="This image instead; may be given again.")] = None,
    configs: Annotated[
        str, typer.Option(help="Some configs by comma; standard (the fifteen) and extra stand for several.")
    ] = "",
    width: Annotated[int | None, typer.Option(help="Of the picture in pixels; default: 160 per config.", min=1)] = None,
) -> None:
    """See `_HELP`."""
    from truegap.build import choose_configs
    from truegap.errors import UserError
    from truegap.files.atomic import written_aside
    from truegap.hub.benchmark import open_benchmark
    from truegap.report.contact_sheet import choose_places, contact_sheet

    if out.suffix.lower() != ".png":
        raise UserError(f"--out {out}: give a name that ends in .png")
    names = [each.strip() for each in configs.split(",") if each.strip()]
    opened = open_benchmark(benchmark, choose_configs(names) if names else None)
    shown = choose_configs(names) if names else tuple(opened.manifest.configs)
    opened.fetch(shown)
    places = choose_places(opened.manifest, images, sample_id or ())
    picture = contact_sheet(opened.folder, opened.manifest, shown, places, width=width)
    out.parent.mkdir(parents=True, exist_ok=True)
    with written_aside(out) as aside:
        picture.save(aside, "PNG", optimize=True)
    typer.echo(f"{out}: {len(places)} images x {len(shown)} configs, {picture.width} x {picture.height} pixels")

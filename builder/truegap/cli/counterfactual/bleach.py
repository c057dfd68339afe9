"""`truegap counterfactual bleach`: the colour is taken from the person."""

from __future__ import annotations

from typing import Annotated

import typer

from truegap.cli.counterfactual._shared import Detections, Folder, Json, Least, complete, kept, persons_in, say
from truegap.cli.progress import progress

_HELP = """Take the colour from the person in every base image, for questions whose gender is in the words alone.

Examples:

  truegap counterfactual bleach new --detections found.json

  truegap counterfactual bleach new --regions PekingU/rtdetr_r50vd,facebook/sam2.1-hiera-small
"""


def register(app: typer.Typer) -> None:
    """Adds the step."""
    app.command("bleach", help=_HELP)(bleach)


def bleach(
    folder: Folder,
    detections: Detections = None,
    regions: Annotated[
        str, typer.Option(help="Detectors, and who makes masks: grabcut or a segmenter; by comma.")
    ] = "grabcut",
    score_threshold: Least = None,
    workers: Annotated[int | None, typer.Option(help="Processes for detection; default: all cores.")] = None,
    as_json: Json = False,
) -> None:
    """See `_HELP`."""
    from truegap.counterfactual.bleach import bleach_pictures
    from truegap.counterfactual.files import note
    from truegap.errors import UserError

    if detections is None and regions == "grabcut":
        raise UserError("give --detections FILE, or a detector in --regions: somebody must say where the person is")
    pictures = kept(folder, complete(folder))
    persons, finders = persons_in(folder, pictures, ("base",), regions, detections, score_threshold, workers)
    with progress("bleaching", len(pictures)) as advance:
        made, left_out = bleach_pictures(folder, pictures, persons, advance)
    note(folder, "bleach", {"persons": finders, "left_out": dict(left_out)})
    there = len(pictures) - made - left_out.total()
    counts = {"bleached": made, "there already": there}
    say({**counts, **{f"left out: {reason}": times for reason, times in left_out.items()}}, as_json=as_json)

"""`truegap counterfactual items`: the question files."""

from __future__ import annotations

from typing import Annotated

import typer

from truegap.cli.counterfactual._shared import Folder, Json, Names, complete, kept, say

_HELP = """Write the question files: three contexts, base and counterfactual, both orders of the options.

Example:

  truegap counterfactual items new --names gendered.csv
"""


def register(app: typer.Typer) -> None:
    """Adds the step."""
    app.command("items", help=_HELP)(items)


def items(
    folder: Folder,
    contexts: Annotated[str, typer.Option(help="Some of VL, V and L, separated by commas.")] = "VL,V,L",
    most: Annotated[int, typer.Option(help="Image pairs per gender and occupation.")] = 20,
    names: Names = None,
    unfiltered: Annotated[bool, typer.Option("--unfiltered", help="Ask about images that no filter has seen.")] = False,
    as_json: Json = False,
) -> None:
    """See `_HELP`."""
    from truegap.counterfactual import read_names, read_pairs, write_items
    from truegap.counterfactual.files import note, read_record
    from truegap.counterfactual.items import CONTEXTS
    from truegap.counterfactual.pair_files import FILE
    from truegap.errors import UserError

    chosen = [each.strip() for each in contexts.split(",") if each.strip()]
    if not chosen or not set(chosen) <= set(CONTEXTS):
        raise UserError(f"--contexts {contexts}: use some of {', '.join(CONTEXTS)}")
    if most < 1:
        raise UserError(f"--most {most}: give at least 1")
    pictures = complete(folder)
    if not unfiltered:
        if "filter" not in read_record(folder):
            raise UserError(f"{folder}: its images have not been filtered; run the filter step, or say --unfiltered")
        pictures = kept(folder, pictures)
    called = read_names(names) if names else read_names()
    context = [each for each in CONTEXTS if each in chosen]
    counts = write_items(folder, read_pairs(folder / FILE), pictures, called, contexts=context, most=most)
    note(folder, "items", {"names": called, "most": most, "filtered": not unfiltered, "counts": counts})
    say(counts, as_json=as_json)

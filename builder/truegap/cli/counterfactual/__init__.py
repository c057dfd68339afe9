"""`truegap counterfactual`: another GenderBias-VL, from a table of occupations to questions; one module per step."""

from __future__ import annotations

import typer

from truegap.cli.counterfactual import bleach, filter, generate, items, pairs  # noqa: A004  # the verb's own name

_HELP = """Build a counterfactual benchmark in the manner of GenderBias-VL, step by step in one folder.

Every step can be interrupted and goes on with the same command. Images made elsewhere may be put into the folder as
base/Flight_attendant/female/female_Flight_attendant_0.png and counterfactual/... of the same name.

Examples, in their order:

  truegap counterfactual generate new --occupations us.csv --text-to-image ORG/NAME --editor ORG/NAME

  truegap counterfactual pairs new --occupations us.csv --model openai/clip-vit-base-patch32 --known known.csv

  truegap counterfactual filter new --detections found.json --gender-model openai/clip-vit-base-patch32

  truegap counterfactual bleach new --detections found.json

  truegap counterfactual items new

  truegap build genderbias-vl --source new --out new-benchmark --configs original,control
"""


def register(app: typer.Typer) -> None:
    """Adds the verb and its steps."""
    verbs = typer.Typer(help=_HELP, no_args_is_help=True)
    for step in (generate, pairs, filter, bleach, items):
        step.register(verbs)
    app.add_typer(verbs, name="counterfactual")

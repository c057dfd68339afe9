"""The options of `truegap build`: which go together, and what they say of the images."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from truegap.schema import Selection

SYNTHETIC_IMAGES = 1000
"""Images of a synthetic benchmark where no limit is given."""

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


@contextmanager
def one_line() -> Iterator[None]:
    """A wrong value of an option is the user's mistake."""
    from truegap.errors import UserError

    try:
        yield
    except ValueError as error:
        raise UserError(str(error)) from None


def named(options: list[str], chosen: Iterable[str]) -> dict[str, str]:
    """`name=value` texts as a dictionary; none of those that were chosen otherwise."""
    from truegap.errors import UserError

    if wrong := [each for each in options if "=" not in each]:
        raise UserError(f"--option {wrong[0]}: give name=value")
    pairs = [(name.strip().replace("-", "_"), value) for name, value in (each.split("=", 1) for each in options)]
    names = [*chosen, *(name for name, _ in pairs)]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UserError(f"--option {twice[0]} is given twice: choose one")
    return dict(pairs)


def check_names(name: str, options: dict[str, Any]) -> None:
    """An option that the source does not have must not reach a function as some other argument."""
    from truegap.errors import UserError
    from truegap.sources import NAMES, source

    if name not in NAMES:
        raise UserError(f"unknown benchmark {name!r}: use one of {', '.join((*NAMES, 'synthetic'))}")
    known = source(name).options.model_fields
    if strange := [each for each in options if each not in known]:
        raise UserError(f"{name}: {strange[0]!r} is not known (options: {', '.join(known)})")


def refuse_strangers(name: str, given: dict[str, Any]) -> None:
    """An option of another benchmark is a mistake, not something to pass over."""
    from truegap.errors import UserError

    if strange := [f"--{each.replace('_', '-')}" for each, value in given.items() if value]:
        raise UserError(f"{name} has no option {', '.join(strange)}: leave it out")


def refuse_what_a_recipe_decides(context: typer.Context) -> None:
    """What the recipe's maker chose cannot be chosen again: the rows would be others."""
    from truegap.errors import UserError

    given = [
        each
        for each in context.params
        if (source := context.get_parameter_source(each)) and source.name == "COMMANDLINE"
    ]
    if strange := [f"--{each.replace('_', '-')}" for each in given if each not in WITH_RECIPE]:
        raise UserError(f"--recipe says itself what {', '.join(strange)} is: leave it out")


def default_regions(selection: Selection, detections: Path | None) -> str:
    """Annotations; where a person has a box alone, GrabCut finds the mask: it needs no weights."""
    from truegap.build.plan import telling

    bare = any(person.mask is None for each in telling(selection.examples) for person in each.persons)
    return "annotations,grabcut" if bare and detections is None else ""


def read_archive(name: str, source: Path | None, options: dict[str, Any]) -> Selection:
    """The images of an archive; of one on the Hub, its commit is among the options that the build records."""
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


def synthetic(count: int | None, seed: int, rho: str) -> Selection:
    """Images of the generator, with the correlations that `--rho` plants."""
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

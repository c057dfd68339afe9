"""What the steps of `truegap counterfactual` share: their common options, the folder's images, and what is printed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

Folder = Annotated[Path, typer.Argument(help="The folder that becomes the benchmark.")]
Occupations = Annotated[Path, typer.Option(help="CSV: occupation, women (in per cent).")]
Names = Annotated[
    Path | None, typer.Option(help="CSV: occupation, woman, man; what it is called with each. Default: Waitress.")
]
Detections = Annotated[Path | None, typer.Option(help="Detections made elsewhere: COCO results as JSON.")]
Least = Annotated[float | None, typer.Option(help="Least score of a detection.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def complete(folder: Path) -> list[Any]:
    """Base images with a counterfactual, of the occupations in the table of pairs."""
    from truegap.counterfactual import find_pictures, read_pairs
    from truegap.counterfactual.pair_files import FILE
    from truegap.errors import UserError

    occupations = [name for pair in read_pairs(folder / FILE) for name in pair.names]
    edited = set(find_pictures(folder, occupations, "counterfactual"))
    found = [each for each in find_pictures(folder, occupations) if each in edited]
    if not found:
        raise UserError(f"{folder}: no base image with its counterfactual, of the occupations in {FILE}")
    return found


def kept(folder: Path, pictures: list[Any]) -> list[Any]:
    """Those that the filter step kept; all if it did not run."""
    from truegap.counterfactual.files import read_record

    record = read_record(folder).get("filter")
    return pictures if record is None else [each for each in pictures if each.name in set(record["kept"])]


def persons_in(
    folder: Path,
    pictures: list[Any],
    kinds: Any,
    regions: str,
    detections: Path | None,
    threshold: float | None,
    workers: int | None,
) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Who is in the images, and who said so, for the record."""
    from truegap.cli._built import found_regions
    from truegap.counterfactual.persons import as_selection, persons_of
    from truegap.regions.finders import choose

    finders = choose(regions, detections=detections, threshold=threshold)
    selection = found_regions(as_selection(folder, pictures, kinds), finders, workers)
    return persons_of(selection), finders.record()


def say(counts: Mapping[str, Any], *, as_json: bool) -> None:
    """Prints what a step did, for a person or a program."""
    import json

    if as_json:
        typer.echo(json.dumps(counts, indent=1))
        return
    for name, value in counts.items():
        typer.echo(f"{name}: {value:.4g}" if isinstance(value, float) else f"{name}: {value}")

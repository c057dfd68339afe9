"""`truegap compare`: two models on the same images."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from truegap.results.compare_runs import Comparison

_HELP = """Compare two runs on the same question: the difference of their main score, with a paired interval.

Both models are scored on the same resampled images, so the comparison is sharper than two intervals side by side.

Examples:

  truegap compare runs/clip runs/siglip

  truegap compare runs/clip runs/siglip --config background-strong --json
"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("compare", help=_HELP)(compare)


def compare(
    run_a: Annotated[Path, typer.Argument(help="A run's folder.")],
    run_b: Annotated[Path, typer.Argument(help="Another, of the same benchmark, protocol and options.")],
    config: Annotated[str, typer.Option(help="Which config of the benchmark.")] = "original",
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples.", min=1)] = 1000,
    seed: Annotated[int, typer.Option(help="Of the resamples.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """See `_HELP`."""
    import dataclasses
    import json

    from truegap.results.compare_runs import compare_runs
    from truegap.results.runs import read_run

    found = compare_runs(read_run(run_a), read_run(run_b), config=config, n_resamples=resamples, seed=seed)
    typer.echo(json.dumps(dataclasses.asdict(found), indent=1) if as_json else verdict(found))


def verdict(found: Comparison) -> str:
    """One line: who has less bias, by how much, and whether that is clear."""
    from truegap.results.show import interval, number, signed

    values = f"{found.first} {number(found.first_value)}, {found.second} {number(found.second_value)}"
    span = interval(found.ci_low, found.ci_high, signed)
    unclear = "they differ, but neither clearly has less bias" if found.clear else "no clear difference"
    said = f"less bias: {found.less}" if found.less else unclear
    return (
        f"{said} ({found.metric} on {found.config}: {values}; difference {signed(found.difference)} {span}, "
        f"p = {found.p_value:.2g}, {found.images} images)"
    )

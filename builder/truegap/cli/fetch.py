"""`truegap fetch`: the photographs of a benchmark that is published as addresses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from truegap.cli.progress import progress

if TYPE_CHECKING:
    from truegap.sources.download import Report

SHOWN = 20
"""Missing photographs that are shown one by one."""

_AGAIN = 1
"""Exit status where another run may get more."""

_HELP = """Fetch the photographs of a benchmark whose authors publish addresses: visogender.

What is there is not fetched again, so the same command goes on after an interruption, and tries again what failed for
now. Dead links are left alone, unless with --retry-dead. OUT/images/downloads.jsonl records every address: the file
with its SHA-256, or why there is none. Then `truegap build visogender --source OUT --configs original,control`;
nobody is marked in the photographs, so other configs need --regions DETECTOR too.

Exit status: 0 where every photograph is there or its link is dead, 1 where another run may get more, 2 for a mistake.

Examples:

  truegap fetch visogender --source /data/visogender

  truegap fetch visogender --source tables --out /data/visogender --per-host 4 --json
"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("fetch", help=_HELP)(fetch)


def fetch(
    name: Annotated[str, typer.Argument(help="Which benchmark: visogender.")],
    source: Annotated[Path, typer.Option(help="The folder with the authors' tables of addresses.")],
    out: Annotated[
        Path | None, typer.Option(help="Where photographs and tables go together; default: --source.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Downloads at a time.")] = 8,
    per_host: Annotated[int, typer.Option(help="Downloads at a time from one host.")] = 2,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for each part of an answer.")] = 20.0,
    attempts: Annotated[int, typer.Option(help="Tries per address, where another may help.")] = 4,
    max_bytes: Annotated[int, typer.Option(help="Largest image file.")] = 32_000_000,
    max_pixels: Annotated[int | None, typer.Option(help="Largest image.")] = None,
    retry_dead: Annotated[bool, typer.Option("--retry-dead", help="Try dead links again.")] = False,
    private_host: Annotated[
        list[str] | None, typer.Option(help="A host that may be in a private network; every other such one is refused.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what came of every address as JSON.")] = False,
) -> None:
    """See `_HELP`."""
    from truegap.errors import UserError
    from truegap.sources import visogender

    if name != visogender.SOURCE.name:
        raise UserError(f"{name} is not published as addresses: truegap fetch knows {visogender.SOURCE.name}")
    options = _options(
        workers=workers,
        per_host=per_host,
        timeout=timeout,
        attempts=attempts,
        max_bytes=max_bytes,
        max_pixels=max_pixels,
        retry_dead=retry_dead,
        private_hosts=tuple(private_host or ()),
    )
    target = out or source
    urls = visogender.addresses(source)
    with progress(f"fetching {name}", len(urls)) as advance:
        report = visogender.fetch(source, options, advance, out=target)
    summarise(report, target, as_json=as_json)
    if any(not outcome.lasting for outcome in report.missing):
        raise typer.Exit(_AGAIN)


def summarise(report: Report, out: Path, *, as_json: bool) -> None:
    """Prints what was fetched, and what could not be had and why."""
    from truegap.sources.download_record import MANIFEST
    from truegap.sources.visogender import IMAGES

    if as_json:
        _print_json(report)
        return
    typer.echo(report.counts())
    if missing := report.missing:
        _print_missing(report)
        if len(missing) > SHOWN:
            typer.echo(f"and {len(missing) - SHOWN} more: --json, or {out / IMAGES / MANIFEST}")
    if any(not outcome.lasting for outcome in report.missing):
        typer.echo("what failed for now is tried again by the same command")
    if report.fetched or report.kept:
        # Nobody is marked in the photographs: the other configs need a detector.
        typer.echo(f"next: truegap build visogender --source {out} --out visogender --configs original,control")


def _options(**given: Any) -> Any:
    from pydantic import ValidationError

    from truegap.errors import UserError
    from truegap.sources.download_options import DownloadOptions

    try:
        return DownloadOptions(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        raise UserError(f"--{str(problem['loc'][0]).replace('_', '-')} {problem['input']}: {problem['msg']}") from None


def _print_json(report: Report) -> None:
    import json
    from dataclasses import asdict

    outcomes = [asdict(outcome) for outcome in report.outcomes.values()]
    counts = {"fetched": report.fetched, "kept": report.kept, "missing": len(report.missing)}
    reasons = [{"reason": reason, "images": number, "dead": dead} for reason, dead, number in report.reasons()]
    typer.echo(json.dumps({**counts, "reasons": reasons, "outcomes": outcomes}, indent=1))


def _print_missing(report: Report) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from truegap.results.show import plain

    console = Console()
    table = Table("missing", "why", "", box=box.SIMPLE_HEAD, pad_edge=False)
    for reason, dead, number in report.reasons():
        table.add_row(str(number), escape(plain(reason)), "dead" if dead else "for now")
    console.print(table)
    table = Table("image", "why", "address", box=box.SIMPLE_HEAD, pad_edge=False)
    for outcome in report.missing[:SHOWN]:
        table.add_row(*(escape(plain(text)) for text in (outcome.id, outcome.reason, outcome.url)))
    console.print(table)

"""Puts the verbs together; modules of heavy rooms are imported by the verb that needs them, when it runs."""

from __future__ import annotations

import typer

from truegap import __version__
from truegap.cli import (
    audit,
    build,
    check_instrument,
    compare,
    counterfactual,
    demo,
    doctor,
    evaluate,
    fetch,
    leaderboard,
    models,
    publish,
    recipe,
    recognition,
    report,
    score,
    sheet,
    spurious,
)

app = typer.Typer(
    name="truegap",
    help="Is the measured gender gap of a vision-language model true, or is it made by the background?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for verb in (
    demo,
    fetch,
    build,
    sheet,
    recipe,
    publish,
    evaluate,
    spurious,
    models,
    score,
    compare,
    report,
    leaderboard,
    audit,
    check_instrument,
    recognition,
    counterfactual,
    doctor,
):
    verb.register(app)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"truegap {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=_version, is_eager=True),
) -> None:
    pass

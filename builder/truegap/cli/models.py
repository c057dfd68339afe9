"""`truegap models`: every model that the papers name, and how it is had."""

from __future__ import annotations

from typing import Annotated

import typer

_HELP = """List the models that the four papers name: what --model takes for each, or why not and what to do instead.

Any other dual encoder or generative model of open_clip or transformers works as well, and so does any
OpenAI-compatible server (endpoint:URL#MODEL), a plug-in, or a baseline (baseline:random).

Examples:

  truegap models

  truegap models --paper visogender

  truegap models --json
"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("models", help=_HELP)(models)


def models(
    paper: Annotated[str | None, typer.Option(help="Of one paper alone, such as hirota.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the page of the documentation.")] = False,
) -> None:
    """See `_HELP`."""
    import json

    from truegap.errors import UserError
    from truegap.models.named_models import of_paper, page

    if as_json and as_markdown:
        raise UserError("--json and --markdown: choose one")
    named = of_paper(paper)
    if as_json:
        typer.echo(json.dumps([each.model_dump() for each in named], indent=1, ensure_ascii=False))
        return
    if as_markdown:
        typer.echo(page(named), nl=False)
        return
    last = None
    for each in named:
        if each.paper != last:
            last = each.paper
            typer.echo(f"{last}\n  {'model':<20}{'kind':<14}{'how':<14}--model")
        where = each.spec or each.note
        typer.echo(f"  {each.name:<20}{each.kind:<14}{each.way:<14}{where}")
    if paper is None:
        _others()


def _others() -> None:
    """Models that no paper names: baselines, reference models, plug-ins."""
    from truegap.models.baselines import FORMS
    from truegap.models.registry import plugins
    from truegap.synthetic.reference import FORMS as REFERENCES

    typer.echo("baselines")
    for form, what in FORMS.items():
        typer.echo(f"  {f'baseline:{form}':<34}{what}")
    typer.echo("reference models, for synthetic pictures alone")
    for form, what in REFERENCES.items():
        typer.echo(f"  {f'reference:{form}':<34}{what}")
    if found := plugins():
        typer.echo("plug-ins that are installed")
        for name, entry in sorted(found.items()):
            typer.echo(f"  {f'{name}:…':<34}{entry.value}")

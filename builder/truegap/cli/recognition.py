"""`truegap recognition`: do people still recognise gender in the perturbed pictures of a benchmark?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from truegap.recognition import RecognitionRecord

_GROUP = """Do people still recognise gender in the perturbed pictures of a benchmark?

Examples:

  truegap recognition serve coco-gender --answers answers

  truegap recognition score answers
"""
_SERVE = """Show perturbed pictures in a browser and keep what people answer: woman, man, or cannot tell.

A balanced sample of the benchmark's images is shown under each strong perturbation, to any number of people at once, to
each in an order of their own. Every answer is on the disk before the next picture comes: interrupt it at any time, and
the same command goes on. Anybody who reaches the address can answer under any name: it is this machine only unless
--host says otherwise.

Examples:

  truegap recognition serve coco-gender --answers answers

  truegap recognition serve ORG/coco-gender@v1.0.0 --answers answers --images 100 --configs object-strong
"""
_SCORE = """Print how often answers agree with the label, with Wilson's interval over images.

"Cannot tell" is disagreement, and is counted apart. Where several people, or one in several configs, answered on one
image, the interval takes it as one image.

Examples:

  truegap recognition score answers

  truegap recognition score answers --json
"""


def register(app: typer.Typer) -> None:
    """Adds the verb and what it can do."""
    verbs = typer.Typer(help=_GROUP, no_args_is_help=True)
    verbs.command("serve", help=_SERVE)(serve)
    verbs.command("score", help=_SCORE)(score)
    app.add_typer(verbs, name="recognition")


def serve(
    benchmark: Annotated[str, typer.Argument(help="A built folder, or ORG/NAME@TAG on the Hub.")],
    answers: Annotated[Path, typer.Option(help="The folder of answers; made if absent.")],
    images: Annotated[int | None, typer.Option(help="In the sample, half of each gender; 200 by default.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the sample and of the orders; 0 by default.")] = None,
    configs: Annotated[str | None, typer.Option(help="Separated by commas; by default the four strong ones.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 7860,
) -> None:
    """See `_SERVE`."""
    from truegap.cli.pages import check_gradio, check_port, load_page
    from truegap.hub.benchmark import open_benchmark
    from truegap.recognition import STRONG, AnswerFolder, Pictures, open_study
    from truegap.recognition.study import FILE, read_study

    check_gradio("the page of the human check")
    check_port(host, port)
    named = [each.strip() for each in configs.split(",") if each.strip()] if configs else None
    known = read_study(answers).configs if (answers / FILE).exists() else list(STRONG)
    opened = open_benchmark(benchmark, named or known)
    study = open_study(opened, answers, images=images, seed=seed, configs=named)
    pictures = Pictures(opened, study)
    app = load_page("recognition")
    said = f"{len(study.images)} images in {len(study.configs)} configs at http://{host}:{port} (Ctrl+C ends it)"
    page = app.build(app.Check(study, pictures, AnswerFolder(answers)))
    app.serve(page, host, port, ready=lambda: typer.echo(f"{said}\nthen: truegap recognition score {answers}"))


def score(
    answers: Annotated[Path, typer.Argument(help="The folder of answers.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """See `_SCORE`."""
    from truegap.recognition import AnswerFolder, agreement, read_study

    record = agreement(read_study(answers), AnswerFolder(answers).read())
    if as_json:
        typer.echo(record.model_dump_json(indent=1))
    else:
        _print(record)


def _print(record: RecognitionRecord) -> None:
    from truegap.results.show import count, interval, percent, plain

    typer.echo(f"{plain(record.benchmark, 60)} {plain(record.version, 20)}: {record.women} women, {record.men} men")
    head = (
        f"{'part':<28}{'answers':>8}{'images':>8}{'agree %':>9}{'95 % interval':>16}{'opposite':>10}{'cannot tell':>13}"
    )
    typer.echo(head)
    for each in record.agreements:
        part = ", ".join(filter(None, (each.config, each.gender))) or "all"
        ends = [None if end is None else 100 * end for end in (each.agreement, each.ci_low, each.ci_high)]
        line = f"{plain(part, 27):<28}{count(each.answers):>8}{count(each.images):>8}{percent(ends[0]):>9}"
        typer.echo(f"{line}{interval(ends[1], ends[2], percent):>16}{each.opposite:>10}{each.cannot_tell:>13}")
    for person in record.annotators:
        said = f"{person.answers} of {person.of} answered, {person.agree} agree, {person.cannot_tell} cannot tell"
        typer.echo(f"{plain(person.name, 40)}: {said}, {person.revised} answered again")
    for reason, number in record.skipped.items():
        typer.echo(f"not counted: {number} lines: {reason}", err=True)

"""`truegap spurious`: how much of gender each feature of a benchmark gives away."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from truegap.cli.progress import progress

if TYPE_CHECKING:
    from truegap.spurious import SpuriousRecord

_HELP = """Measure how much of gender each feature of a benchmark gives away: Acc_b.

Of every original image only one feature is kept (color: 8 x 8 patches; lighting: hue, saturation and value of 8 x 8
patches; object: the categories of the objects, an MLP reads them; background: the person blacked out), and a classifier
is trained to tell women from men: balanced, 8:1:1, stopped early, five seeds. Above 50 % the feature is correlated with
gender. With --model it is a linear probe on the image features of a dual encoder: what the feature gives away to it.

With --runs of the same benchmark, Pearson's r of Acc_b and delta over models and features, with a scatter. Runs of
other benchmarks or models are left out and counted.

Trainings and features are kept in a cache: an interrupted command goes on, and a second one computes nothing.

Examples:

  truegap spurious --benchmark coco-gender

  truegap spurious --benchmark coco-gender --backbone resnet50 --training frozen

  truegap spurious --benchmark synthetic --backbone test_resnet --no-pretrained --side 64 --training frozen --device cpu

  truegap spurious --benchmark coco-gender --model openai/clip-vit-base-patch32 --features background,whole

  truegap spurious --benchmark coco-gender --runs runs --out acc-b
"""

_BACKBONE, _TRAINING = "Backbone", "Training"
_OF_BACKBONES = ("backbone", "pretrained", "side", "training", "hidden")
_OF_MODELS = ("model_revision", "unsafe_weights")
_TRAININGS = ("finetuned", "frozen")
_LARGE = 5_000_000
"""Parameters that a CPU trains slowly."""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("spurious", help=_HELP)(spurious)


def spurious(
    context: typer.Context,
    benchmark: Annotated[str, typer.Option(help="A built folder, or ORG/NAME@TAG on the Hub.")],
    model: Annotated[str, typer.Option(help="A dual encoder as in evaluate: probe its frozen image features.")] = "",
    features: Annotated[
        str, typer.Option(help="Some of color, lighting, object, background, whole, separated by commas.")
    ] = "color,lighting,object,background",
    seeds: Annotated[int, typer.Option(help="Splits and trainings.", min=1, max=1000)] = 5,
    lighting: Annotated[str, typer.Option(help="hsv, or value: the brightness alone.")] = "hsv",
    removal: Annotated[str, typer.Option(help="How the person goes from the background: mask or box.")] = "mask",
    out: Annotated[Path | None, typer.Option(help="The result's folder; by default under runs/.")] = None,
    limit: Annotated[int | None, typer.Option(help="A balanced sample of so many images.")] = None,
    runs: Annotated[list[Path] | None, typer.Option(help="Runs of evaluate, or a folder of them; repeatable.")] = None,
    also: Annotated[
        list[Path] | None, typer.Option(help="Results of spurious on the runs' other benchmarks; repeatable.")
    ] = None,
    backbone: Annotated[
        str, typer.Option(help="A name in timm, or a folder that timm saved.", rich_help_panel=_BACKBONE)
    ] = "convnext_base",
    pretrained: Annotated[bool, typer.Option(help="With its weights, or random ones.", rich_help_panel=_BACKBONE)] = (
        True
    ),
    side: Annotated[
        int | None, typer.Option(help="Of its input in pixels; its own by default.", min=8, rich_help_panel=_BACKBONE)
    ] = None,
    training: Annotated[
        str,
        typer.Option(help="finetuned, or frozen: a linear probe on cached features.", rich_help_panel=_TRAINING),
    ] = "finetuned",
    hidden: Annotated[
        int, typer.Option(help="Units of the MLP that reads categories.", min=1, rich_help_panel=_TRAINING)
    ] = 128,
    epochs: Annotated[int | None, typer.Option(help="At most so many.", min=1, rich_help_panel=_TRAINING)] = None,
    patience: Annotated[
        int | None, typer.Option(help="Epochs without a better validation loss.", min=1, rich_help_panel=_TRAINING)
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Of AdamW.", min=1e-9, rich_help_panel=_TRAINING)] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Images per step of training.", min=2, rich_help_panel=_TRAINING)
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    dtype: Annotated[str, typer.Option(help="float32, bfloat16 or float16 (of frozen features only).")] = "float32",
    model_revision: Annotated[str | None, typer.Option(help="Branch, tag or commit of a model on the Hub.")] = None,
    unsafe_weights: Annotated[bool, typer.Option(help="Also read a model's pickled weights.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """See `_HELP`."""
    from truegap.errors import UserError
    from truegap.hub.benchmark import open_benchmark
    from truegap.models import EmbeddingCache
    from truegap.results.runs import find_runs, read_run
    from truegap.spurious import Conventions, Reader, check_counts, measure, read_spurious
    from truegap.spurious.associate import associate

    _refuse_foreign(context, model)
    conventions = Conventions(
        features=tuple(each.strip() for each in features.split(",") if each.strip()),
        seeds=seeds,
        lighting=cast("Any", lighting),
        removal=cast("Any", removal),
        epochs=epochs,
        patience=patience,
        learning_rate=learning_rate,
        batch_size=batch_size,
        limit=limit,
    )
    conventions.check()
    if training not in _TRAININGS:
        raise UserError(f"--training {training}: use one of {', '.join(_TRAININGS)}")
    if also and not runs:
        raise UserError("--also goes with --runs: without runs there is no change to set Acc_b against")
    evaluated = [read_run(folder) for folder in find_runs(runs)] if runs else []
    others = [read_spurious(folder) for folder in also or ()]
    opened = open_benchmark(benchmark, ["original"])
    check_counts(opened, limit)
    with EmbeddingCache() as cache:
        if model:
            from truegap.models import load_dual_encoder

            encoder = load_dual_encoder(
                model, revision=model_revision, device=device, dtype=dtype, unsafe_weights=unsafe_weights
            )
            reader = Reader(model, encoder, cache)
        else:
            from truegap.models.backbones import load_backbone

            network = load_backbone(backbone, pretrained=pretrained, side=side, device=device, dtype=dtype)
            reader = Reader(backbone, network, cache, finetuned=training == "finetuned", hidden=hidden)
            if reader.finetuned and network.device.type == "cpu" and network.parameters > _LARGE:
                typer.echo(
                    f"training {backbone} on a CPU takes long: --training frozen, or a smaller backbone", err=True
                )
        folder, known = measure(
            opened,
            reader,
            conventions,
            folder=out,
            progress=progress,
            command=["truegap", *sys.argv[1:]],
            # What does not go together is refused now, not after hours of training.
            accept=(lambda record: associate([record, *others], evaluated)) if evaluated else None,
        )
    if known:
        typer.echo(f"{folder} is finished already: nothing to do", err=True)
    record = read_spurious(folder)
    if as_json:
        typer.echo(record.model_dump_json(indent=1))
    else:
        _summarise(record, folder)
    if evaluated:
        from truegap.report.spurious import foreign_runs, sentence, write_association

        found = associate([record, *others], evaluated)
        page = write_association(found, folder)
        for each in found.associations:
            typer.echo(sentence(each), err=as_json)
        if foreign := foreign_runs(found):
            typer.echo(foreign, err=True)
        typer.echo(f"scatter: {page}", err=as_json)


def _refuse_foreign(context: typer.Context, model: str) -> None:
    from truegap.errors import UserError

    for name in _OF_BACKBONES if model else _OF_MODELS:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            said = "of a backbone, and --model is probed" if model else "of --model"
            raise UserError(f"--{name.replace('_', '-')} is an option {said}: leave one of them out")


def _summarise(record: SpuriousRecord, folder: Path) -> None:
    from truegap.results.show import count, interval, percent, plain

    benchmark = record.benchmark
    typer.echo(f"{plain(record.reader.name, 80)} on {plain(benchmark.name, 60)} {plain(benchmark.version, 20)}")
    typer.echo(f"{'feature':<12}{'Acc_b %':>9}{'sd':>6}{'95 % interval':>16}{'p (Holm)':>10}{'images':>8}  classifier")
    for each in record.accuracies:
        if each.accuracy is None:
            typer.echo(f"{each.feature:<12}{'none':>9}  left out: {each.reason}")
            continue
        ends = [None if end is None else 100 * end for end in (each.sd, each.ci_low, each.ci_high)]
        line = f"{each.feature:<12}{percent(100 * each.accuracy):>9}{percent(ends[0]):>6}"
        line += f"{interval(ends[1], ends[2], percent):>16}{each.p_adjusted:>10.2g}{count(each.images or 0):>8}"
        typer.echo(f"{line}  {plain(each.classifier, 60)}")
        for reason, number in each.skipped.items():
            typer.echo(f"{'':<12}{count(number)} images skipped: {reason}")
    typer.echo("50 % is chance; images: how many independent ones the test sets are worth")
    for note in record.notes:
        typer.echo(f"note: {note}")
    typer.echo(f"result: {folder}")

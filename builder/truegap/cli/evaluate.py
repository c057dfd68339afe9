"""`truegap evaluate`: a model answers a benchmark; its scores and their sensitivity become a run."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from truegap.cli.progress import progress

_HELP = """Ask a model every config of a benchmark.

The run is a folder: answers.parquet, scores.json, run.json. Embeddings and answers are kept in a cache, so an
interrupted run goes on, and a second one computes nothing that is known.

What is asked is the protocol's: vqa (81 questions with options, scored by YGap), retrieval (images ranked by
prompts), resolution (the right pronoun; VisoGender), retrieval-occupations (VisoGender's images of an occupation ranked
by its neutral caption), counterfactual (which of two occupations; GenderBias-VL). By default it follows from the
benchmark and the kind of model.

Examples:

  truegap evaluate --model openai/clip-vit-base-patch32 --benchmark coco-gender

  truegap evaluate --model llava-hf/llava-1.5-7b-hf --benchmark coco-gender --profile lite --dtype bfloat16

  truegap evaluate --model open_clip:ViT-B-32/laion2b_s34b_b79k --benchmark ORG/coco-gender@v1.0.0 --k 1000

  truegap evaluate --model ./my-clip --benchmark coco-gender --prompts my-prompts.txt --configs background-strong

  truegap evaluate --model ./my-llava --benchmark coco-gender --sample-id 139

  truegap evaluate --model llava-hf/llava-1.5-7b-hf --benchmark coco-gender --dtype bfloat16 --engine ray
"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("evaluate", help=_HELP)(evaluate)


_RETRIEVAL, _VQA, _RESOLUTION, _COUNTERFACTUAL = "Retrieval", "Visual questions", "Resolution", "Counterfactual"
_CLUSTER = "Cluster"


def evaluate(
    context: typer.Context,
    model: Annotated[
        str,
        typer.Option(
            help="Hub id, folder, open_clip:ARCHITECTURE/TAG, hf-hub:ORG/NAME, "
            "endpoint:URL#MODEL, baseline:random, or a plug-in."
        ),
    ],
    benchmark: Annotated[str, typer.Option(help="A built folder, or ORG/NAME@TAG on the Hub.")],
    protocol: Annotated[
        str, typer.Option(help="vqa, retrieval, resolution, retrieval-occupations or counterfactual.")
    ] = "",
    profile: Annotated[str, typer.Option(help="full, or lite: a frozen sample on the fifteen configs.")] = "full",
    configs: Annotated[str, typer.Option(help="Some configs, separated by commas; all by default.")] = "",
    seed: Annotated[int, typer.Option(help="Of draws, resamples and orders.", min=0)] = 0,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples; 0 for no intervals.", min=0)] = 1000,
    out: Annotated[Path | None, typer.Option(help="The run's folder; by default under runs/.")] = None,
    limit: Annotated[int | None, typer.Option(help="A balanced sample of so many images.")] = None,
    sample_id: Annotated[
        list[str] | None, typer.Option(help="Print the answers to this image (may be repeated); nothing is scored.")
    ] = None,
    prompts: Annotated[
        str,
        typer.Option(help="Prompt sets or files (.txt, .json), separated by commas.", rich_help_panel=_RETRIEVAL),
    ] = "adjectives-r1,occupations-r1",
    k: Annotated[
        str,
        typer.Option(
            help="Cuts, separated by commas; by default 1000, or n // 10 for small sets; 5,10 by occupation.",
            rich_help_panel=_RETRIEVAL,
        ),
    ] = "",
    draws: Annotated[int, typer.Option(help="Balanced draws.", min=1, rich_help_panel=_RETRIEVAL)] = 5,
    target: Annotated[
        str, typer.Option(help="Desired shares: uniform or dataset.", rich_help_panel=_RETRIEVAL)
    ] = "uniform",
    empty: Annotated[
        str, typer.Option(help="Skew of a gender absent from the top k: clip or neg_inf.", rich_help_panel=_RETRIEVAL)
    ] = "clip",
    aggregate: Annotated[
        str, typer.Option(help="Delta over draws: mean_of_ratios or ratio_of_means.", rich_help_panel=_RETRIEVAL)
    ] = "mean_of_ratios",
    questions: Annotated[
        str, typer.Option(help="The question set, or a .json file like it.", rich_help_panel=_VQA)
    ] = "vqa-r1",
    order: Annotated[
        str, typer.Option(help="Of the options: fixed, or permuted per question.", rich_help_panel=_VQA)
    ] = "fixed",
    yes: Annotated[str, typer.Option(help="What counts: probability or argmax.", rich_help_panel=_VQA)] = "probability",
    normalise: Annotated[
        str, typer.Option(help="Probability among the options, or in the vocabulary.", rich_help_panel=_VQA)
    ] = "options",
    view: Annotated[str, typer.Option(help="What is shown: full, or person.", rich_help_panel=_VQA)] = "full",
    margin: Annotated[
        float, typer.Option(help="Around the person's box, as a share of it.", min=0, rich_help_panel=_VQA)
    ] = 0.1,
    threshold: Annotated[
        float,
        typer.Option(help="No delta where |original| is below it; not for retrieval.", min=0, rich_help_panel=_VQA),
    ] = 0.005,
    candidates: Annotated[
        str, typer.Option(help="three (their is wrong) or two.", rich_help_panel=_RESOLUTION)
    ] = "three",
    ties: Annotated[
        str, typer.Option(help="wrong, or first as the public code.", rich_help_panel=_RESOLUTION)
    ] = "wrong",
    round_intermediate: Annotated[
        bool, typer.Option(help="Two decimals before averaging, as published.", rich_help_panel=_RESOLUTION)
    ] = False,
    contexts: Annotated[
        str, typer.Option(help="Some of VL, V, L, separated by commas.", rich_help_panel=_COUNTERFACTUAL)
    ] = "VL,V,L",
    option_text: Annotated[
        str, typer.Option(help="letter, as published, or content.", rich_help_panel=_COUNTERFACTUAL)
    ] = "letter",
    ipss: Annotated[
        str, typer.Option(help="per_order, as published, or merged.", rich_help_panel=_COUNTERFACTUAL)
    ] = "per_order",
    b_max: Annotated[str, typer.Option(help="abs, or signed as published.", rich_help_panel=_COUNTERFACTUAL)] = "abs",
    difference: Annotated[
        str | None,
        typer.Option(help="probability, or outcome where a model only answers.", rich_help_panel=_COUNTERFACTUAL),
    ] = None,
    delta_acc: Annotated[
        str, typer.Option(help="pair, or occupation as published.", rich_help_panel=_COUNTERFACTUAL)
    ] = "pair",
    caption: Annotated[
        str, typer.Option(help="What a dual encoder reads of an occupation.", rich_help_panel=_COUNTERFACTUAL)
    ] = "A photo of {}",
    engine: Annotated[
        str,
        typer.Option(
            help="Where the model answers: local, or ray for an existing Ray cluster (RAY_ADDRESS, or the one of this "
            "machine), with a model on every worker. Same answers.",
            rich_help_panel=_CLUSTER,
        ),
    ] = "local",
    workers: Annotated[
        int | None,
        typer.Option(
            help="Of the cluster, at most; by default one per GPU, or per CPU core where there is none.",
            rich_help_panel=_CLUSTER,
        ),
    ] = None,
    gpus: Annotated[
        float | None,
        typer.Option(
            help="Of each worker: 1 where the cluster has any; 0.5 for two workers on one, 2 for a large model.",
            rich_help_panel=_CLUSTER,
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    dtype: Annotated[str, typer.Option(help="float32, bfloat16 or float16.")] = "float32",
    batch_size: Annotated[
        int,
        typer.Option(
            help="Images, or questions, per forward pass. Changes no result beyond rounding: log-probabilities by at "
            "most 0.0001 in float32, 0.06 in float16, 0.5 in bfloat16.",
            min=1,
        ),
    ] = 64,
    model_revision: Annotated[str | None, typer.Option(help="Branch, tag or commit of a model on the Hub.")] = None,
    device_map: Annotated[str | None, typer.Option(help="Spread a large model, such as auto.")] = None,
    quantization: Annotated[str | None, typer.Option(help="4bit or 8bit, where bitsandbytes is installed.")] = None,
    unsafe_weights: Annotated[bool, typer.Option(help="Also read pickled weights, from a source you trust.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary, or the answers, as JSON.")] = False,
) -> None:
    """See `_HELP`."""
    parameters = locals()
    from truegap.build import choose_configs
    from truegap.cli._protocol_options import OPTIONS, check_options, make_protocol, split
    from truegap.cli._run_summary import summarise
    from truegap.engine import check_engine
    from truegap.engine.models import model_on_ray
    from truegap.errors import UserError
    from truegap.hub.benchmark import open_benchmark
    from truegap.models import DualEncoder, EmbeddingCache, GenerativeModel, load_model
    from truegap.models.answer_cache import AnswerCache
    from truegap.protocols.choose import default_protocol
    from truegap.protocols.profiles import profile as profile_of
    from truegap.protocols.run import run_protocol, sample_answers
    from truegap.schema import CONFIGS, EXTRA_CONFIGS

    chosen_engine = check_engine(engine)
    options = {name: parameters[name] for name in OPTIONS}
    typed = {name for name in options if _was_typed(context, name)}
    size = profile_of(profile)
    if chosen_engine == "local" and (workers is not None or gpus is not None):
        raise UserError("--workers and --gpus are those of --engine ray: here one process answers; leave them out")
    # A slip of the pen is told before anything is opened or loaded.
    chosen = make_protocol(protocol, options, typed) if protocol else None
    check_options(options, typed)
    wanted = choose_configs(split(configs)) if configs else (*CONFIGS, *EXTRA_CONFIGS)
    if configs and size.configs and (foreign := [each for each in wanted if each not in size.configs]):
        raise UserError(f"--configs {foreign[0]}: profile {size.version} leaves it out; take --profile full")
    opened = open_benchmark(benchmark, ["original", *wanted] if configs else None)
    load = partial(
        load_model,
        revision=model_revision,
        dtype=dtype,
        unsafe_weights=unsafe_weights,
        device_map=device_map,
        quantization=quantization,
    )
    there: AbstractContextManager[DualEncoder | GenerativeModel]
    if chosen_engine == "ray":
        there = model_on_ray(load, model, device=device, workers=workers, gpus=gpus)
    else:
        there = nullcontext(load(model, device=device))
    with there as loaded:
        if chosen is None:
            chosen = make_protocol(default_protocol(opened, loaded), options, typed)
            typer.echo(f"protocol {chosen.name}: the one for this benchmark and kind of model", err=True)
        present = [config for config in wanted if config in opened.manifest.configs]
        with EmbeddingCache() if isinstance(loaded, DualEncoder) else AnswerCache() as cache:
            if sample_id:
                rows = sample_answers(
                    opened, loaded, chosen, image_ids=sample_id, configs=present, cache=cache, batch_size=batch_size
                )
                _print_answers(list(rows), as_json=as_json)
                return
            folder, known = run_protocol(
                opened,
                loaded,
                chosen,
                folder=out,
                configs=present,
                progress=progress,
                cache=cache,
                limit=limit,
                profile=size,
                batch_size=batch_size,
                command=["truegap", *sys.argv[1:]],
            )
    if known:
        typer.echo(f"{folder} is finished already: nothing to do", err=True)
    summarise(folder, as_json=as_json)


def _was_typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _print_answers(rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    from truegap.results.show import number, plain

    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    shown = ("config", "prompt_id", "option", "score", "probability")
    for row in rows:
        cells = {name: row.get(name) for name in shown}
        texts = [
            number(value) if isinstance(value, float) or value is None else plain(value, 40) for value in cells.values()
        ]
        typer.echo(f"{plain(row['image_id'], 24):<24}  " + "  ".join(f"{text:<20}" for text in texts).rstrip())

"""`truegap counterfactual`: another GenderBias-VL, from a table of occupations to question files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from truegap.cli.progress import progress

_GROUP = """Build a counterfactual benchmark in the manner of GenderBias-VL, step by step in one folder.

Every step can be interrupted and goes on with the same command. Images made elsewhere may be put into the folder as
base/Flight_attendant/female/female_Flight_attendant_0.png and counterfactual/... of the same name.

Examples, in their order:

  truegap counterfactual generate new --occupations us.csv --text-to-image ORG/NAME --editor ORG/NAME

  truegap counterfactual pairs new --occupations us.csv --model openai/clip-vit-base-patch32 --known known.csv

  truegap counterfactual filter new --detections found.json --gender-model openai/clip-vit-base-patch32

  truegap counterfactual bleach new --detections found.json

  truegap counterfactual items new

  truegap build genderbias-vl --source new --out new-benchmark
"""
_GENERATE = """Make base images from prompts, and their counterfactuals by editing.

Images that are there with the same prompt, seed and model are kept. Weights are safetensors only; code from a model's
repository is never run.

Examples:

  truegap counterfactual generate new --occupations us.csv --text-to-image stabilityai/stable-diffusion-xl-base-1.0

  truegap counterfactual generate new --occupations us.csv --editor timbrooks/instruct-pix2pix --image-guidance 1.5
"""
_PAIRS = """Choose pairs of similar occupations, of which one is male-dominated and one female-dominated.

Similarities come from a dual encoder (images and texts) or from a file; each modality is scaled to 0..1, and both are
averaged. Pairs at least as similar as the least similar known pair stay, at most ten per occupation, the best first.

Examples:

  truegap counterfactual pairs new --occupations us.csv --model openai/clip-vit-base-patch32 --known known.csv

  truegap counterfactual pairs new --occupations us.csv --similarities similar.csv --threshold 0.68
"""
_FILTER = """Keep the images that pass: safe, readable, one person, the gender that they should show.

Each filter runs where its option is given, on both images of a pair; what it drops is counted with a reason. A
detections file names images by their path in the folder, such as base/Pilot/female/female_Pilot_0.png.

Examples:

  truegap counterfactual filter new --detections found.json --gender-model openai/clip-vit-base-patch32

  truegap counterfactual filter new --regions PekingU/rtdetr_r50vd --safety-model Falconsai/nsfw_image_detection
"""
_BLEACH = """Take the colour from the person in every base image, for questions whose gender is in the words alone.

Examples:

  truegap counterfactual bleach new --detections found.json

  truegap counterfactual bleach new --regions PekingU/rtdetr_r50vd,facebook/sam2.1-hiera-small
"""
_ITEMS = """Write the question files: three contexts, base and counterfactual, both orders of the options.

Example:

  truegap counterfactual items new --names gendered.csv
"""

Folder = Annotated[Path, typer.Argument(help="The folder that becomes the benchmark.")]
Occupations = Annotated[Path, typer.Option(help="CSV: occupation, women (in per cent).")]
Names = Annotated[
    Path | None, typer.Option(help="CSV: occupation, woman, man; what it is called with each. Default: Waitress.")
]
Detections = Annotated[Path | None, typer.Option(help="Detections made elsewhere: COCO results as JSON.")]
Least = Annotated[float | None, typer.Option(help="Least score of a detection.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def register(app: typer.Typer) -> None:
    """Adds the verb and its steps."""
    verbs = typer.Typer(help=_GROUP, no_args_is_help=True)
    verbs.command("generate", help=_GENERATE)(generate)
    verbs.command("pairs", help=_PAIRS)(pairs)
    verbs.command("filter", help=_FILTER)(filter_)
    verbs.command("bleach", help=_BLEACH)(bleach)
    verbs.command("items", help=_ITEMS)(items)
    app.add_typer(verbs, name="counterfactual")


def generate(
    folder: Folder,
    occupations: Occupations,
    text_to_image: Annotated[str, typer.Option(help="Pipeline that makes base images: folder or ORG/NAME[@REV].")] = "",
    editor: Annotated[str, typer.Option(help="Pipeline that edits them: folder or ORG/NAME[@REV].")] = "",
    images: Annotated[int, typer.Option(help="Base images per gender and occupation; filters will drop some.")] = 30,
    prompts: Annotated[Path | None, typer.Option(help="One per line, with {gender} and {occupation}.")] = None,
    edits: Annotated[Path | None, typer.Option(help="Instructions, one per line, with {gender} and {other}.")] = None,
    negative_prompt: Annotated[str | None, typer.Option(help="What images should not show; '' for nothing.")] = None,
    seed: Annotated[int, typer.Option(help="Part of every image's seed.")] = 0,
    steps: Annotated[int | None, typer.Option(help="Denoising steps; default: the pipeline's.")] = None,
    guidance: Annotated[float | None, typer.Option(help="How closely prompts are followed.")] = None,
    image_guidance: Annotated[float | None, typer.Option(help="How closely an editor follows the image.")] = None,
    size: Annotated[int | None, typer.Option(help="Side of base images in pixels.")] = None,
    names: Names = None,
    device: Device = "auto",
    dtype: Annotated[str, typer.Option(help="float32, bfloat16 or float16.")] = "float32",
    as_json: Json = False,
) -> None:
    """See `_GENERATE`."""
    from truegap.counterfactual import (
        Prompts,
        Settings,
        find_pictures,
        load_pipeline,
        plan_pictures,
        read_names,
        read_occupations,
    )
    from truegap.counterfactual import edit as edit_pictures
    from truegap.counterfactual import generate as make
    from truegap.counterfactual.diffusion import require_diffusers
    from truegap.counterfactual.files import note
    from truegap.counterfactual.generate import EDITS, NEGATIVE, PROMPTS, read_prompts
    from truegap.counterfactual.occupations import check_folders
    from truegap.errors import UserError

    if not text_to_image and not editor:
        raise UserError("name --text-to-image, --editor, or both: each is a diffusers pipeline")
    if images < 1:
        raise UserError(f"--images {images}: give at least 1")
    require_diffusers()
    _only_errors()
    asked = Prompts(read_prompts(prompts) if prompts else PROMPTS, read_prompts(edits) if edits else EDITS, seed)
    called = read_names(names) if names else read_names()
    jobs = [each.name for each in read_occupations(occupations)[0]]
    check_folders(jobs)
    negative = NEGATIVE if negative_prompt is None else negative_prompt or None
    told: dict[str, Any] = {"prompts": asked.record()}
    counts: dict[str, Any] = {}
    for step, spec in (("base", text_to_image), ("counterfactual", editor)):
        if not spec:
            continue
        if step == "base":
            settings = Settings(negative, steps, guidance, None, size, size)
            pipeline = load_pipeline(spec, "text-to-image", settings, device=device, dtype=dtype)
            pictures, run = plan_pictures(jobs, images), make
        else:
            settings = Settings(negative, steps, guidance, image_guidance)
            pipeline = load_pipeline(spec, "edit", settings, device=device, dtype=dtype)
            pictures, run = find_pictures(folder, jobs), edit_pictures
        note(folder, "filter", None)  # what is made now has not been looked at
        with progress(f"making {step} images", len(pictures)) as advance:
            made = run(folder, pictures, asked, pipeline, called, advance)
        counts |= {f"{step} images made": made, f"{step} images there already": len(pictures) - made}
        told[step] = pipeline.record()
    note(folder, "generate", told)
    _say(counts, as_json=as_json)


def pairs(
    folder: Folder,
    occupations: Occupations,
    model: Annotated[str, typer.Option(help="Dual encoder, as in `truegap evaluate`.")] = "",
    similarities: Annotated[
        Path | None, typer.Option(help="CSV instead: job_male, job_female, img_similarity, text_similarity.")
    ] = None,
    known: Annotated[Path | None, typer.Option(help="Known pairs, as CSV: job_male, job_female.")] = None,
    threshold: Annotated[float | None, typer.Option(help="Lowest similarity, instead of known pairs.")] = None,
    most: Annotated[int, typer.Option(help="Pairs per occupation.")] = 10,
    text: Annotated[str, typer.Option(help="What the dual encoder reads.")] = "a photo of a {occupation}",
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """See `_PAIRS`."""
    from truegap.counterfactual import lowest, read_known, read_occupations, read_pairs, select, write_pairs
    from truegap.counterfactual.files import note
    from truegap.counterfactual.pair_files import FILE
    from truegap.errors import UserError

    if bool(model) == bool(similarities):
        raise UserError("give --model (with images in the folder) or --similarities FILE, one of them")
    if (known is None) == (threshold is None):
        raise UserError("give --known FILE or --threshold NUMBER, one of them")
    if most < 1:
        raise UserError(f"--most {most}: give at least 1")
    table, left_out = read_occupations(occupations)
    told: dict[str, Any] = {"most": most}
    if similarities is not None:
        found = read_pairs(similarities, table)
    else:
        found, told["model"] = _similar(folder, table, model, text, device)
        told["text"] = text
    least, at = (threshold, None) if threshold is not None else lowest(found, read_known(known or Path()))
    chosen = select(found, least or 0.0, most)
    if not chosen:
        raise UserError(f"no pair is as similar as {least:.4g}; lower --threshold")
    write_pairs(folder / FILE, chosen)
    counts = {"candidates": len(found), "pairs": len(chosen), **left_out}
    counts["candidates below the threshold"] = sum(each.similarity < (least or 0.0) for each in found)
    counts["candidates left out: an occupation is in enough pairs"] = (
        len(found) - len(chosen) - counts["candidates below the threshold"]
    )
    note(folder, "pairs", {**told, "threshold": least, "threshold_set_by": at, "counts": counts})
    _say({**counts, "threshold": least, **({"threshold set by": " | ".join(at)} if at else {})}, as_json=as_json)


def filter_(
    folder: Folder,
    detections: Detections = None,
    regions: Annotated[str, typer.Option(help="Or detectors of transformers: folder or ORG/NAME.")] = "",
    score_threshold: Least = None,
    gender_model: Annotated[str, typer.Option(help="Dual encoder that says which gender an image shows.")] = "",
    margin: Annotated[float, typer.Option(help="By how much the right cosine must be larger.")] = 0.0,
    safety_model: Annotated[str, typer.Option(help="Image classifier of transformers: folder or ORG/NAME.")] = "",
    unsafe_labels: Annotated[str, typer.Option(help="Its labels that count as unsafe, by comma.")] = "",
    safety_threshold: Annotated[float, typer.Option(help="Least probability of those.")] = 0.5,
    workers: Annotated[int | None, typer.Option(help="Processes for detection; default: all cores.")] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """See `_FILTER`."""
    from truegap.counterfactual import keep, one_person, readable, safe, shown_gender
    from truegap.counterfactual.files import note
    from truegap.counterfactual.filters import KINDS
    from truegap.counterfactual.safety import UNSAFE, load_classifier
    from truegap.errors import UserError
    from truegap.models import load_model

    if not 0 <= margin <= 2 or not 0 < safety_threshold <= 1:  # noqa: PLR2004
        raise UserError("--margin is 0 to 2, --safety-threshold above 0 to 1")
    if safety_model:
        labels = [label.strip() for label in unsafe_labels.split(",") if label.strip()] or list(UNSAFE)
        classify = load_classifier(safety_model, unsafe=labels, threshold=safety_threshold, device=device)
    else:
        labels, classify = [], None
    told: dict[str, Any] = {"safety_model": safety_model, "unsafe_labels": labels, "safety_threshold": safety_threshold}
    filters = [safe(classify), readable()]
    pictures = _complete(folder)
    if detections or regions:
        found, told["persons"] = _persons(folder, pictures, KINDS, regions, detections, score_threshold, workers)
        filters.append(one_person(lambda _shots: found))
    if gender_model:
        encoder = load_model(gender_model, device=device)
        filters.append(shown_gender(encoder, margin=margin))
        told |= {"gender_model": encoder.record().model_dump(mode="json"), "margin": margin}
    result = keep(folder, pictures, filters)
    steps = [asdict(step) for step in result.steps]
    dropped = {each.image_id: each.reason for each in result.dropped}
    kept = [each.name for each in result.kept]
    note(folder, "filter", {**told, "steps": steps, "dropped": dropped, "kept": kept})
    skipped = [
        name
        for name, there in (
            ("safety classifier", classify),
            ("one_person", detections or regions),
            ("shown_gender", gender_model),
        )
        if not there
    ]
    if as_json:
        _say({"steps": steps, "dropped": dropped, "kept": len(kept), "not_run": skipped}, as_json=True)
        return
    typer.echo(f"{'image pairs after':<20}{'women':>8}{'men':>8}")
    for step in result.steps:
        typer.echo(f"{step.name:<20}{step.woman:>8}{step.man:>8}")
    for reason, times in _tally(dropped.values()).items():
        typer.echo(f"left out: {times} ({reason})")
    if skipped:
        typer.echo(f"not run: {', '.join(skipped)} (its option was not given)")


def bleach(
    folder: Folder,
    detections: Detections = None,
    regions: Annotated[
        str, typer.Option(help="Detectors, and who makes masks: grabcut or a segmenter; by comma.")
    ] = "grabcut",
    score_threshold: Least = None,
    workers: Annotated[int | None, typer.Option(help="Processes for detection; default: all cores.")] = None,
    as_json: Json = False,
) -> None:
    """See `_BLEACH`."""
    from truegap.counterfactual.bleach import bleach_pictures
    from truegap.counterfactual.files import note
    from truegap.errors import UserError

    if detections is None and regions == "grabcut":
        raise UserError("give --detections FILE, or a detector in --regions: somebody must say where the person is")
    pictures = _kept(folder, _complete(folder))
    persons, finders = _persons(folder, pictures, ("base",), regions, detections, score_threshold, workers)
    with progress("bleaching", len(pictures)) as advance:
        made, left_out = bleach_pictures(folder, pictures, persons, advance)
    note(folder, "bleach", {"persons": finders, "left_out": dict(left_out)})
    there = len(pictures) - made - left_out.total()
    counts = {"bleached": made, "there already": there}
    _say({**counts, **{f"left out: {reason}": times for reason, times in left_out.items()}}, as_json=as_json)


def items(
    folder: Folder,
    contexts: Annotated[str, typer.Option(help="Some of VL, V and L, separated by commas.")] = "VL,V,L",
    most: Annotated[int, typer.Option(help="Image pairs per gender and occupation.")] = 20,
    names: Names = None,
    unfiltered: Annotated[bool, typer.Option("--unfiltered", help="Ask about images that no filter has seen.")] = False,
    as_json: Json = False,
) -> None:
    """See `_ITEMS`."""
    from truegap.counterfactual import read_names, read_pairs, write_items
    from truegap.counterfactual.files import note, read_record
    from truegap.counterfactual.items import CONTEXTS
    from truegap.counterfactual.pair_files import FILE
    from truegap.errors import UserError

    chosen = [each.strip() for each in contexts.split(",") if each.strip()]
    if not chosen or not set(chosen) <= set(CONTEXTS):
        raise UserError(f"--contexts {contexts}: use some of {', '.join(CONTEXTS)}")
    if most < 1:
        raise UserError(f"--most {most}: give at least 1")
    pictures = _complete(folder)
    if not unfiltered:
        if "filter" not in read_record(folder):
            raise UserError(f"{folder}: its images have not been filtered; run the filter step, or say --unfiltered")
        pictures = _kept(folder, pictures)
    called = read_names(names) if names else read_names()
    context = [each for each in CONTEXTS if each in chosen]
    counts = write_items(folder, read_pairs(folder / FILE), pictures, called, contexts=context, most=most)
    note(folder, "items", {"names": called, "most": most, "filtered": not unfiltered, "counts": counts})
    _say(counts, as_json=as_json)


def _similar(folder: Path, table: Any, model: str, text: str, device: str) -> tuple[Any, dict[str, Any]]:
    from truegap.counterfactual import find_pictures
    from truegap.counterfactual.similarity import similar_pairs
    from truegap.models import EmbeddingCache, load_model

    encoder = load_model(model, device=device)
    images: dict[str, list[Path]] = {}
    for picture in find_pictures(folder, [each.name for each in table]):
        images.setdefault(picture.occupation, []).append(folder / picture.path("base"))
    with EmbeddingCache() as cache, progress("embedding", sum(map(len, images.values()))) as advance:
        found = similar_pairs(table, images, encoder, cache, template=text, advance=advance)
    return found, encoder.record().model_dump(mode="json")


def _complete(folder: Path) -> list[Any]:
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


def _kept(folder: Path, pictures: list[Any]) -> list[Any]:
    from truegap.counterfactual.files import read_record

    record = read_record(folder).get("filter")
    return pictures if record is None else [each for each in pictures if each.name in set(record["kept"])]


def _persons(
    folder: Path,
    pictures: list[Any],
    kinds: Any,
    regions: str,
    detections: Path | None,
    threshold: float | None,
    workers: int | None,
) -> tuple[Mapping[str, Any], dict[str, Any]]:
    from truegap.cli.build import found_regions
    from truegap.counterfactual.persons import as_selection, persons_of
    from truegap.regions.finders import choose

    finders = choose(regions, detections=detections, threshold=threshold)
    selection = found_regions(as_selection(folder, pictures, kinds), finders, workers)
    return persons_of(selection), finders.record()


def _only_errors() -> None:
    """Flagged images are counted by the filter; a warning for each would hide the progress."""
    from diffusers.utils import logging

    logging.set_verbosity_error()


def _tally(reasons: Any) -> dict[str, int]:
    from collections import Counter

    return dict(Counter(reasons).most_common())


def _say(counts: Mapping[str, Any], *, as_json: bool) -> None:
    import json

    if as_json:
        typer.echo(json.dumps(counts, indent=1))
        return
    for name, value in counts.items():
        typer.echo(f"{name}: {value:.4g}" if isinstance(value, float) else f"{name}: {value}")

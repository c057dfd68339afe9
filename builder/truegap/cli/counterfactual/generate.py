"""`truegap counterfactual generate`: base images from prompts, and their counterfactuals by editing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from truegap.cli.counterfactual._shared import Device, Folder, Json, Names, Occupations, say
from truegap.cli.progress import progress

_HELP = """Make base images from prompts, and their counterfactuals by editing.

Images that are there with the same prompt, seed and model are kept. Weights are safetensors only; code from a model's
repository is never run.

Examples:

  truegap counterfactual generate new --occupations us.csv --text-to-image stabilityai/stable-diffusion-xl-base-1.0

  truegap counterfactual generate new --occupations us.csv --editor timbrooks/instruct-pix2pix --image-guidance 1.5
"""


def register(app: typer.Typer) -> None:
    """Adds the step."""
    app.command("generate", help=_HELP)(generate)


def generate(
    folder: Folder,
    occupations: Occupations,
    text_to_image: Annotated[str, typer.Option(help="Pipeline that makes base images: folder or ORG/NAME@REV.")] = "",
    editor: Annotated[str, typer.Option(help="Pipeline that edits them: folder or ORG/NAME@REV.")] = "",
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
    """See `_HELP`."""
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
    from truegap.counterfactual.diffusion import quiet_diffusers, require_diffusers
    from truegap.counterfactual.files import note
    from truegap.counterfactual.generate import EDITS, NEGATIVE, PROMPTS, read_prompts
    from truegap.counterfactual.occupations import check_folders
    from truegap.errors import UserError

    if not text_to_image and not editor:
        raise UserError("name --text-to-image, --editor, or both: each is a diffusers pipeline")
    if images < 1:
        raise UserError(f"--images {images}: give at least 1")
    require_diffusers()
    quiet_diffusers()
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
    say(counts, as_json=as_json)

"""`truegap counterfactual filter`: which images may be asked about."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from truegap.cli.counterfactual._shared import Detections, Device, Folder, Json, Least, complete, persons_in, say

_HELP = """Keep the images that pass: safe, readable, one person, the gender that they should show.

Each filter runs where its option is given, on both images of a pair; what it drops is counted with a reason. A
detections file names images by their path in the folder, such as base/Pilot/female/female_Pilot_0.png.

Examples:

  truegap counterfactual filter new --detections found.json --gender-model openai/clip-vit-base-patch32

  truegap counterfactual filter new --regions PekingU/rtdetr_r50vd --safety-model Falconsai/nsfw_image_detection
"""


def register(app: typer.Typer) -> None:
    """Adds the step."""
    app.command("filter", help=_HELP)(filter_)


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
    """See `_HELP`."""
    from truegap.counterfactual import keep, one_person, readable, safe, shown_gender
    from truegap.counterfactual.files import note
    from truegap.counterfactual.filters import KINDS
    from truegap.counterfactual.safety import UNSAFE, load_classifier
    from truegap.errors import UserError
    from truegap.models import load_dual_encoder

    if not 0 <= margin <= 2 or not 0 < safety_threshold <= 1:  # noqa: PLR2004
        raise UserError("--margin is 0 to 2, --safety-threshold above 0 to 1")
    if safety_model:
        labels = [label.strip() for label in unsafe_labels.split(",") if label.strip()] or list(UNSAFE)
        classify = load_classifier(safety_model, unsafe=labels, threshold=safety_threshold, device=device)
    else:
        labels, classify = [], None
    told: dict[str, Any] = {"safety_model": safety_model, "unsafe_labels": labels, "safety_threshold": safety_threshold}
    filters = [safe(classify), readable()]
    pictures = complete(folder)
    if detections or regions:
        found, told["persons"] = persons_in(folder, pictures, KINDS, regions, detections, score_threshold, workers)
        filters.append(one_person(lambda _shots: found))
    if gender_model:
        encoder = load_dual_encoder(gender_model, device=device)
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
        say({"steps": steps, "dropped": dropped, "kept": len(kept), "not_run": skipped}, as_json=True)
        return
    typer.echo(f"{'image pairs after':<20}{'women':>8}{'men':>8}")
    for step in result.steps:
        typer.echo(f"{step.name:<20}{step.woman:>8}{step.man:>8}")
    for reason, times in _tally(dropped.values()).items():
        typer.echo(f"left out: {times} ({reason})")
    if skipped:
        typer.echo(f"not run: {', '.join(skipped)} (its option was not given)")


def _tally(reasons: Any) -> dict[str, int]:
    from collections import Counter

    return dict(Counter(reasons).most_common())

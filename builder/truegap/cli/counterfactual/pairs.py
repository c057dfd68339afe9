"""`truegap counterfactual pairs`: which occupations are asked about together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from truegap.cli.counterfactual._shared import Device, Folder, Json, Occupations, say
from truegap.cli.progress import progress

_HELP = """Choose pairs of similar occupations, of which one is male-dominated and one female-dominated.

Similarities come from a dual encoder (images and texts) or from a file; each modality is scaled to 0..1, and both are
averaged. Pairs at least as similar as the least similar known pair stay, at most ten per occupation, the best first.

Examples:

  truegap counterfactual pairs new --occupations us.csv --model openai/clip-vit-base-patch32 --known known.csv

  truegap counterfactual pairs new --occupations us.csv --similarities similar.csv --threshold 0.68
"""


def register(app: typer.Typer) -> None:
    """Adds the step."""
    app.command("pairs", help=_HELP)(pairs)


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
    """See `_HELP`."""
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
    say({**counts, "threshold": least, **({"threshold set by": " | ".join(at)} if at else {})}, as_json=as_json)


def _similar(folder: Path, table: Any, model: str, text: str, device: str) -> tuple[Any, dict[str, Any]]:
    from truegap.counterfactual import find_pictures
    from truegap.counterfactual.similarity import similar_pairs
    from truegap.models import EmbeddingCache, load_dual_encoder

    encoder = load_dual_encoder(model, device=device)
    images: dict[str, list[Path]] = {}
    for picture in find_pictures(folder, [each.name for each in table]):
        images.setdefault(picture.occupation, []).append(folder / picture.path("base"))
    with EmbeddingCache() as cache, progress("embedding", sum(map(len, images.values()))) as advance:
        found = similar_pairs(table, images, encoder, cache, template=text, advance=advance)
    return found, encoder.record().model_dump(mode="json")

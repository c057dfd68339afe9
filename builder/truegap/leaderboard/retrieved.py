"""What a retrieval run found: the ten best images of a few prompts, original against perturbed."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from truegap.errors import UserError
from truegap.results.records import Record
from truegap.results.show import plain
from truegap.schema import Feature, Strength

if TYPE_CHECKING:
    from truegap.results.readers_retrieval import Similarities
    from truegap.results.runs import Run

BEST = 10
PROMPTS = 3
_LONG_SIDE = 120
_ORIGINAL = "original"


class Retrieved(Record):
    """The best images of one prompt on one config."""

    prompt: str
    config: str
    images: list[str | None]
    """Names of pictures, best first; None for one that its licence does not let anybody show."""


@dataclass(slots=True)
class Found:
    """Of one run.

    Attributes:
        prompts: Each prompt on the original and on the perturbed images.
        pictures: Base64 of a small JPEG, by name.
        no_pictures: Why there are none.
    """

    prompts: list[Retrieved] = field(default_factory=list)
    pictures: dict[str, str] = field(default_factory=dict)
    no_pictures: str = ""


def retrieved(run: Run) -> Found:
    """The prompts whose best images change most where the main score moves most.

    Raises:
        UserError: The answers or the benchmark cannot be read.
    """
    if run.record.protocol != "retrieval":
        return Found(no_pictures="only retrieval finds images")
    config = _config(run)
    if config is None:
        return Found(no_pictures="no perturbed config was run")
    sets = {name: _similarities(run, name) for name in (_ORIGINAL, config)}
    best = {name: _best(each) for name, each in sets.items()}
    before, after = best[_ORIGINAL], best[config]
    kept = sorted(before, key=lambda prompt: (len({*before[prompt]} & {*after.get(prompt, [])}), prompt))[:PROMPTS]
    wanted = {(name, image) for name in best for prompt in kept for image in best[name].get(prompt, [])}
    found = Found()
    names = _pictures(run, wanted, found)
    found.prompts = [
        Retrieved(
            prompt=plain(prompt, 160), config=name, images=[names.get((name, each)) for each in best[name][prompt]]
        )
        for prompt in kept
        for name in best
        if prompt in best[name]
    ]
    return found


def _config(run: Run) -> str | None:
    """The perturbation that moves the main score most."""
    perturbed = {f"{feature}-{strength}" for feature in Feature for strength in Strength}
    metric = run.scores.summary.metric
    moved = {
        each.config: each.delta or 0.0
        for each in run.scores.changes
        if (each.metric, each.scope) == (metric, "all") and each.config in perturbed
    }
    return max(moved, key=lambda config: (moved[config], config), default=None)


def _similarities(run: Run, config: str) -> Similarities:
    from truegap.results.answers import read_answers
    from truegap.results.readers_retrieval import similarities
    from truegap.results.readers_table import Columns

    columns = Columns(read_answers(run.folder, config=config), run.answers)
    texts = dict(zip(columns.text("prompt_id"), columns.optional("prompt"), strict=True))
    found = next(iter(similarities(columns).values()))
    found.queries[:] = [texts.get(each) or each for each in found.queries]
    return found


def _best(found: Similarities) -> dict[str, list[str]]:
    order = np.argsort(-found.table, axis=1, kind="stable")[:, :BEST]
    return {query: [found.images[place] for place in row] for query, row in zip(found.queries, order, strict=True)}


def _pictures(run: Run, wanted: set[tuple[str, str]], found: Found) -> dict[tuple[str, str], str]:
    """Adds those that may be shown, and gives them names."""
    from truegap.hub.benchmark import open_benchmark
    from truegap.sources.benchmark import load_benchmark

    record = run.record.benchmark
    try:
        benchmark = open_benchmark(record.spec)
        # A run may call its benchmark what it likes; the terms are those of what lies here.
        terms = load_benchmark(benchmark.manifest.benchmark)
    except UserError:
        found.no_pictures = "the benchmark is not at hand, or its licence is not known"
        return {}
    if benchmark.manifest.content != record.content:
        found.no_pictures = "the benchmark at hand is not the one that was asked"
        return {}
    names = {}
    for config in sorted({config for config, _ in wanted}):
        places = {image: place for place, image in enumerate(benchmark.image_ids())}
        licences = benchmark.column(config, "license")
        images = benchmark.images(config)
        for image in sorted(image for name, image in wanted if name == config and image in places):
            place = places[image]
            if terms.publishable(licences[place] or "", perturbed=config != _ORIGINAL):
                data = _small(images[place])
                name = hashlib.sha256(data).hexdigest()[:16]
                found.pictures[name] = base64.b64encode(data).decode()
                names[config, image] = name
    if not names:
        found.no_pictures = "the licence of these images does not let anybody show them"
    return names


def _small(data: bytes) -> bytes:
    from PIL import Image, ImageOps

    image = ImageOps.exif_transpose(Image.open(BytesIO(data))).convert("RGB")
    image.thumbnail((_LONG_SIDE, _LONG_SIDE))
    held = BytesIO()
    image.save(held, "JPEG", quality=80)
    return held.getvalue()

"""One image of a run in its original and its strongly perturbed configs, small, for the report."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from truegap.hub.benchmark import Benchmark
from truegap.schema import Feature

SHOWN = ("original", *(f"{feature}-strong" for feature in Feature))
_LONG_SIDE = 480


def write_pictures(benchmark: Benchmark, folder: Path, places: Sequence[int]) -> None:
    """Writes one JPEG per config of `SHOWN` that the benchmark has.

    The image is the first of `places` in which the strong config of `object` blacked something out, so that every
    perturbation can be seen; else the first.
    """
    from PIL import Image, ImageOps

    shown = [config for config in SHOWN if config in benchmark.manifest.configs]
    place = places[0]
    if "object-strong" in shown:
        drawn = benchmark.column("object-strong", "perturbation")
        place = next((each for each in places if drawn[each]["object_ids"]), place)
    folder.mkdir(parents=True, exist_ok=True)
    for config in shown:
        image = ImageOps.exif_transpose(Image.open(BytesIO(benchmark.images(config)[place]))).convert("RGB")
        image.thumbnail((_LONG_SIDE, _LONG_SIDE))
        image.save(folder / f"{config}.jpg", quality=90)

"""`truegap.perturbed` against what one would write with Pillow, reading one built benchmark, in turn.

    python benchmarks/live.py [COCO_FOLDER] [--images N] [--rounds R]

With a folder it takes COCO-gender's photographs from it, without one those that scikit-image ships, and builds config
`original` of them. Both sides change the rows that `load_dataset` gives, by a transform.

Row by row, in processor time: both work on one core. Reading and decoding a row is the same for both and is timed
alone: row by row no way of perturbing can be faster than it, so `bound` is the ratio that a perturbation for nothing
would have, and `added` compares what each side takes beyond reading. In batches of 32, on the clock: what one writes
with Pillow goes on with one core, `perturbed` decodes and changes the rows of a batch on all of them.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from datasets import load_dataset
from perturb import with_pillow
from PIL import Image
from pycocotools import mask as coco

import truegap
from build import build, examples, planned
from truegap.cores import cores
from truegap.schema import CONFIGS, CONTROLS, Perturbation, Region

SHIFTS = {"weak": range(11), "middle": range(11, 21), "strong": range(11, 31)}
RADIUS = {"weak": 10.0, "middle": 25.0, "strong": 40.0}
SHARE = {"weak": 0.1, "middle": 0.2, "strong": 0.3}


def pillow_way(config: str) -> Callable[[dict[str, list[Any]]], dict[str, list[Any]]]:
    """A transform such as one writes for one's own experiment: draws, converts, pastes the person back."""
    feature, strength = config.split("-")
    chance = random.Random(0)  # noqa: S311  # nothing secret

    def transform(batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        rows = [dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True)]
        return {**batch, "image": [changed(row) for row in rows]}

    def changed(row: Mapping[str, Any]) -> Image.Image:
        objects = [Region(each["id"], each["label"], each["box"]) for each in row["objects"]]
        drawn = Perturbation(
            feature,
            shift=chance.choice((-1, 1)) * chance.choice(SHIFTS[strength]),
            radius=RADIUS[strength],
            object_ids=tuple(each.id for each in chance.sample(objects, round(SHARE[strength] * len(objects)))),
        )
        size = [row["height"], row["width"]]
        person = None
        if feature in ("object", "background"):
            rle = coco.merge([{"counts": mask.encode(), "size": size} for mask in row["person_masks"]])
            person = Image.fromarray(255 * coco.decode(rle))
        return with_pillow(row["image"].convert("RGB"), drawn, person, objects)

    return transform


BATCH = 32


def by_row(dataset: Any) -> float:
    """Of this process, which other work on the machine disturbs less than the clock."""
    started = time.process_time()
    for row in dataset:
        row["image"].load()
    return time.process_time() - started


def by_batch(dataset: Any) -> float:
    """On the clock."""
    started = time.perf_counter()
    for batch in dataset.iter(BATCH):
        for image in batch["image"]:
            image.load()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("coco", type=Path, nargs="?")
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    cv2.setNumThreads(1)
    with tempfile.TemporaryDirectory() as folder:
        made = replace(planned(examples(options.coco, options.images)), configs=("original",))
        build(made, Path(folder) / "built")
        original = load_dataset(str(Path(folder) / "built"), "original", split="test", cache_dir=f"{folder}/cache")
        print(f"{'milliseconds per image':<20}{'row by row, one core':^48}{f'batches of {BATCH}, {cores()} cores':^34}")
        names = f"{'read':>7}{'Pillow':>9}{'truegap':>9}{'ratio':>8} "
        print(f"{'':<20}{names}{'bound':>7}{'added':>7}{names}")
        for config in CONFIGS:
            if config in CONTROLS:
                continue
            sides = original, original.with_transform(pillow_way(config)), truegap.perturbed(original, config)
            read, theirs, ours = best(sides, by_row, options)
            print(f"{config:<20}{figures(read, theirs, ours)}{theirs / read:>7.1f}", end="")
            added = f"{(theirs - read) / (ours - read):.1f}" if ours > read else "-"
            print(f"{added:>7}", end="", flush=True)
            print(figures(*best(sides, by_batch, options)))


def best(sides: tuple[Any, ...], seconds: Callable[[Any], float], options: argparse.Namespace) -> list[float]:
    """Milliseconds per image of each side, in turn, in its best round."""
    times = np.array([[seconds(side) for side in sides] for _ in range(options.rounds)])
    milliseconds: list[float] = (1e3 * times.min(0) / options.images).tolist()
    return milliseconds


def figures(read: float, theirs: float, ours: float) -> str:
    return f"{read:>7.2f}{theirs:>9.2f}{ours:>9.2f}{theirs / ours:>8.1f} "


if __name__ == "__main__":
    main()

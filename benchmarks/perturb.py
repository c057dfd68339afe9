"""Each perturbation against the same with Pillow alone, on one thread, as ratios of processor time.

    python benchmarks/perturb.py [FOLDER_OF_PHOTOGRAPHS]

Without a folder it takes photographs that scikit-image ships. Both sides get what they work on natively
(an array, a PIL image) and their share of everything: drawing, conversion, blur, paste by mask.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from truegap.perturbations import draw, perturb
from truegap.perturbations.blur import gaussian_blur
from truegap.perturbations.hsv import from_hsv, to_hsv
from truegap.schema import Feature, Perturbation, Region, Strength

ROUNDS = 15

Call = Callable[[], object]


def photographs(folder: Path | None) -> list[np.ndarray]:
    if folder:
        return [np.asarray(Image.open(file).convert("RGB")) for file in sorted(folder.rglob("*.jpg"))[:25]]
    from skimage import data

    return [data.astronaut(), data.coffee(), data.chelsea()]


def with_pillow(
    image: Image.Image, drawn: Perturbation, person: Image.Image | None, objects: list[Region]
) -> Image.Image:
    if drawn.feature in ("color", "lighting"):
        bands = list(image.convert("HSV").split())
        shift = drawn.shift or 0
        if drawn.feature == "color":
            bands[0] = bands[0].point(lambda hue: (hue + shift) % 256)
        else:
            bands[2] = bands[2].point(lambda value: min(max(value + shift, 0), 255))
        return Image.merge("HSV", bands).convert("RGB")
    if drawn.feature == "background":
        changed = image.filter(ImageFilter.GaussianBlur(drawn.radius or 0))
    else:
        changed = image.copy()
        brush = ImageDraw.Draw(changed)
        for region in objects:
            if region.id in (drawn.object_ids or ()):
                x, y, width, height = region.box
                brush.rectangle((x, y, x + width - 1, y + height - 1), fill=0)
    changed.paste(image, mask=person)
    return changed


def both(n: int, image: np.ndarray, feature: Feature, strength: Strength) -> tuple[Call, Call]:
    """The perturbation of one photograph with Pillow, and with truegap."""
    height, width = image.shape[:2]
    person = np.zeros((height, width), bool)
    person[height // 4 :, width // 3 : 2 * width // 3] = True
    objects = [Region(i, "object", (i * width / 10, height / 3, width / 12, height / 4)) for i in range(10)]
    drawn = draw(feature, strength, image_id=str(n), objects=objects)
    return (
        partial(with_pillow, Image.fromarray(image), drawn, Image.fromarray(person), objects),
        partial(perturb, image, feature, strength, image_id=str(n), person_mask=person, objects=objects),
    )


def milliseconds(call: Call) -> float:
    """Of this process: other work on the machine disturbs them less than the clock's."""
    started = time.process_time()
    call()
    return 1e3 * (time.process_time() - started)


def main() -> None:
    cv2.setNumThreads(1)
    images = photographs(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    print(f"{len(images)} photographs, {np.mean([i.size // 3 for i in images]) / 1e6:.2f} megapixels on average")
    print(f"{'config':<20}{'Pillow ms':>10}{'truegap ms':>12}{'ratio':>8}   (median over {ROUNDS} rounds, in turn)")
    for feature in Feature:
        for strength in Strength:
            pillow, truegap = zip(*(both(n, image, feature, strength) for n, image in enumerate(images)), strict=True)
            # Each side goes through all photographs, as one does who uses it, then the other does.
            times = np.array([[[milliseconds(c) for c in calls] for calls in (pillow, truegap)] for _ in range(ROUNDS)])
            theirs, ours = np.median(times, axis=0).mean(axis=1)
            print(f"{feature + '-' + strength:<20}{theirs:>10.2f}{ours:>12.2f}{theirs / ours:>8.1f}", flush=True)
    where_time_goes(images[0])


def where_time_goes(image: np.ndarray) -> None:
    height, width = image.shape[:2]
    mask = np.ones((height, width), np.uint8)
    planes = to_hsv(image)
    steps: dict[str, Call] = {
        "color, lighting: to HSV": lambda: to_hsv(image),
        "color, lighting: shift and back": lambda: from_hsv(planes, hue=20),
        "background: three box blurs": lambda: gaussian_blur(image, 40),
        "background, object: paste by mask": lambda: cv2.copyTo(image, mask, image.copy()),
        "all: draw": lambda: draw("color", "strong", image_id="1"),
    }
    print(f"\nwhere the time goes ({width} x {height}), median milliseconds")
    for name, step in steps.items():
        print(f"{name:<36}{np.median([milliseconds(step) for _ in range(50)]):>8.3f}")


if __name__ == "__main__":
    main()

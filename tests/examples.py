"""Tiny real images as examples, for tests of several rooms."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from PIL import Image

from truegap.regions import masks
from truegap.schema import Example, FilterStep, ImageBytes, Region, Selection

SIZE = (40, 60)


def encoded(seed: int = 0, size: tuple[int, int] = SIZE, fmt: str = "JPEG", **options) -> bytes:
    """A smooth random picture, encoded."""
    rng = np.random.default_rng(seed)
    small = Image.fromarray(rng.integers(0, 256, (6, 8, 3), np.uint8))
    stream = BytesIO()
    small.resize((size[1], size[0])).save(stream, fmt, **options)
    return stream.getvalue()


def person_mask(size: tuple[int, int] = SIZE) -> np.ndarray:
    mask = np.zeros(size, bool)
    mask[5:30, 20:40] = True
    return mask


def example(number: int, gender: str = "woman", **changes) -> Example:
    person = Region(1, "person", (20, 5, 20, 25), masks.encode(person_mask()))
    objects = tuple(Region(10 + i, "cup", (6.0 * i, 25.5, 5.0, 12.0)) for i in range(8))
    fields = {
        "image_id": str(number),
        "gender": gender,
        "image": ImageBytes(encoded(number)),
        "size": SIZE,
        "persons": (person,),
        "objects": objects,
        "source": f"val/{number}.jpg",
        "license": "CC BY 2.0",
        "attribution": "https://example.org/photo",
    }
    return Example(**fields | changes)


def selection(n: int = 6, *others: Example) -> Selection:
    """Half women, half men, and any others after them."""
    examples = [example(i, "woman" if i % 2 == 0 else "man") for i in range(n)] + list(others)
    step = FilterStep("archive", *(sum(e.gender == g for e in examples) for g in ("woman", "man")))
    return Selection(examples, [step], [])

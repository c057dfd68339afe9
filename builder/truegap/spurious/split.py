"""Balanced training, validation and test images, drawn by a key per image: the order of rows changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truegap.perturbations.keys import Key
from truegap.schema import GENDERS

LEAST = 10
"""Images of each gender: eight to train with, one to stop by, one to test on."""

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Split:
    """Positions of images, each part holding as many women as men, in the order of the image ids.

    Attributes:
        train: Eight tenths.
        validation: One tenth: decides when to stop.
        test: One tenth.
    """

    train: Places
    validation: Places
    test: Places


def balanced_split(ids: Sequence[str], genders: Sequence[str], *, benchmark: str = "", seed: int = 0) -> Split:
    """Splits images 8:1:1, women and men balanced in every part.

    All of the smaller group is used, and a sample of the larger one that changes with the seed.

    Args:
        ids: Per image, unique.
        genders: Per image, `woman` or `man`.
        benchmark: The benchmark's name, part of the key.
        seed: Another seed, another split.

    Raises:
        ValueError: There are fewer than `LEAST` images of a gender.

    >>> split = balanced_split([str(n) for n in range(30)], ["woman", "man", "man"] * 10)
    >>> len(split.train), len(split.validation), len(split.test)
    (16, 2, 2)
    """
    groups = [[n for n, gender in enumerate(genders) if gender == each] for each in GENDERS]
    size = min(map(len, groups))
    if size < LEAST:
        raise ValueError(f"{size} images of a gender: {LEAST} are needed")
    tenth = round(size / 10)
    parts: tuple[list[int], ...] = ([], [], [])
    for group in groups:
        order = sorted(group, key=lambda n: (Key(benchmark, ids[n], "spurious", seed).uniform(), ids[n]))[:size]
        for part, some in zip(parts, (order[2 * tenth :], order[tenth : 2 * tenth], order[:tenth]), strict=True):
            part.extend(some)
    return Split(*(np.array(sorted(part, key=lambda n: ids[n]), np.int64) for part in parts))

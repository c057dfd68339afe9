"""Gender-balanced subsets that depend on nothing but the seed and the images' ids."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from ._check import GENDERS, Ints, ScoreError, all_groups, codes, same_length, whole

LARGEST = 10_000
"""Five are usual; each is ranked and resampled apart."""


def default_k(n: int) -> int:
    """The k of MaxSkew@k where none is asked for: 1000 where at least 2,000 images are ranked, else a tenth of them.

    Args:
        n: Images that are ranked (of one balanced draw).

    Returns:
        k, at least 1.

    >>> default_k(3136), default_k(200), default_k(5)
    (1000, 20, 1)
    """
    return 1000 if n >= 2000 else max(n // 10, 1)  # noqa: PLR2004  the rule's own number


def balanced_draws(
    genders: Sequence[Any] | npt.NDArray[Any],
    *,
    draws: int = 5,
    seed: int = 0,
    ids: Sequence[Any] | None = None,
    groups: Sequence[str] = GENDERS,
) -> list[Ints]:
    """Subsets with as many images of every group as the smallest group has.

    All of the smallest group, and of each larger one the images with the smallest SHA-256 of (seed, draw, id): with
    ids, what is drawn depends neither on the order of the images nor on any library's random numbers.

    Args:
        genders: `(images,)` label of each image.
        draws: How many subsets.
        seed: Another seed gives other subsets.
        ids: `(images,)` unique ids; without them an image's place is its id.
        groups: The labels that can occur.

    Returns:
        One array of indices per draw, ascending.

    Raises:
        ScoreError: An unknown label, a group without images, an id that occurs twice, or no number of
            draws.

    >>> [draw.tolist() for draw in balanced_draws(["man", "woman", "man", "man"], draws=2)]
    [[0, 1], [1, 3]]
    """
    whole(draws, "draws", least=1, most=LARGEST)
    label = codes(genders, "genders", groups)
    smallest = int(all_groups(label, "genders", groups).min())
    names = [str(place) for place in range(len(label))] if ids is None else [str(each) for each in ids]
    same_length(len(label), names, "ids", "genders")
    if len(set(names)) < len(names):
        twice = next(row for row, name in enumerate(names) if name in names[:row])
        raise ScoreError(f"ids: row {twice}: {names[twice]!r} occurs twice; give every image its own id")
    members = [np.flatnonzero(label == group) for group in range(len(groups))]
    return [np.sort(np.concatenate([_sample(m, smallest, names, seed, d) for m in members])) for d in range(draws)]


def _sample(members: Ints, size: int, names: Sequence[str], seed: int, draw: int) -> Ints:
    if len(members) == size:
        return members
    keys = [sha256(f"{seed}\0{draw}\0{names[member]}".encode()).digest() for member in members]
    chosen = sorted(range(len(members)), key=keys.__getitem__)[:size]
    return members[np.array(chosen, dtype=np.int64)]

"""Random numbers that depend on their key alone.

A generator's stream depends on who drew before; a hash does not. So what is drawn for an image is the same
in any order, on any number of workers, on any machine and with any version of NumPy.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

_json = json.JSONEncoder().encode


@dataclass(frozen=True, slots=True)
class Key:
    """What a draw depends on; not on the strength, so that a stronger draw extends a weaker one.

    Attributes:
        benchmark: The benchmark's name.
        image_id: The image's id within the benchmark.
        feature: The perturbed feature.
        seed: The build's seed.
    """

    benchmark: str
    image_id: str
    feature: str
    seed: int

    def uniform(self, *what: str | int) -> float:
        """A number in [0, 1), uniform over keys, for the draw named by `what`.

        >>> key = Key("coco-gender", "139", "color", 0)
        >>> key.uniform("shift") == key.uniform("shift") != key.uniform("other")
        True
        """
        # As `json.dumps` writes the list of all parts; those of the key are written once.
        name = ", ".join((_opening(self), *map(_json, what))) + "]"
        digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
        # 53 bits are what a double holds: more could round up to 1.
        return (int.from_bytes(digest, "big") >> 11) / 2**53

    def order(self, ids: Sequence[int]) -> list[int]:
        """The ids in a random order; equal ids stay together, so ids should be unique."""
        return list(_ordered(self, tuple(ids)))


@lru_cache(maxsize=8)
def _opening(key: Key) -> str:
    return json.dumps([key.benchmark, key.image_id, key.feature, key.seed])[:-1]


@lru_cache(maxsize=8)
def _ordered(key: Key, ids: tuple[int, ...]) -> list[int]:
    """Kept for the other strengths of the same image, which draw from the same order."""
    return sorted(ids, key=lambda each: (key.uniform("order", each), each))

"""Random numbers that depend on nothing but their name.

A draw is a hash of (seed, image index, name of the draw): it is the same in every process, in every order and
with every version of NumPy, and a draw that is added later leaves the others as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")


def hashed(*parts: object) -> float:
    """A number in [0, 1), uniform over the parts' texts (53 bits of BLAKE2b)."""
    text = "\x1f".join(map(str, parts)).encode()
    return (int.from_bytes(blake2b(text, digest_size=8).digest(), "big") >> 11) * 2.0**-53


@dataclass(frozen=True, slots=True)
class Draws:
    """The named draws of one image."""

    seed: int
    index: int

    def uniform(self, name: str, low: float = 0.0, high: float = 1.0) -> float:
        """A number in [low, high)."""
        return low + (high - low) * hashed("synthetic", self.seed, self.index, name)

    def integer(self, name: str, count: int) -> int:
        """An integer in 0 ... count - 1."""
        return int(self.uniform(name) * count)

    def choice(self, name: str, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.integer(name, len(options))]

    def sample(self, name: str, options: Sequence[T], count: int) -> list[T]:
        """`count` different options in random order."""
        order = sorted(range(len(options)), key=lambda i: hashed("synthetic", self.seed, self.index, name, i))
        return [options[i] for i in order[:count]]

"""How much of a benchmark is asked: all of it, or a frozen sample that a small machine finishes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from truegap.errors import UserError
from truegap.protocols.base import Asking, Images
from truegap.schema import CONFIGS


@dataclass(frozen=True, slots=True)
class Profile:
    """A named size of a run; a sample once released never changes under its version.

    Attributes:
        name: What a user types.
        version: What the run's record says; also the key by which images are drawn.
        images: How many at most, half of them women; None for all.
        configs: Which configs; None for all that the benchmark has.
    """

    name: str
    version: str
    images: int | None = None
    configs: tuple[str, ...] | None = None

    def note(self, every: Images, asking: Asking[Any]) -> str | None:
        """How much was left out, and what that costs; None where nothing was."""
        chosen = asking.images
        if len(chosen.ids) == len(every.ids):
            return None
        return "; ".join([f"{self.version}: {len(chosen.ids)} of {len(every.ids):,} images", *asking.costs(every)])


FULL = Profile("full", "full")
LITE = Profile("lite", "lite-1", images=200, configs=CONFIGS)
PROFILES = {each.name: each for each in (FULL, LITE)}


def profile(name: str) -> Profile:
    """A profile by its name.

    Raises:
        UserError: There is none of that name.
    """
    if name not in PROFILES:
        raise UserError(f"unknown profile {name!r}: use {' or '.join(PROFILES)}")
    return PROFILES[name]

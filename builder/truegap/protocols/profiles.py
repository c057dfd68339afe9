"""How much of a benchmark is asked: all of it, or a frozen sample that a small machine finishes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from truegap.errors import UserError
from truegap.protocols.base import Images
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

    def note(self, every: Images, chosen: Images) -> str | None:
        """What the sample costs in certainty; None where nothing was left out."""
        if len(chosen.ids) == len(every.ids):
            return None
        wider = _spread(chosen) / _spread(every)
        return (
            f"{self.version}: {len(chosen.ids)} of {len(every.ids):,} images; intervals are about {wider:.1f} times "
            "as wide as those of all images"
        )


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


def _spread(images: Images) -> float:
    """To what the standard error of a difference of two means is proportional."""
    return math.sqrt(sum(1 / max(images.count(gender), 1) for gender in ("woman", "man")))

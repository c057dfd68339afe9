"""Filter steps, each with its counts and the reason of everything that it drops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from truegap.schema import Dropped, FilterStep, Gender


class Funnel:
    """What is left of an archive, step by step.

    Attributes:
        kept: The label, or None, of every image that is left, by image id in rising order.
        steps: The counts after every step so far.
        dropped: Everything that was dropped so far.
    """

    def __init__(self, labels: Mapping[int, Gender | None], apart: Sequence[Dropped]) -> None:
        """Start with what the archive holds.

        Args:
            labels: The label, or None, by image id.
            apart: What the archive holds beside these and cannot be used at all.
        """
        self.kept = {image: labels[image] for image in sorted(labels)}
        self.steps: list[FilterStep] = []
        self.dropped: list[Dropped] = list(apart)
        self._count("archive", len(apart))

    def keep(self, name: str, reason: Callable[[int], str | None]) -> None:
        """Drop every image for which `reason` gives one, and count what is left."""
        for image in list(self.kept):
            if why := reason(image):
                del self.kept[image]
                self.dropped.append(Dropped(str(image), why))
        self._count(name)

    def summary(self) -> str:
        """The counts of all steps on one line: women + men + others."""
        return ", ".join(f"{step.name} {step.woman}+{step.man}+{step.other}" for step in self.steps)

    def _count(self, name: str, apart: int = 0) -> None:
        counts = Counter(self.kept.values())
        self.steps.append(FilterStep(name, counts["woman"], counts["man"], counts[None] + apart))

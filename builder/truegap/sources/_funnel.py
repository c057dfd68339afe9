"""Filter steps, each with its counts and the reason of everything that it drops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from truegap.errors import UserError
from truegap.regions.boxes import Unusable
from truegap.schema import Dropped, Example, FilterStep, Gender, Selection, Size
from truegap.sources._photos import upright_size

Id = TypeVar("Id", int, str)


class Funnel(Generic[Id]):
    """What is left of an archive, step by step.

    Attributes:
        kept: The label, or None, of every image that is left, by image id in rising order.
        steps: The counts after every step so far.
        dropped: Everything that was dropped so far.
    """

    def __init__(self, labels: Mapping[Id, Gender | None], apart: Sequence[Dropped] = ()) -> None:
        """Start with what the archive holds.

        Args:
            labels: The label, or None, by image id.
            apart: What the archive holds beside these and cannot be used at all.
        """
        self.kept: dict[Id, Gender | None] = {image: labels[image] for image in sorted(labels)}
        self.steps: list[FilterStep] = []
        self.dropped: list[Dropped] = list(apart)
        self._count("archive", len(apart))

    def keep(self, name: str, reason: Callable[[Id], str | None]) -> None:
        """Drop every image for which `reason` gives one, and count what is left."""
        for image in list(self.kept):
            if why := reason(image):
                del self.kept[image]
                self.dropped.append(Dropped(str(image), why))
        self._count(name)

    def keep_photos(self, files: Mapping[Id, Path], *, exif: bool = True) -> dict[Id, Size]:
        """Drop every image whose file is absent or no photograph; the sizes of the others.

        Args:
            files: Where each image should be.
            exif: See `upright_size`.
        """
        sizes: dict[Id, Size] = {}

        def unreadable(image: Id) -> str | None:
            try:
                sizes[image] = upright_size(files[image], exif=exif)
            except Unusable as problem:
                return str(problem)
            return None

        self.keep("image_file", lambda image: None if image in files else "image file is absent")
        self.keep("image_header", unreadable)
        return sizes

    def selection(
        self,
        name: str,
        folder: Path,
        example: Callable[[Id, Gender], Example],
        options: Mapping[str, Any],
        repairs: Mapping[str, int],
    ) -> Selection:
        """What is left, as examples.

        Args:
            name: Of the source, for the message.
            folder: Where the archive is, for the message.
            example: Makes an example of an image and its label.
            options: Every convention at its value.
            repairs: What was mended, counted by reason.

        Raises:
            UserError: No image with a label is left.
        """
        examples = [example(image, gender) for image, gender in self.kept.items() if gender is not None]
        if not examples:
            raise UserError(f"{name}: no image is left in {folder} ({self.summary()})")
        mended = {why: number for why, number in sorted(repairs.items()) if number}
        return Selection(examples, self.steps, self.dropped, options, mended)

    def summary(self) -> str:
        """The counts of all steps on one line, and why most were dropped."""
        counts = ", ".join(f"{step.name} {step.woman}+{step.man}+{step.other}" for step in self.steps)
        reasons = Counter(each.reason for each in self.dropped).most_common(1)
        why = f"; most were dropped for: {reasons[0][0]}" if reasons else ""
        return f"women+men+others: {counts}{why}"

    def _count(self, name: str, apart: int = 0) -> None:
        counts = Counter(self.kept.values())
        self.steps.append(FilterStep(name, counts["woman"], counts["man"], counts[None] + apart))

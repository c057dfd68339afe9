"""What an image must pass before questions are asked about it; every filter has a name, counts and reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from truegap.build.images import UnusableImageError, decode
from truegap.counterfactual.marks import read_mark
from truegap.counterfactual.pictures import Kind, Picture
from truegap.models.base import DualEncoder
from truegap.schema import GENDERS, Dropped, FilterStep, Gender, Region

SHOWN: Mapping[Gender, str] = {"woman": "a photo of a woman", "man": "a photo of a man"}
"""Texts between which the dual encoder chooses."""

KINDS: tuple[Kind, ...] = ("base", "counterfactual")


@dataclass(frozen=True, slots=True)
class Shot:
    """One image of a picture.

    Attributes:
        id: Its path from the folder of the benchmark.
        path: Its file.
        gender: Who it should show.
    """

    id: str
    path: Path
    gender: Gender

    def open(self) -> Image.Image:
        """Upright, RGB.

        Raises:
            UnusableImageError: It cannot be decoded.
        """
        try:
            return Image.fromarray(decode(self.path.read_bytes()))
        except OSError:
            raise UnusableImageError("no such image") from None


@dataclass(frozen=True, slots=True)
class Filter:
    """A named condition.

    Attributes:
        name: As counts and records have it.
        failures: Gives, for some images, those that fail by id, with a reason without numbers.
    """

    name: str
    failures: Callable[[Sequence[Shot]], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Filtered:
    """What is left.

    Attributes:
        kept: Pictures whose base and counterfactual passed all filters.
        steps: Pictures after each filter, by the gender of the base; the first step is what there was.
        dropped: The others, by name, with the reason of the first filter that they failed.
    """

    kept: tuple[Picture, ...]
    steps: tuple[FilterStep, ...]
    dropped: tuple[Dropped, ...]


def keep(folder: Path, pictures: Sequence[Picture], filters: Iterable[Filter]) -> Filtered:
    """Applies filters in their order, each to what the ones before it left.

    Args:
        folder: Of the benchmark.
        pictures: Base images with their counterfactuals.
        filters: The conditions; both images of a picture must pass.
    """
    left = list(pictures)
    steps = [_count("images", left)]
    dropped: list[Dropped] = []
    for each in filters:
        shots = [
            Shot(picture.path(kind), folder / picture.path(kind), picture.shown(kind))
            for picture in left
            for kind in KINDS
        ]
        failures = each.failures(shots) if shots else {}
        passed = []
        for picture in left:
            reason = next((f"{kind}: {failures[at]}" for kind in KINDS if (at := picture.path(kind)) in failures), None)
            if reason is None:
                passed.append(picture)
            else:
                dropped.append(Dropped(picture.name, f"{each.name}: {reason}"))
        left = passed
        steps.append(_count(each.name, left))
    return Filtered(tuple(left), tuple(steps), tuple(dropped))


def readable() -> Filter:
    """Images that can be decoded and show anything: a pipeline in half precision may give a single colour."""

    def failures(shots: Sequence[Shot]) -> dict[str, str]:
        found = {}
        for shot in shots:
            try:
                pixels = np.asarray(shot.open())
            except UnusableImageError as reason:
                found[shot.id] = str(reason)
                continue
            if (pixels == pixels[0, 0]).all():
                found[shot.id] = "one colour only"
        return found

    return Filter("readable", failures)


def safe(classify: Callable[[Image.Image], str | None] | None = None) -> Filter:
    """Images that nobody calls unsafe: neither the checker of the pipeline that made them, nor the classifier.

    Comes before `readable`: the checkers of diffusers blacken what they flag.

    Args:
        classify: Gives the reason why an image is unsafe, None if it is not; None to rely on the pipelines alone.
    """

    def failures(shots: Sequence[Shot]) -> dict[str, str]:
        found = {}
        for shot in shots:
            reason: str | None = None
            if read_mark(shot.path).get("unsafe"):
                reason = "flagged by the pipeline's safety checker"
            elif classify is not None:
                try:
                    reason = classify(shot.open())
                except UnusableImageError:
                    continue  # `readable` says so
            if reason is not None:
                found[shot.id] = reason
        return found

    return Filter("safety", failures)


def one_person(persons: Callable[[Sequence[Shot]], Mapping[str, Sequence[Region]]]) -> Filter:
    """Images of exactly one person.

    Args:
        persons: Finds the persons of images, by image id; an image without any may be absent.
    """

    def failures(shots: Sequence[Shot]) -> dict[str, str]:
        found = persons(shots)
        counts = {shot.id: len(found.get(shot.id, ())) for shot in shots}
        return {
            name: "nobody was detected" if not count else "several persons were detected"
            for name, count in counts.items()
            if count != 1
        }

    return Filter("one_person", failures)


def shown_gender(
    model: DualEncoder, *, margin: float = 0.0, texts: Mapping[Gender, str] = SHOWN, batch_size: int = 32
) -> Filter:
    """Images that a dual encoder takes for the gender that they should show.

    Args:
        model: Chooses between two texts by cosine.
        margin: By how much the right text must be closer, 0 to 2; a tie never passes.
        texts: One per gender.
        batch_size: Images per forward pass.
    """

    def failures(shots: Sequence[Shot]) -> dict[str, str]:
        words = model.encode_texts([texts["woman"], texts["man"]])
        found = {}
        for start in range(0, len(shots), batch_size):
            batch = shots[start : start + batch_size]
            similarity = model.encode_images([shot.open() for shot in batch], batch_size) @ words.T
            for shot, (woman, man) in zip(batch, similarity.tolist(), strict=True):
                lead = woman - man if shot.gender == "woman" else man - woman
                if lead <= 0:
                    found[shot.id] = "looks like the other gender"
                elif lead < margin:
                    found[shot.id] = "gender is not clear"
        return found

    return Filter("shown_gender", failures)


def _count(name: str, pictures: Sequence[Picture]) -> FilterStep:
    return FilterStep(name, *(sum(picture.gender == gender for picture in pictures) for gender in GENDERS))

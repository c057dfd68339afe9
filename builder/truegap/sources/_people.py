"""Archives that list annotated people: which image shows whom, by a named rule, and as regions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from truegap.regions.boxes import CUT, Unusable, clipped, scaled, segmentation
from truegap.regions.masks import MaskError
from truegap.schema import Box, Dropped, Example, Gender, ImageFile, Region, Selection, Size
from truegap.sources._funnel import Funnel

Rule = Literal["annotated", "uniform_presentation", "largest_box"]


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody whom annotators looked at.

    Attributes:
        id: Unique within the image.
        gender: The label, or None.
        why: Why there is none, such as `non-binary`.
        box: As `unit` says; None if it cannot be used.
        problem: Why it cannot be used.
        mask: The segmentation as its file has it, or None.
        columns: What describes the person, if it is the labelled one.
    """

    id: int
    gender: Gender | None
    why: str = ""
    box: Box | None = None
    problem: str = ""
    mask: Any = None
    columns: Mapping[str, Any] = field(default_factory=dict)

    @property
    def area(self) -> float:
        """Of the box, in its own unit."""
        return self.box[2] * self.box[3] if self.box else 0.0


@dataclass(frozen=True, slots=True)
class Choice:
    """Who is labelled in an image, or why nobody is."""

    lead: Person | None
    gender: Gender | None
    no_label: str | None = None
    ruled_out: str | None = None


def choose(rule: Rule, people: Sequence[Person]) -> Choice:
    """The label of an image.

    Args:
        rule: `annotated`: exactly one person is annotated. `uniform_presentation`: all who have a label share it; those
            without one do not count. `largest_box`: the label is that of the largest box.
        people: Everybody who is annotated in it.
    """
    labelled = [person for person in people if person.gender is not None]
    if not labelled:
        reasons = ", ".join(sorted({person.why for person in people})) or "nobody annotated"
        return Choice(None, None, no_label=f"nobody labelled woman or man: {reasons}")
    lead = max(labelled, key=lambda person: (person.area, -person.id))
    genders = {person.gender for person in labelled}
    gender = lead.gender if len(genders) == 1 else None
    if rule == "largest_box":
        largest = max(people, key=lambda person: (person.area, -person.id))
        why = None if largest is lead else f"largest box is not labelled woman or man: {largest.why}"
        return Choice(lead, lead.gender, ruled_out=why)
    if rule == "annotated" and len(people) > 1:
        return Choice(lead, gender, ruled_out=f"several annotated persons: {len(people)}")
    return Choice(lead, gender, ruled_out=None if gender else "annotated persons of both presentations")


@dataclass(frozen=True, slots=True)
class PeopleArchive:
    """What a source has read, ready for `select`.

    Attributes:
        name: Of the source.
        folder: Where the archive is.
        people: Everybody who is annotated, by image id.
        files: The image file, by image id.
        rule: How an image gets its label.
        fractions: Boxes are in shares of the image, not in pixels.
        apart: What the archive holds beside these and cannot be used at all.
        repairs: What was mended, counted by reason.
        options: Every convention at its value.
        terms: Licence and attribution of an image.
        objects: Everything else in an image of this size.
        masks: The mask of a person whose file has no segmentation, given image, person, box in pixels and size.
        columns: Of the image, beside those of the labelled person.
    """

    name: str
    folder: Path
    people: Mapping[str, Sequence[Person]]
    files: Mapping[str, Path]
    rule: Rule
    fractions: bool
    apart: Sequence[Dropped]
    repairs: Counter[str]
    options: Mapping[str, Any]
    terms: Callable[[str], tuple[str, str]]
    objects: Callable[[str, Size], tuple[Region, ...]] = lambda _image, _size: ()
    masks: Callable[[str, Box, Size], str | None] = lambda _image, _box, _size: None
    columns: Callable[[str], Mapping[str, Any]] = lambda _image: {}


def select(archive: PeopleArchive) -> Selection:
    """The labelled images of an archive, with persons and objects.

    A person without a usable box makes the image unusable: perturbations could touch them. A mask that cannot be used
    leaves the box alone, which is counted.

    Raises:
        UserError: No image is left.
    """
    choices = {image: choose(archive.rule, people) for image, people in archive.people.items()}
    funnel = Funnel({image: choice.gender for image, choice in choices.items()}, archive.apart)
    persons: dict[str, tuple[Region, ...]] = {}

    def boxed(image: str) -> str | None:
        try:
            persons[image] = _persons(archive, image, choices[image].lead, sizes[image])
        except Unusable as problem:
            return str(problem)
        return None

    funnel.keep("label", lambda image: choices[image].no_label)
    funnel.keep(archive.rule, lambda image: choices[image].ruled_out)
    sizes = funnel.keep_photos(archive.files, exif=not archive.fractions)
    funnel.keep("person_box", boxed)

    def example(image: str, gender: Gender) -> Example:
        lead = choices[image].lead
        assert lead is not None, "the step `label` keeps images with a labelled person only"
        license_name, attribution = archive.terms(image)
        return Example(
            image_id=image,
            gender=gender,
            image=ImageFile(archive.files[image]),
            size=sizes[image],
            persons=persons[image],
            objects=archive.objects(image, sizes[image]),
            source=archive.files[image].relative_to(archive.folder).as_posix(),
            license=license_name,
            attribution=attribution,
            extra={**lead.columns, **archive.columns(image)},
        )

    return funnel.selection(archive.name, archive.folder, example, archive.options, archive.repairs)


def wanted(rule: Rule, people: Mapping[str, Sequence[Person]], files: Iterable[str]) -> set[str]:
    """The images that will pass the rule and have a file: those whose further annotations are worth reading."""
    here = set(files)
    choices = ((image, choose(rule, each)) for image, each in people.items() if image in here)
    return {image for image, choice in choices if not choice.no_label and not choice.ruled_out}


def _persons(archive: PeopleArchive, image: str, lead: Person | None, size: Size) -> tuple[Region, ...]:
    """Everybody in the image, the labelled person first, then by area."""
    ordered = sorted(archive.people[image], key=lambda person: (person is not lead, -person.area, person.id))
    regions = []
    mended: Counter[str] = Counter()
    for person in ordered:
        if person.box is None:
            raise Unusable(f"a person cannot be used: {person.id}: {person.problem}")
        try:
            box, cut = clipped(scaled(person.box, size) if archive.fractions else person.box, size)
        except MaskError as problem:
            raise Unusable(f"a person cannot be used: {person.id}: {problem}") from None
        mended[CUT] += cut
        regions.append(Region(person.id, "person", box, _mask(archive, image, person, box, size, mended)))
    archive.repairs.update(+mended)
    return tuple(regions)


def _mask(archive: PeopleArchive, image: str, person: Person, box: Box, size: Size, mended: Counter[str]) -> str | None:
    try:
        if person.mask is None:
            return archive.masks(image, box, size)
        return segmentation(person.mask, size)
    except MaskError as problem:
        mended[f"person kept with the box alone: {problem}"] += 1
        return None

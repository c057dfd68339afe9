"""COCO-gender: photographs of COCO 2014 or 2017 with one person, labelled by captions or by annotators.

The folder is COCO's as it unpacks: `annotations/instances_<split>.json`, `annotations/captions_<split>.json` and the
photographs in `<split>/` or `images/<split>/`. The paper does not state its filters (Hirota et al. 2025, section 3), so
each has a name here and every step is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from truegap.errors import UserError
from truegap.regions.boxes import Unusable
from truegap.schema import Example, Gender, ImageFile, Region, Selection
from truegap.sources._coco import Annotation, Instances, Photo
from truegap.sources._coco_archive import SPLITS, find_splits, read_archive
from truegap.sources._coco_regions import is_person, split_regions
from truegap.sources._funnel import Funnel
from truegap.sources._labels import Labels, from_annotators, from_captions, from_pickles
from truegap.sources._photos import files
from truegap.sources._source import Names, Options, Source, listed

FILTERS = ("annotated", "coco_person", "uniform_presentation")
DEFAULT_FILTERS = {
    "captions": ("coco_person",),
    "annotators": ("annotated", "coco_person"),
    "balanced": ("coco_person",),
}

# (ours) Words for one person and their plurals; job titles are left out, since they would tie the label to the job.
WOMAN_WORDS = "woman,women,lady,ladies,girl,girls,female,females,mother,mom,daughter,sister,wife,she,her,hers,herself"
MAN_WORDS = "man,men,gentleman,gentlemen,guy,guys,boy,boys,male,males,father,dad,son,brother,husband,he,him,his,himself"


class CocoGenderOptions(Options):
    """How COCO becomes COCO-gender."""

    labels: Literal["captions", "annotators", "balanced"] = "captions"
    """Who says what the person looks like: words of the captions, the annotators of Zhao et al. (2021), or the label
    files of Wang et al. (2019), "Balanced Datasets Are Not Enough", which go back to captions too."""
    labels_file: Path | None = None
    """The annotators' CSV or the label files (`val.data`), or the folder that holds them; not for captions."""
    split: Names = ("auto",)
    """`auto` (all that are there), or names of splits."""
    single_person: Names | None = None
    """Filters in the order in which they are applied; None for those that suit the labels, `DEFAULT_FILTERS`.

    - `annotated`: the annotators looked at exactly one person (small ones were not shown to them).
    - `coco_person`: COCO has exactly one person, small ones included, and no crowd of persons.
    - `uniform_presentation`: any number of persons, all of whom the label covers. Captions that name women and men, and
      the annotators' "Both", have no label here, so that this filter leaves all that are labelled.
    """
    woman_words: Names = Field(default=listed(WOMAN_WORDS), min_length=1)
    """Words of a caption that name a woman."""
    man_words: Names = Field(default=listed(MAN_WORDS), min_length=1)
    """Words of a caption that name a man."""

    @model_validator(mode="after")
    def _fit_together(self) -> CocoGenderOptions:
        if self.labels == "annotators" and self.labels_file is None:
            raise ValueError('labels="annotators" needs labels_file, the CSV with the columns id and bb_gender')
        if self.labels == "balanced" and self.labels_file is None:
            raise ValueError('labels="balanced" needs labels_file, the folder with train.data, val.data or test.data')
        if self.labels == "captions" and self.labels_file is not None:
            raise ValueError('labels_file needs labels="annotators" or "balanced"')
        if unknown := [name for name in self.filters if name not in FILTERS]:
            raise ValueError(f"single_person has no filter {', '.join(unknown)}; there are: {', '.join(FILTERS)}")
        if self.labels != "annotators" and "annotated" in self.filters:
            raise ValueError('single_person="annotated" needs labels="annotators"')
        if unknown := [name for name in self.split if name not in (*SPLITS, "auto")]:
            raise ValueError(f"there is no split {', '.join(unknown)}; there are: auto, {', '.join(SPLITS)}")
        if both := sorted(set(self.woman_words) & set(self.man_words)):
            raise ValueError(f"words for woman and for man: {', '.join(both)}")
        return self

    @property
    def filters(self) -> tuple[str, ...]:
        """The single-person filters in their order."""
        return DEFAULT_FILTERS[self.labels] if self.single_person is None else self.single_person


def read(folder: Path, options: CocoGenderOptions) -> Selection:
    """The selection; `Source.read` checks options and folder first."""
    photos = find_splits(folder, options.split)
    if options.labels_file is None:
        captions = [folder / "annotations" / f"captions_{split}.json" for split in photos]
        labels = from_captions(captions, options.woman_words, options.man_words)
    elif options.labels == "annotators":
        labels = from_annotators(options.labels_file)
    else:
        labels = from_pickles(options.labels_file)
    wanted = {image for image, label in labels.by_image.items() if label.gender is not None}
    archive = read_archive(folder, photos, wanted)
    archive.repairs.update(labels.repairs)

    everything = archive.photos.keys() | archive.unusable.keys() | archive.annotated | labels.by_image.keys()
    funnel = Funnel({image: labels.of(image).gender for image in everything}, archive.nameless)
    funnel.keep("image_entry", lambda image: _no_entry(archive, image))
    funnel.keep("label", lambda image: labels.of(image).reason)
    for name in options.filters:
        funnel.keep(name, _filter(name, archive, labels))
    present = {split: files([place]) for split, place in photos.items()}
    funnel.keep("image_file", lambda image: _no_file(archive.photos[image], present))
    regions = _Regions(archive)
    funnel.keep("person_mask", regions.problem)

    def example(image: int, gender: Gender) -> Example:
        photo = archive.photos[image]
        persons, objects = regions.found[image]
        return Example(
            image_id=str(image),
            gender=gender,
            image=ImageFile(photos[photo.split] / photo.file_name),
            size=photo.size,
            persons=persons,
            objects=objects,
            source=photo.source,
            license=photo.license,
            attribution=photo.attribution,
        )

    resolved = _resolved(options, labels, list(photos))
    return funnel.selection("coco-gender", folder, example, resolved, archive.repairs)


SOURCE = Source("coco-gender", CocoGenderOptions, read)


def _no_entry(archive: Instances, image: int) -> str | None:
    return archive.unusable.get(image) or (None if image in archive.photos else "no image entry in the instances file")


def _filter(name: str, archive: Instances, labels: Labels) -> Callable[[int], str | None]:
    if name == "annotated" and not labels.counts_persons:
        raise UserError(f"single_person='annotated' needs the column skin or ratio in {labels.origin['labels_file']}")

    def annotated(image: int) -> str | None:
        persons = labels.of(image).persons
        if persons is None:
            return "annotators' list of persons cannot be read"
        if persons == 1:
            return None
        return f"annotators looked at several persons: {persons}" if persons else "annotators looked at nobody"

    def coco_person(image: int) -> str | None:
        people = _people(archive, image)
        if any(person.crowd for person in people):
            return "a crowd of persons in COCO"
        if len(people) == 1:
            return None
        return f"several persons in COCO: {len(people)}" if people else "no person in COCO"

    def uniform_presentation(image: int) -> str | None:
        return labels.of(image).reason

    return {"annotated": annotated, "coco_person": coco_person, "uniform_presentation": uniform_presentation}[name]


def _people(archive: Instances, image: int) -> list[Annotation]:
    return [entry for entry in archive.annotations.get(image, ()) if is_person(entry, archive.categories)]


def _no_file(photo: Photo, present: Mapping[str, Mapping[str, Path]]) -> str | None:
    return None if photo.file_name in present[photo.split] else f"image file is absent: {photo.source}"


class _Regions:
    """Persons and objects by image id, as far as they were asked for."""

    def __init__(self, archive: Instances) -> None:
        self.archive = archive
        self.found: dict[int, tuple[tuple[Region, ...], tuple[Region, ...]]] = {}

    def problem(self, image: int) -> str | None:
        archive = self.archive
        raw = archive.annotations.pop(image, [])  # dropped as it is used, since the file may be large
        try:
            self.found[image] = split_regions(raw, archive.categories, archive.photos[image].size, archive.repairs)
        except Unusable as problem:
            return str(problem)
        return None


def _resolved(options: CocoGenderOptions, labels: Labels, splits: list[str]) -> dict[str, Any]:
    """Every convention at its value; of the annotators' file its name and hash, not where it lies on this machine."""
    chosen: dict[str, Any] = {"labels": options.labels, "split": splits, "single_person": list(options.filters)}
    if options.labels == "captions":
        return chosen | {"woman_words": list(options.woman_words), "man_words": list(options.man_words)}
    return chosen | labels.origin

"""A benchmark's original images and what each shows of a feature, made when it is needed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from PIL import Image

from truegap.build.rows import Regions, row_regions
from truegap.errors import UserError, first_line
from truegap.hub.benchmark import Benchmark, ParquetImages
from truegap.models.cache import image_of
from truegap.protocols.base import ORIGINAL, Images, all_images, balanced_sample
from truegap.schema import GENDERS, Feature
from truegap.spurious.views import VERSION, WHOLE, Lighting, Removal, tells_person, view

NO_PERSON = "no region of a person"
NO_OBJECTS = "no object is annotated in any image"

_PERSONS = ("person_boxes", "person_masks")
_NEEDED: Mapping[str, tuple[str, ...]] = {Feature.BACKGROUND: _PERSONS, Feature.OBJECT: (*_PERSONS, "objects")}
_FIELDS = (*_PERSONS, "objects", "height", "width")


@dataclass(frozen=True, slots=True)
class Pool:
    """Images that may be used, in the order of their ids.

    Attributes:
        benchmark: Its name.
        images: Ids, genders, and their rows.
        lighting: See `views.lighting_patches`.
        removal: See `views.view`.
    """

    benchmark: str
    images: Images
    lighting: Lighting
    removal: Removal
    _encoded: ParquetImages
    _rows: Sequence[Mapping[str, Any]]

    def __len__(self) -> int:
        return len(self.images.ids)

    def codes(self, places: Sequence[int]) -> np.typing.NDArray[np.int64]:
        """Labels: 0 for women, 1 for men."""
        return np.array([GENDERS.index(self.images.genders[n]) for n in places], np.int64)

    def has_person(self, n: int) -> bool:
        """Whether image n has a region of a person."""
        return bool(self._rows[n]["person_boxes"])

    def has_masks(self, n: int) -> bool:
        """Whether every person of image n has a mask."""
        return all(self._rows[n]["person_masks"])

    def labels(self, n: int) -> list[str]:
        """Categories of image n's objects, persons left out."""
        return [each["label"] for each in self._rows[n]["objects"] if not tells_person(each["label"])]

    def key(self, feature: str, n: int) -> str:
        """SHA-256 over all that decides what image n shows of a feature."""
        sha, row = self._encoded.sha256[self.images.places[n]], self._rows[n]
        if feature == WHOLE:
            return sha
        option = {Feature.LIGHTING: self.lighting, Feature.BACKGROUND: self.removal}.get(Feature(feature))
        regions = {name: row[name] for name in _NEEDED.get(feature, ())}
        asked = json.dumps(["spurious", VERSION, feature, option, sha, regions], sort_keys=True)
        return hashlib.sha256(asked.encode()).hexdigest()

    def picture(self, feature: str, n: int) -> Callable[[], Image.Image]:
        """Makes the picture that image n shows of a feature.

        The function raises a UserError where the image cannot be decoded or its regions do not fit it.
        """
        return partial(self._picture, feature, n)

    def _picture(self, feature: str, n: int) -> Image.Image:
        place = self.images.places[n]
        pixels = np.asarray(image_of(self._encoded.sha256[place], self._encoded[place]))
        try:
            regions = self._regions(feature, n, pixels)
            made = view(feature, pixels, regions, lighting=self.lighting, removal=self.removal)
        except (ValueError, OverflowError, TypeError) as error:
            why = first_line(error)
            raise UserError(
                f"image {self.images.ids[n]}: its regions do not fit it ({why}); build the benchmark again"
            ) from error
        return Image.fromarray(made)

    def _regions(self, feature: str, n: int, pixels: np.typing.NDArray[np.uint8]) -> Regions:
        row = self._rows[n]
        if feature not in _NEEDED:
            return Regions(np.zeros(pixels.shape[:2], np.bool_), (), {})
        if pixels.shape[:2] != (row["height"], row["width"]):
            raise ValueError("another size")
        regions = row_regions(row, with_masks=feature == Feature.OBJECT)
        kept = tuple(each for each in regions.objects if not tells_person(each.label))
        return Regions(regions.person_mask, kept, regions.object_masks)


def open_pool(
    benchmark: Benchmark, *, limit: int | None = None, lighting: Lighting = "hsv", removal: Removal = "mask"
) -> Pool:
    """The images of config `original`, split `test`.

    Args:
        benchmark: The opened benchmark.
        limit: A balanced sample of so many; all if None.
        lighting: Channels of that feature.
        removal: How the person goes from the background.

    Raises:
        UserError: The benchmark lacks files, or `limit` is too small.
    """
    name = benchmark.manifest.benchmark
    images = all_images(benchmark)
    if limit is not None:
        images = balanced_sample(images, name, limit, "limit", 0)
    columns = {field: benchmark.column(ORIGINAL, field) for field in _FIELDS}
    rows = [{field: column[place] for field, column in columns.items()} for place in images.places]
    return Pool(name, images, lighting, removal, benchmark.images(ORIGINAL), rows)


def usable(pool: Pool, feature: str) -> tuple[list[int], dict[str, int]]:
    """Which images show a feature, and how many do not, by reason.

    An image without objects shows that it has none; so it counts where others have some.
    """
    places = [*range(len(pool))]
    if feature == Feature.BACKGROUND:
        kept = [n for n in places if pool.has_person(n)]
        return kept, {NO_PERSON: len(places) - len(kept)} if len(kept) < len(places) else {}
    if feature == Feature.OBJECT and not any(pool.labels(n) for n in places):
        return [], {NO_OBJECTS: len(places)}
    return places, {}

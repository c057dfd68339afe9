"""The regions of a recipe: which ones are published, and how the rest comes back.

What is published, and why:

- Persons and objects that a detector or a detections file found are made from the pixels alone; they hold nothing of
  the source's annotation. They are published with box, mask and origin, so that whoever repeats the recipe needs
  neither the detector nor the file. The same holds for a mask that was found so and then given to an annotated person:
  it is published with that person's number in the row, without the annotated box.
- Boxes and masks of the source's annotation are never published: the reader takes them from the source.
- A mask that was drawn *inside of an annotated box*, by GrabCut or a segmenter, tells that box. Where the annotation
  may not be redistributed, neither may that. So it is left out, and drawn again from the reader's copy: GrabCut gives
  the same mask from the same box and picture, a segmenter is looked for under the name and content that the recipe has.
  `masks="all"` publishes these masks too, for sources whose terms allow it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from truegap.build.recipe import Masks, Recipe
from truegap.build.regions import Run, with_regions
from truegap.errors import UserError
from truegap.regions import masks as run_lengths
from truegap.regions.boxes import clipped
from truegap.regions.finders import redrawing
from truegap.regions.masks import MaskError
from truegap.schema import Dropped, Example, Region, Selection

ANNOTATED = "annotation"
_MASK = "; mask: "

Published = Mapping[str, Any]
"""A row of the table of regions."""


def drawn_by(record: Mapping[str, Any] | None) -> str:
    """Who draws masks inside of boxes, as an origin says it, from what a manifest keeps of the finders."""
    maker = (record or {}).get("masks")
    if isinstance(maker, Mapping):
        return f"{maker['model']}@{(maker['revision'] or maker['content'])[:12]}"
    return str(maker)


def published(row: Mapping[str, Any], drawer: str, masks: Masks) -> tuple[list[Published], int]:
    """What a recipe tells of the regions of an image.

    Args:
        row: The image's row in a built benchmark.
        drawer: See `drawn_by`.
        masks: Which masks.

    Returns:
        Rows of the table of regions, and the number of masks drawn inside of annotated boxes that are left out.
    """
    rows: list[Published] = []
    left_out = 0
    for kind, place, region in _regions(row):
        found_by, _, mask_by = region.origin.partition(_MASK)
        common = {"image_id": row["image_id"], "kind": kind, "place": place, "mask": region.mask}
        if found_by != ANNOTATED:
            box = list(region.box)
            rows.append({**common, "id": region.id, "label": region.label, "box": box, "origin": region.origin})
        elif mask_by and (masks == "all" or not (mask_by in (drawer, "box") or mask_by.startswith("box ("))):
            rows.append({**common, "id": None, "label": None, "box": None, "origin": region.origin})
        else:
            left_out += bool(mask_by)
    return rows, left_out


def _regions(row: Mapping[str, Any]) -> Iterator[tuple[str, int, Region]]:
    persons = zip(row["person_boxes"], row["person_masks"], row["person_origins"], strict=True)
    for place, (box, mask, origin) in enumerate(persons):
        yield "person", place, Region(place, "person", tuple(box), mask, origin)
    for place, each in enumerate(row["objects"]):
        yield "object", place, Region(each["id"], each["label"], tuple(each["box"]), each["mask"], each["origin"])


def with_published(
    recipe: Recipe,
    selection: Selection,
    run: Run,
    *,
    cache: Path | None = None,
    advance: Callable[[int], object] = lambda _images: None,
) -> Selection:
    """The recipe's images with the regions that the published benchmark has.

    Args:
        recipe: The recipe.
        selection: Its images as the user's copy has them.
        run: As for `with_regions`.
        cache: As for `with_regions`.
        advance: As for `with_regions`.

    Returns:
        The selection; where nothing was detected, as it was given. Images on which the published regions do not fit are
        dropped with the reason.

    Raises:
        UserError: The table of regions cannot be used, or masks have to be drawn again by something that is not here.
    """
    record = recipe.terms.regions
    if record is None:
        return selection
    by_image: dict[str, list[Published]] = defaultdict(list)
    for each in recipe.regions():
        by_image[each["image_id"]].append(each)
    examples: list[Example] = []
    dropped = list(selection.dropped)
    for example in selection.examples:
        mine = example if record.annotated_objects else replace(example, objects=())
        try:
            examples.append(_restored(mine, by_image[example.image_id]))
        except MaskError as problem:
            dropped.append(Dropped(example.image_id, f"the recipe's regions do not fit: {problem}"))
    if not examples:
        raise UserError(f"the recipe's regions fit none of {len(selection.examples)} images: check --source")
    restored = replace(selection, examples=examples, dropped=dropped)
    if recipe.terms.masks_to_draw:
        finders = redrawing(record.masks, object_masks=record.object_masks)
        drawn = with_regions(restored, finders, run, cache=cache, advance=advance)
        before = {each.image_id: each for each in examples}
        restored = replace(drawn, examples=[_put_back(each, before[each.image_id]) for each in drawn.examples])
    return replace(restored, options={**restored.options, "regions": recipe.terms.selection["regions"]})


def _restored(example: Example, regions: Sequence[Published]) -> Example:
    """An image with its published regions: found ones behind those of the source, masks on those of the source.

    Raises:
        MaskError: One does not fit.
    """
    given = {"person": list(example.persons), "object": list(example.objects)}
    for each in sorted(regions, key=lambda row: row["place"]):
        if each["kind"] not in given:
            raise MaskError("neither of a person nor of an object")
        if each["mask"] is not None:
            run_lengths.area(each["mask"], example.size)
        here, place = given[each["kind"]], each["place"]
        if each["box"] is None and 0 <= place < len(here):
            here[place] = replace(here[place], mask=each["mask"], origin=each["origin"])
        elif each["box"] is not None and place == len(here):
            here.append(_found(each, example))
        else:
            raise MaskError(f"the source annotates another number of {each['kind']}s")
    if len({each.id for each in given["object"]}) < len(given["object"]):
        raise MaskError("two objects have one id")
    if not given["person"]:
        raise MaskError("nobody is marked")
    return replace(example, persons=tuple(given["person"]), objects=tuple(given["object"]))


def _found(each: Published, example: Example) -> Region:
    box, cut = clipped(each["box"], example.size)
    if cut:
        raise MaskError("box is outside of the image")
    return Region(each["id"] or 0, each["label"] or each["kind"], box, each["mask"], each["origin"])


def _put_back(drawn: Example, restored: Example) -> Example:
    """Masks were wanted of annotated regions alone: all others are as they were published."""
    persons, objects = (
        tuple(new if old.origin == ANNOTATED else old for new, old in zip(*pair, strict=True))
        for pair in ((drawn.persons, restored.persons), (drawn.objects, restored.objects))
    )
    return replace(drawn, persons=persons, objects=objects)

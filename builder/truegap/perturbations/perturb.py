"""Draw a perturbation, apply it, do it again: one face over the four features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from truegap.perturbations.arguments import (
    Mask,
    MaskLike,
    as_mask,
    as_masks,
    as_options,
    as_radius,
    as_regions,
    as_shift,
    kind,
)
from truegap.perturbations.background import RADIUS, blur_background
from truegap.perturbations.hsv import from_hsv, to_hsv
from truegap.perturbations.keys import Key
from truegap.perturbations.objects import black_out, draw_objects, remove_person
from truegap.perturbations.options import Options
from truegap.perturbations.pictures import Pixels, picture_of, pixels_of
from truegap.perturbations.placebo import place_rectangles
from truegap.perturbations.shifts import draw_shift
from truegap.perturbations.swap import swap_background
from truegap.schema import PLACEBO, Feature, Perturbation, Region, Strength

ImageT = TypeVar("ImageT", NDArray[np.uint8], Image.Image)


def draw(
    feature: str,
    strength: str,
    *,
    benchmark: str = "",
    image_id: str = "",
    seed: int = 0,
    objects: Sequence[Region] = (),
    options: Options | None = None,
) -> Perturbation:
    """Draws what one image gets; the image itself is not needed.

    The draw is keyed by (benchmark, image id, feature, seed), not by strength: a stronger object mask extends
    the weaker one, a stronger shift has the weaker one's direction.

    Args:
        feature: `color`, `lighting`, `object` or `background`.
        strength: `weak`, `middle` or `strong`.
        benchmark: The benchmark's name, part of the key.
        image_id: The image's id, part of the key.
        seed: Part of the key.
        objects: The image's objects, of which `object` draws a share; their ids must be unique.
        options: The conventions; defaults follow Hirota et al. (2025).

    Returns:
        What was drawn.

    Raises:
        TypeError: `objects` or `options` are something else.
        ValueError: The feature, the strength, a box or an object id is not usable.
    """
    feature, strength = _known(feature, Feature), _known(strength, Strength)
    options = as_options(options)
    key = Key(benchmark, image_id, feature, seed)
    drawn = Perturbation(feature, strength, seed, options=options.changed(), benchmark=benchmark)
    match feature:
        case Feature.COLOR | Feature.LIGHTING:
            return replace(drawn, shift=draw_shift(key, strength, options))
        case Feature.BACKGROUND:
            return replace(drawn, radius=RADIUS[strength])
        case _:
            ids = [region.id for region in as_regions(objects)]
            if len(set(ids)) < len(ids):
                raise ValueError(f"image {image_id!r}: object ids are not unique: give each object an id of its own")
            return replace(drawn, object_ids=draw_objects(key, strength, ids, options), n_objects=len(ids))


def draw_placebo(
    strength: str,
    person_mask: Mask,
    *,
    benchmark: str = "",
    image_id: str = "",
    seed: int = 0,
    objects: Sequence[Region] = (),
    options: Options | None = None,
) -> Perturbation:
    """Draws the placebo of `object`: rectangles of the sizes that it would black out, placed where nothing is.

    Args:
        strength: `weak`, `middle` or `strong`.
        person_mask: (H, W), True where a person is.
        benchmark: As for `draw`.
        image_id: As for `draw`.
        seed: As for `draw`.
        objects: As for `draw`.
        options: As for `draw`.

    Returns:
        What was drawn: the objects that are meant, where their rectangles went, and how many found no free place.
    """
    meant = draw(
        "object", strength, benchmark=benchmark, image_id=image_id, seed=seed, objects=objects, options=options
    )
    by_id = {region.id: region for region in objects}
    key = Key(benchmark, image_id, Feature.OBJECT, seed)
    boxes, overlapping = place_rectangles(key, [by_id[each] for each in meant.object_ids or ()], objects, person_mask)
    return replace(meant, feature=PLACEBO, boxes=boxes, overlapping=overlapping)


def redo(
    image: ImageT,
    perturbation: Perturbation,
    *,
    person_mask: MaskLike | None = None,
    objects: Sequence[Region] = (),
    object_masks: Mapping[int, MaskLike] | None = None,
    donor: tuple[Pixels, Mask] | None = None,
) -> ImageT:
    """Applies what was drawn.

    Args:
        image: uint8 RGB array (H, W, 3), or a PIL image (converted to RGB).
        perturbation: From `draw`, `perturb` or a row of a built benchmark.
        person_mask: (H, W), True where a person is: booleans; uint8 of 0 and 1, or of 0 and 255; or a PIL image of
            mode `1` or `L`. `background` needs it; `object` leaves those pixels as they are.
        objects: The image's objects; those in `perturbation.object_ids` are blacked out.
        object_masks: Masks (H, W) by object id for `shape="mask"`; an object without one is blacked out by its box.
        donor: RGB or RGBX array and person mask of the image `perturbation.donor`; `background-swap` needs it.

    Returns:
        A new image of the same type and size.

    Raises:
        TypeError: The image is neither a PIL image nor a uint8 array, or another argument is of a wrong type.
        ValueError: A shape or a mask's value does not fit, a mask is missing, an object id is not among the objects, or
            the shift or the radius is no number that can be drawn.
    """
    if not isinstance(perturbation, Perturbation):
        raise TypeError(f"perturbation is {kind(perturbation)}: give what draw or perturb returned")
    if isinstance(image, Image.Image):
        if 0 in image.size:
            raise ValueError(f"image is {image.width} x {image.height}: give one that has pixels")
        pixels = pixels_of(image)
    elif isinstance(image, np.ndarray) and image.dtype == np.uint8:
        pixels = image
        _check_channels(pixels, 3)
    else:
        raise TypeError(f"image is {kind(image)}: give a PIL image or a uint8 RGB array (height, width, 3)")
    size = pixels.shape[:2]
    (changed,) = redo_all(
        pixels,
        [perturbation],
        person_mask=None if person_mask is None else as_mask(person_mask, "person_mask", size),
        objects=as_regions(objects),
        object_masks=as_masks(object_masks, size),
        donors={} if donor is None or perturbation.donor is None else {perturbation.donor: donor},
    )
    return changed if isinstance(image, np.ndarray) else picture_of(changed)


def redo_all(
    image: Pixels,
    perturbations: Sequence[Perturbation],
    *,
    person_mask: Mask | None = None,
    objects: Sequence[Region] = (),
    object_masks: Mapping[int, Mask] | None = None,
    donors: Mapping[str, tuple[Pixels, Mask]] | None = None,
) -> Iterator[Pixels]:
    """Applies several perturbations, each to the image as it is; what they have in common is done once.

    Args:
        image: uint8 RGB array (H, W, 3), or RGBX (H, W, 4), whose last channel means nothing before and after.
        perturbations: What was drawn, one per result.
        person_mask: As for `redo`.
        objects: As for `redo`.
        object_masks: As for `redo`.
        donors: RGB or RGBX array and person mask by image id, for `background-swap`.

    Yields:
        A new array per perturbation, of the image's shape (RGB after a background swap), made when it is asked for:
        whoever is done with one before the next spares the system from finding fresh memory, which costs as much as a
        blur.

    Raises:
        ValueError: As for `redo`.
    """
    masks = object_masks or {}
    _check(image, person_mask, masks)
    image = np.ascontiguousarray(image)
    planes = None
    for drawn in perturbations:
        shifts = _shifts(drawn)
        if shifts is None:
            yield _apply(image, drawn, person_mask, objects, masks, donors or {})
        else:
            planes = to_hsv(image) if planes is None else planes
            yield from_hsv(planes, channels=image.shape[2], **shifts)


def perturb(
    image: ImageT,
    feature: str,
    strength: str,
    *,
    benchmark: str = "",
    image_id: str = "",
    seed: int = 0,
    person_mask: MaskLike | None = None,
    objects: Sequence[Region] = (),
    object_masks: Mapping[int, MaskLike] | None = None,
    options: Options | None = None,
) -> tuple[ImageT, Perturbation]:
    """Perturbs one feature of an image (Hirota et al. 2025, section 3), as the benchmarks are perturbed.

    >>> import numpy as np
    >>> image = np.full((4, 4, 3), (200, 100, 50), np.uint8)
    >>> brighter, drawn = perturb(image, "lighting", "strong", image_id="a")
    >>> drawn.shift, int(brighter[0, 0, 0]) - 200
    (-12, -12)

    Args:
        image: uint8 RGB array (H, W, 3), or a PIL image.
        feature: `color`, `lighting`, `object` or `background`.
        strength: `weak`, `middle` or `strong`.
        benchmark: Part of the random key.
        image_id: Part of the random key: give each image its own.
        seed: Part of the random key.
        person_mask: (H, W), True where a person is: booleans; uint8 of 0 and 1, or of 0 and 255; or a PIL image of
            mode `1` or `L`. Needed by `background`.
        objects: What can be blacked out.
        object_masks: Masks by object id for `shape="mask"`.
        options: The conventions; defaults follow the paper.

    Returns:
        The perturbed image, of the type that was given, and what was drawn.

    Raises:
        TypeError: The image is neither a PIL image nor a uint8 array, or another argument is of a wrong type.
        ValueError: A name, a shape, a box or a mask is not usable.
    """
    objects = as_regions(objects)
    drawn = draw(feature, strength, benchmark=benchmark, image_id=image_id, seed=seed, objects=objects, options=options)
    changed = redo(image, drawn, person_mask=person_mask, objects=objects, object_masks=object_masks)
    return changed, drawn


def _check(image: Pixels, person: Mask | None, object_masks: Mapping[int, Mask]) -> None:
    _check_channels(image, 3, 4)
    for what, mask in (("person_mask", person), *((f"mask of object {i}", m) for i, m in object_masks.items())):
        if mask is not None and (mask.dtype != np.bool_ or mask.shape != image.shape[:2]):
            raise ValueError(f"{what} is {kind(mask)} {mask.shape}: give booleans of shape {image.shape[:2]}")


def _check_channels(image: Pixels, *channels: int, what: str = "image") -> None:
    if image.ndim != 3 or image.shape[2] not in channels or not image.size:  # noqa: PLR2004
        raise ValueError(f"{what} has shape {image.shape}: give RGB (height, width, 3)")


def _shifts(drawn: Perturbation) -> dict[str, int] | None:
    """What a perturbation adds to hue and value; None where it does something else."""
    match drawn.feature:
        case Feature.COLOR:
            return {"hue": as_shift(drawn.shift)}
        case Feature.LIGHTING:
            return {"value": as_shift(drawn.shift)}
        case "control-hsv":
            return {}
    return None


def _apply(
    image: Pixels,
    drawn: Perturbation,
    person: Mask | None,
    objects: Sequence[Region],
    object_masks: Mapping[int, Mask],
    donors: Mapping[str, tuple[Pixels, Mask]],
) -> Pixels:
    options = Options.of(drawn.options)
    protected = person if options.protect_person else None
    match drawn.feature:
        case Feature.BACKGROUND:
            return blur_background(image, as_radius(drawn.radius), _needed(person, drawn), bleed=options.bleed)
        case Feature.OBJECT:
            return _black_out(image, drawn, protected, objects, object_masks, options)
        case "object-placebo":
            return black_out(image, drawn.boxes or (), protected)
        case "person-removed":
            return remove_person(image, _needed(person, drawn), removal=options.removal)
        case "background-swap":
            if drawn.donor is None or drawn.donor not in donors:
                raise ValueError(f"background-swap needs the image {drawn.donor!r} and its person mask: pass donor")
            _check_channels(donors[drawn.donor][0], 3, 4, what="donor")
            return swap_background(image, _needed(person, drawn), *donors[drawn.donor])
    return image.copy()


def _needed(person: Mask | None, drawn: Perturbation) -> Mask:
    if person is None:
        raise ValueError(f"{drawn.feature} needs person_mask: without it nobody knows where the person is")
    return person


def _black_out(
    image: Pixels,
    drawn: Perturbation,
    person: Mask | None,
    objects: Sequence[Region],
    object_masks: Mapping[int, Mask],
    options: Options,
) -> Pixels:
    boxes = {region.id: region.box for region in objects}
    if missing := [each for each in drawn.object_ids or () if each not in boxes]:
        raise ValueError(f"objects {missing} were drawn but are not among the objects given: pass the image's objects")
    masks = object_masks if options.shape == "mask" else {}
    return black_out(image, [masks.get(each, boxes[each]) for each in drawn.object_ids or ()], person)


NameT = TypeVar("NameT", Feature, Strength)


def _known(name: str, names: type[NameT]) -> NameT:
    try:
        return names(name)
    except ValueError:
        raise ValueError(f"unknown {names.__name__.lower()} {name!r}: use one of {', '.join(names)}") from None

"""Draw a perturbation, apply it, do it again: one face over the four features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from truegap.perturbations.background import RADIUS, blur_background
from truegap.perturbations.color import hue_shift
from truegap.perturbations.hsv import Change, Pixels, in_hsv
from truegap.perturbations.keys import Key
from truegap.perturbations.lighting import value_shift
from truegap.perturbations.objects import black_out, draw_objects
from truegap.perturbations.options import Options
from truegap.perturbations.shifts import draw_shift
from truegap.schema import Feature, Perturbation, Region, Strength

ImageT = TypeVar("ImageT", NDArray[np.uint8], Image.Image)

Mask = NDArray[np.bool_]


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
        ValueError: The feature, the strength or an object id is not usable.
    """
    feature, strength = _known(feature, Feature), _known(strength, Strength)
    options = options or Options()
    key = Key(benchmark, image_id, feature, seed)
    drawn = Perturbation(feature=feature, strength=strength, seed=seed, options=options.changed())
    match feature:
        case Feature.COLOR | Feature.LIGHTING:
            return replace(drawn, shift=draw_shift(key, strength, options))
        case Feature.BACKGROUND:
            return replace(drawn, radius=RADIUS[strength])
        case _:
            ids = [region.id for region in objects]
            if len(set(ids)) < len(ids):
                raise ValueError(f"image {image_id!r}: object ids are not unique: give each object an id of its own")
            return replace(drawn, object_ids=draw_objects(key, strength, ids, options), n_objects=len(ids))


def redo(
    image: ImageT,
    perturbation: Perturbation,
    *,
    person_mask: Mask | None = None,
    objects: Sequence[Region] = (),
    object_masks: Mapping[int, Mask] | None = None,
) -> ImageT:
    """Applies what was drawn.

    Args:
        image: uint8 RGB array (H, W, 3), or a PIL image (converted to RGB).
        perturbation: From `draw`, `perturb` or a row of a built benchmark.
        person_mask: (H, W), True where a person is. `background` needs it; `object` leaves those pixels as they are.
        objects: The image's objects; those in `perturbation.object_ids` are blacked out.
        object_masks: Masks (H, W) by object id for `shape="mask"`; an object without one is blacked out by its box.

    Returns:
        A new image of the same type and size.

    Raises:
        TypeError: The image is neither a PIL image nor a uint8 array.
        ValueError: A shape does not fit, a mask is missing, or an object id is not among the objects.
    """
    if isinstance(image, Image.Image):
        pixels = np.asarray(image.convert("RGB"))
    elif isinstance(image, np.ndarray) and image.dtype == np.uint8:
        pixels = image
    else:
        raise TypeError(f"image is {_kind(image)}: give a PIL image or a uint8 RGB array (height, width, 3)")
    changed = redo_all(pixels, [perturbation], person_mask=person_mask, objects=objects, object_masks=object_masks)[0]
    return changed if isinstance(image, np.ndarray) else Image.fromarray(changed)


def redo_all(
    image: Pixels,
    perturbations: Sequence[Perturbation],
    *,
    person_mask: Mask | None = None,
    objects: Sequence[Region] = (),
    object_masks: Mapping[int, Mask] | None = None,
) -> list[Pixels]:
    """Applies several perturbations, each to the image as it is; what they have in common is done once.

    Args:
        image: uint8 RGB array (H, W, 3).
        perturbations: What was drawn, one per result.
        person_mask: As for `redo`.
        objects: As for `redo`.
        object_masks: As for `redo`.

    Returns:
        A new array per perturbation.

    Raises:
        ValueError: As for `redo`.
    """
    masks = object_masks or {}
    _check(image, person_mask, masks)
    image = np.ascontiguousarray(image)
    changes = [(place, change) for place, drawn in enumerate(perturbations) if (change := _hsv_change(drawn))]
    shifted: dict[int, Pixels] = {}
    if changes:
        places, hsv_changes = zip(*changes, strict=True)
        shifted = dict(zip(places, in_hsv(image, hsv_changes), strict=True))
    return [
        shifted[place] if place in shifted else _apply(image, drawn, person_mask, objects, masks)
        for place, drawn in enumerate(perturbations)
    ]


def perturb(
    image: ImageT,
    feature: str,
    strength: str,
    *,
    benchmark: str = "",
    image_id: str = "",
    seed: int = 0,
    person_mask: Mask | None = None,
    objects: Sequence[Region] = (),
    object_masks: Mapping[int, Mask] | None = None,
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
        person_mask: (H, W), True where a person is; needed by `background`.
        objects: What can be blacked out.
        object_masks: Masks by object id for `shape="mask"`.
        options: The conventions; defaults follow the paper.

    Returns:
        The perturbed image, of the type that was given, and what was drawn.

    Raises:
        TypeError: The image is neither a PIL image nor a uint8 array.
        ValueError: A name, a shape or a mask is not usable.
    """
    drawn = draw(feature, strength, benchmark=benchmark, image_id=image_id, seed=seed, objects=objects, options=options)
    changed = redo(image, drawn, person_mask=person_mask, objects=objects, object_masks=object_masks)
    return changed, drawn


def _check(image: Pixels, person: Mask | None, object_masks: Mapping[int, Mask]) -> None:
    if image.ndim != 3 or image.shape[2] != 3 or not image.size:  # noqa: PLR2004
        raise ValueError(f"image has shape {image.shape}: give RGB (height, width, 3)")
    for what, mask in (("person_mask", person), *((f"mask of object {i}", m) for i, m in object_masks.items())):
        if mask is not None and (mask.dtype != np.bool_ or mask.shape != image.shape[:2]):
            raise ValueError(f"{what} is {_kind(mask)} {mask.shape}: give booleans of shape {image.shape[:2]}")


def _hsv_change(drawn: Perturbation) -> Change | None:
    """What a perturbation does to hue and value; None where it does something else."""
    match drawn.feature:
        case Feature.COLOR:
            return hue_shift(drawn.shift or 0)
        case Feature.LIGHTING:
            return value_shift(drawn.shift or 0)
        case "control-hsv":
            return lambda hsv, into: np.copyto(into, hsv)
    return None


def _apply(
    image: Pixels,
    drawn: Perturbation,
    person: Mask | None,
    objects: Sequence[Region],
    object_masks: Mapping[int, Mask],
) -> Pixels:
    options = Options.of(drawn.options)
    if drawn.feature == Feature.BACKGROUND:
        if person is None:
            raise ValueError("background needs person_mask: without it the person would be blurred too")
        return blur_background(image, drawn.radius or 0.0, person, bleed=options.bleed)
    if drawn.feature == Feature.OBJECT:
        return _black_out(image, drawn, person if options.protect_person else None, objects, object_masks, options)
    return image.copy()


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


def _kind(value: object) -> str:
    return f"{type(value).__name__} of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__

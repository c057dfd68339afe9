"""What a picture says of one feature alone: everything else is taken away (Hirota et al. 2025, section 4).

Pure functions on arrays; pixels are RGB `(H, W, 3)`, uint8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from truegap.build.rows import Regions
from truegap.perturbations.hsv import to_hsv
from truegap.perturbations.objects import pixel_bounds, remove_person
from truegap.perturbations.pictures import Pixels
from truegap.regions.combine import is_part, is_person
from truegap.schema import Feature

VERSION = 3
"""Of the pictures and categories made here: the same version gives the same pixels and the same columns."""

PATCHES = 8
"""Patches along each side for color and lighting."""

SHOWN = 224
"""Side in pixels of the picture that shows the patches: any model's preprocessing takes it."""

Lighting = Literal["hsv", "value"]
Removal = Literal["mask", "box"]

WHOLE = "whole"
"""The picture as it is: what a classifier makes of everything, the ceiling of all features."""

FEATURES = (*(feature.value for feature in Feature), WHOLE)

_PERSONS = """
person people human man men woman women boy girl child children kid baby babies toddler infant newborn teenager teen
adult lady ladies gentleman gentlemen guy dude male female crowd audience family families couple
mother mom mum father dad parent grandmother grandma grandfather grandpa grandparent son daughter brother sister
sibling aunt uncle nephew niece cousin husband wife wives boyfriend girlfriend bride groom bridesmaid groomsman
groomsmen pedestrian passenger rider cyclist bicyclist motorcyclist biker skier snowboarder skateboarder surfer
swimmer skater jogger spectator bystander passerby athlete sportsman sportswoman goalkeeper referee umpire
policeman policemen policewoman policewomen officer cop fireman firemen firefighter soldier sailor
businessman businessmen businesswoman businesswomen salesman saleswoman cameraman fisherman fishermen
worker waiter waitress waitresses chef nurse doctor teacher student photographer actor actress actresses
singer dancer musician guitarist cowboy cowgirl priest nun monk
"""
PERSON_CLASSES = frozenset(_PERSONS.split())
"""Names of categories that tell of a person, and so perhaps of gender; in lower case, and without the s of a plural."""

_HAIR = frozenset({"beard", "moustache", "mustache", "goatee"})
"""Parts of a person that detectors name by themselves, and that tell of gender."""


def color_patches(pixels: Pixels) -> Pixels:
    """The picture downsampled to 8 x 8: mean colour of every patch.

    >>> color_patches(np.full((16, 24, 3), 7, np.uint8)).shape
    (8, 8, 3)
    """
    small: Pixels = cv2.resize(pixels, (PATCHES, PATCHES), interpolation=cv2.INTER_AREA)
    return small


def lighting_patches(pixels: Pixels, channels: Lighting = "hsv") -> Pixels:
    """Hue, saturation and value, averaged per patch.

    Args:
        pixels: The picture.
        channels: `hsv`, all three as the paper has it (hue on the 0-255 scale, averaged as a number), or `value`, the
            brightness alone, three times.

    Returns:
        `(8, 8, 3)`.

    >>> lighting_patches(np.full((16, 16, 3), 90, np.uint8), "value")[0, 0].tolist()
    [90, 90, 90]
    """
    small = np.dstack([cv2.resize(each, (PATCHES, PATCHES), interpolation=cv2.INTER_AREA) for each in to_hsv(pixels)])
    return np.repeat(small[..., 2:], 3, axis=2) if channels == "value" else small


def shown(patches: Pixels) -> Pixels:
    """Patches as a picture of plain squares that an image model can read.

    >>> shown(np.zeros((8, 8, 3), np.uint8)).shape
    (224, 224, 3)
    """
    picture: Pixels = cv2.resize(patches, (SHOWN, SHOWN), interpolation=cv2.INTER_NEAREST)
    return picture


def objects_alone(pixels: Pixels, regions: Regions) -> Pixels:
    """The objects on black, without any pixel of a person.

    Args:
        pixels: The picture.
        regions: Its objects, by mask where `object_masks` has one, else by box, and the persons.
    """
    inside = np.zeros(pixels.shape[:2], np.bool_)
    for each in regions.objects:
        mask = regions.object_masks.get(each.id)
        if mask is not None:
            inside |= mask
            continue
        left, top, right, bottom = pixel_bounds(each.box)
        inside[top:bottom, left:right] = True
    inside &= ~regions.person_mask
    return np.where(inside[..., None], pixels, np.uint8(0))


def categories(labels: Sequence[Sequence[str]]) -> list[str]:
    """Every category of object that some image has, sorted; persons are none.

    >>> categories([["cup", "Man"], ["kite", "cup"], []])
    ['cup', 'kite']
    """
    return sorted({label for each in labels for label in each if not tells_person(label)})


def tells_person(label: str) -> bool:
    """Whether a category's name is that of a person, by its last word, or of a part of one.

    What a build takes for a person or a part of one (`truegap.regions.combine`) is one here too.

    >>> tells_person("Young woman"), tells_person("snowman"), tells_person("baby carriage"), tells_person("Human face")
    (True, False, False, True)
    """
    if is_person(label) or is_part(label):
        return True
    words = label.lower().replace("_", " ").replace("-", " ").split()
    return bool(words) and not {words[-1], words[-1].removesuffix("s")}.isdisjoint(PERSON_CLASSES | _HAIR)


def multi_hot(labels: Sequence[Sequence[str]], names: Sequence[str]) -> NDArray[np.float32]:
    """Which categories every image has.

    Args:
        labels: Of every image, the categories of its objects.
        names: The columns, as `categories` gives them; others are left out.

    Returns:
        `(images, categories)` of 0 and 1.

    >>> multi_hot([["cup", "cup"], []], ["cup", "kite"]).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    column = {name: place for place, name in enumerate(names)}
    vectors = np.zeros((len(labels), len(names)), np.float32)
    for row, each in enumerate(labels):
        vectors[row, [column[label] for label in each if label in column]] = 1
    return vectors


def view(feature: str, pixels: Pixels, regions: Regions, *, lighting: Lighting, removal: Removal) -> Pixels:
    """The picture that shows one feature alone.

    Args:
        feature: One of `FEATURES`.
        pixels: The original picture.
        regions: Its persons and objects.
        lighting: See `lighting_patches`.
        removal: How the person goes from the background: by mask (a box where there is none), or by box.
    """
    match feature:
        case Feature.COLOR:
            return shown(color_patches(pixels))
        case Feature.LIGHTING:
            return shown(lighting_patches(pixels, lighting))
        case Feature.OBJECT:
            return objects_alone(pixels, regions)
        case Feature.BACKGROUND:
            return remove_person(pixels, regions.person_mask, removal=removal)
        case _:
            return pixels

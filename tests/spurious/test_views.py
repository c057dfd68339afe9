"""What is left of a picture when one feature alone is kept."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from truegap.build.rows import Regions
from truegap.schema import Region
from truegap.spurious.views import categories, color_patches, lighting_patches, multi_hot, shown, tells_person, view


@pytest.fixture
def pixels():
    return np.random.default_rng(3).integers(0, 256, (32, 48, 3), np.uint8)


@pytest.fixture
def regions():
    person = np.zeros((32, 48), np.bool_)
    person[4:20, 10:18] = True
    mask = np.zeros((32, 48), np.bool_)
    mask[20:24, 20:24] = True
    objects = (Region(1, "cup", (16.0, 8.0, 8.0, 4.0)), Region(2, "kite", (16.0, 16.0, 16.0, 16.0)))
    return Regions(person, objects, {2: mask})


def of(feature, pixels, regions, lighting="hsv", removal="mask"):
    return view(feature, pixels, regions, lighting=lighting, removal=removal)


def test_color_is_the_mean_of_every_patch(pixels):
    means = pixels.reshape(8, 4, 8, 6, 3).mean(axis=(1, 3))
    assert np.abs(color_patches(pixels) - means).max() <= 0.5


def test_lighting_is_the_mean_of_pillows_hue_saturation_and_value(pixels):
    hsv = np.asarray(Image.fromarray(pixels).convert("HSV"), np.float64)
    means = hsv.reshape(8, 4, 8, 6, 3).mean(axis=(1, 3))
    assert np.abs(lighting_patches(pixels)[..., 1:] - means[..., 1:]).max() <= 1.5
    value = lighting_patches(pixels, "value")
    assert (value == value[..., :1]).all()
    assert np.abs(value[..., 0] - pixels.max(axis=2).reshape(8, 4, 8, 6).mean(axis=(1, 3))).max() <= 0.5


def test_lighting_by_value_knows_nothing_of_the_hue(pixels):
    other = pixels[..., ::-1].copy()
    assert (lighting_patches(pixels, "value") == lighting_patches(other, "value")).all()
    assert (lighting_patches(pixels) != lighting_patches(other)).any()


def test_patches_are_shown_as_squares_of_one_colour(pixels):
    patches = color_patches(pixels)
    assert (shown(patches)[::28, ::28] == patches).all()
    assert (shown(patches)[27::28, 27::28] == patches).all()


def test_the_background_has_no_pixel_of_a_person(pixels, regions):
    left = of("background", pixels, regions)
    assert not left[regions.person_mask].any()
    assert (left[~regions.person_mask] == pixels[~regions.person_mask]).all()


def test_by_box_the_background_has_not_even_the_persons_outline(pixels, regions):
    regions.person_mask[4, 17] = False
    assert of("background", pixels, regions)[4, 17].any()
    assert not of("background", pixels, regions, removal="box")[4, 17].any()


def test_objects_stand_alone_by_mask_or_box_without_a_person(pixels, regions):
    left = of("object", pixels, regions)
    inside = np.zeros((32, 48), np.bool_)
    inside[8:12, 18:24] = True
    inside[20:24, 20:24] = True
    assert (left[inside] == pixels[inside]).all()
    assert not left[~inside].any()


def test_the_whole_picture_is_left_alone(pixels, regions):
    assert of("whole", pixels, regions) is pixels


def test_categories_are_sorted_and_hold_no_person():
    labels = [["kite", "person"], ["Woman", "cup", "cup"], [], ["baby carriage"]]
    names = categories(labels)
    assert names == ["baby carriage", "cup", "kite"]
    assert multi_hot(labels, names).tolist() == [[0, 0, 1], [0, 1, 0], [0, 0, 0], [1, 0, 0]]


_PERSONS_BY_ANY_NAME = (
    *(
        "person",
        "Man",
        "little_girl",
        "standing-boy",
        "persons",
        "humans",
        "pedestrian",
        "rider",
        "mother",
        "policeman",
    ),
    *("Human face", "Human beard", "person's hat", "brides", "mothers", "Ladies", "police officer", "beard", "crowd"),
)


@pytest.mark.parametrize("label", _PERSONS_BY_ANY_NAME)
def test_persons_by_any_name(label):
    assert tells_person(label)


@pytest.mark.parametrize(
    "label", ["", "manhole", "snowman", "baby bed", "pants", "glasses", "Clock face", "record player", "pitcher"]
)
def test_things_with_a_persons_name_in_them(label):
    assert not tells_person(label)

"""Pillow's pictures as arrays and back."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import truegap
from truegap.perturbations.pictures import picture_of, pixels_of


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, np.uint8)


def test_there_and_back():
    # given a picture that is higher than wide
    rgb = noise(7, 5, 3)
    pixels = pixels_of(Image.fromarray(rgb))
    assert pixels.shape == (7, 5, 4)
    np.testing.assert_array_equal(pixels[..., :3], rgb)
    np.testing.assert_array_equal(np.asarray(picture_of(pixels)), rgb)


@pytest.mark.parametrize("channels", [3, 4])
def test_a_picture_has_the_colours_and_is_opaque(channels):
    # given an array whose rows do not follow one another, with a fourth channel that means nothing
    pixels = noise(6, 10, channels)[:, 2:9]
    picture = picture_of(pixels)
    assert picture.mode == "RGB"
    np.testing.assert_array_equal(np.asarray(picture), pixels[..., :3])
    assert np.asarray(picture.convert("RGBA"))[..., 3].min() == 255


def test_a_picture_does_not_follow_its_array():
    pixels = noise(4, 4, 4)
    picture = picture_of(pixels)
    before = np.asarray(picture).copy()
    pixels[:] = 0
    np.testing.assert_array_equal(np.asarray(picture), before)


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "P", "CMYK", "1", "F", "I"])
def test_other_modes_are_converted_as_pillow_converts_them(mode):
    colours = Image.fromarray(noise(8, 8, 3))
    picture = colours.convert("L").convert(mode) if mode in ("F", "I") else colours.convert(mode)
    np.testing.assert_array_equal(pixels_of(picture)[..., :3], np.asarray(picture.convert("RGB")))


def test_a_perturbed_picture_can_be_perturbed_again():
    once, _ = truegap.perturb(Image.fromarray(noise(8, 8, 3)), "color", "weak")
    twice, _ = truegap.perturb(once, "lighting", "weak")
    again, _ = truegap.perturb(np.asarray(once), "lighting", "weak")
    np.testing.assert_array_equal(np.asarray(twice), again)


@pytest.mark.parametrize("size", [(0, 5), (5, 0)])
def test_an_empty_picture_is_refused(size):
    with pytest.raises(ValueError, match=f"image is {size[0]} x {size[1]}: give one that has pixels"):
        truegap.perturb(Image.new("RGB", size), "color", "weak")


@pytest.mark.parametrize("pixels", [np.zeros((4, 4, 3), np.uint16), np.zeros((4, 4), np.uint8), noise(4, 4, 2)])
def test_what_is_no_picture_is_refused(pixels):
    with pytest.raises(TypeError, match="give uint8 RGB or RGBX"):
        picture_of(pixels)

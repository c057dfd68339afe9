"""Pillow is the reference (hue, value and blur radius are its terms); OpenCV is the engine."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageFilter

from truegap.perturbations import redo
from truegap.perturbations.background import gaussian_blur
from truegap.schema import Perturbation


def _with_pillow(image, *, hue: int = 0, value: int = 0):
    bands = [np.asarray(band).astype(int) for band in Image.fromarray(image).convert("HSV").split()]
    bands[0] = (bands[0] + hue) % 256
    bands[2] = np.clip(bands[2] + value, 0, 255)
    merged = Image.merge("HSV", [Image.fromarray(band.astype(np.uint8)) for band in bands])
    return np.asarray(merged.convert("RGB")).astype(int)


@pytest.mark.parametrize(("radius", "mean", "largest"), [(10, 0.4, 4), (25, 0.2, 3), (40, 0.2, 3)])
def test_blur_is_pillows_gaussian_blur(photographs, radius, mean, largest):
    for image in photographs:
        reference = np.asarray(Image.fromarray(image).filter(ImageFilter.GaussianBlur(radius))).astype(int)
        difference = np.abs(gaussian_blur(image, radius) - reference)
        assert difference.mean() <= mean
        assert difference.max() <= largest


@pytest.mark.parametrize("shift", [-30, -11, -1, 0, 5, 30])
@pytest.mark.parametrize("feature", ["color", "lighting"])
def test_shift_is_pillows_hsv_shift(photographs, feature, shift):
    for image in photographs:
        reference = _with_pillow(image, **{"hue" if feature == "color" else "value": shift})
        shifted = redo(image, Perturbation(feature=feature, strength="strong", shift=shift))
        assert np.abs(shifted - reference).mean() <= 0.8


def test_hue_shift_on_pillows_scale_not_on_opencvs():
    # given pure red, whose hue is 0; when it is shifted by a third of the circle; then it is green
    red = np.full((2, 2, 3), (255, 0, 0), np.uint8)
    green = redo(red, Perturbation(feature="color", strength="strong", shift=85))
    assert np.abs(green.astype(int) - (0, 255, 0)).max() <= 3


def test_value_shift_is_clipped_and_keeps_hue_and_saturation():
    image = np.full((2, 2, 3), (250, 125, 0), np.uint8)
    brighter = redo(image, Perturbation(feature="lighting", strength="strong", shift=30))
    darker = redo(image, Perturbation(feature="lighting", strength="strong", shift=-250))
    assert np.abs(brighter.astype(int) - (255, 128, 0)).max() <= 2
    assert darker.max() == 0


def test_hsv_control_stays_near_the_image(photographs):
    differences = [
        np.abs(redo(image, Perturbation(feature="control-hsv")).astype(int) - image) for image in photographs
    ]
    assert max(each.mean() for each in differences) <= 0.8
    assert any(each.any() for each in differences)

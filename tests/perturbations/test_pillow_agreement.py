"""Pillow is the reference (hue, value and blur radius are its terms); OpenCV is the engine."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageFilter

from truegap.perturbations import hsv, redo
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


def test_way_back_from_hsv_rounds_to_the_nearest_level():
    # given every hue with many saturations and values; then both channels counts hold the exact formula, rounded
    hue, saturation, value = np.meshgrid(np.arange(256), np.arange(0, 256, 5), np.arange(0, 256, 7), indexing="ij")
    pixels = np.stack([hue, saturation, value], axis=-1).reshape(256, -1, 3).astype(np.uint8)
    rgb, rgbx = (np.empty((*pixels.shape[:2], channels), np.uint8) for channels in (3, 4))
    hsv.rounded(pixels, rgb)
    hsv.rounded(pixels, rgbx)
    h, s, v = (pixels[..., channel].astype(float) for channel in range(3))
    for channel, corner in enumerate((5, 3, 1)):
        step = (corner + 6 * h / 255) % 6
        exact = v - v * s / 255 * np.minimum(step, 4 - step).clip(0, 1)
        np.testing.assert_array_equal(rgb[..., channel], np.rint(exact))
    np.testing.assert_array_equal(rgbx[..., :3], rgb)


@pytest.mark.parametrize("feature", ["color", "lighting", "control-hsv"])
def test_where_opencv_truncates_the_pixels_are_nearly_the_same(photographs, monkeypatch, feature):
    # given OpenCV's conversion as it is on this machine, and one that is not trusted
    drawn = Perturbation(feature, shift=-17)
    image = photographs[0]
    usual = redo(image, drawn)
    trusted = hsv.opencv_rounds()
    monkeypatch.setattr(hsv, "opencv_rounds", lambda: False)
    differ = np.abs(redo(image, drawn).astype(int) - usual)
    # then only near ties differ, of which there are 92 among all 50 million values
    assert differ.max() <= 1
    assert differ.mean() < 1e-4
    # and a conversion that truncates, as OpenCV's own routine does, is found out
    monkeypatch.undo()
    monkeypatch.setattr(hsv.cv2, "cvtColor", lambda pixels, *_: np.zeros_like(pixels))
    hsv.opencv_rounds.cache_clear()
    assert not hsv.opencv_rounds()
    monkeypatch.undo()
    hsv.opencv_rounds.cache_clear()
    assert hsv.opencv_rounds() == trusted

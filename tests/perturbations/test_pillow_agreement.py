"""Pillow is the reference, whose terms hue, value and blur radius are: what comes out is the same, level by level."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFilter

from truegap.perturbations import blur, compiled, hsv, redo, redo_all
from truegap.perturbations.blur import gaussian_blur
from truegap.perturbations.hsv import from_hsv, to_hsv
from truegap.schema import Perturbation


def _with_pillow(image, *, hue: int = 0, value: int = 0):
    bands = [np.asarray(band).astype(int) for band in Image.fromarray(image).convert("HSV").split()]
    bands[0] = (bands[0] + hue) % 256
    bands[2] = np.clip(bands[2] + value, 0, 255)
    merged = Image.merge("HSV", [Image.fromarray(band.astype(np.uint8)) for band in bands])
    return np.asarray(merged.convert("RGB"))


def _blurred_by_pillow(image, radius: float):
    return np.asarray(Image.fromarray(image).filter(ImageFilter.GaussianBlur(radius)))


@pytest.fixture(scope="module")
def every_color():
    """All 2**24 of them, (4096, 4096, 3)."""
    numbers = np.arange(1 << 24, dtype="<u4").view(np.uint8).reshape(4096, 4096, 4)
    return np.ascontiguousarray(numbers[..., :3])


def test_every_color_has_pillows_hue_saturation_and_value(every_color):
    expected = np.asarray(Image.fromarray(every_color).convert("HSV"))
    np.testing.assert_array_equal(np.dstack(list(to_hsv(every_color))), expected)


def test_every_hue_saturation_and_value_has_pillows_color(every_color):
    expected = np.asarray(Image.frombytes("HSV", (4096, 4096), every_color.tobytes()).convert("RGB"))
    np.testing.assert_array_equal(from_hsv(np.ascontiguousarray(every_color.transpose(2, 0, 1))), expected)


@pytest.mark.parametrize("shift", [-255, -30, -11, -1, 0, 5, 30, 255])
@pytest.mark.parametrize("feature", ["color", "lighting"])
def test_shift_is_pillows_hsv_shift(photographs, feature, shift):
    for image in photographs[:5]:
        expected = _with_pillow(image, **{"hue" if feature == "color" else "value": shift})
        shifted = redo(image, Perturbation(feature=feature, strength="strong", shift=shift))
        np.testing.assert_array_equal(shifted, expected)


@pytest.mark.parametrize("radius", [10, 25, 40])
def test_background_is_pillows_gaussian_blur(photographs, radius):
    for image in photographs:
        nobody = np.zeros(image.shape[:2], bool)
        blurred = redo(image, Perturbation("background", radius=radius), person_mask=nobody)
        np.testing.assert_array_equal(blurred, _blurred_by_pillow(image, radius))


@settings(deadline=None)
@given(
    height=st.integers(1, 40),
    width=st.integers(1, 40),
    radius=st.floats(0, 400, width=32) | st.floats(0, 4, width=32),
    seed=st.integers(0, 99),
)
def test_blur_is_pillows_at_any_size_and_radius(height, width, radius, seed):
    image = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    np.testing.assert_array_equal(gaussian_blur(image, radius), _blurred_by_pillow(image, radius))


@pytest.mark.parametrize("size", [(48, 64), (4, 1), (1, 3)])
@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize(
    "drawn",
    [
        *(Perturbation("color", shift=shift) for shift in (-255, -9, 200)),
        *(Perturbation("lighting", shift=shift) for shift in (-255, -9, 200)),
        Perturbation("control-hsv"),
        Perturbation("background", radius=3.0),
    ],
)
def test_few_pixels_and_many_come_out_the_same(monkeypatch, drawn, channels, size):
    # given a picture of all kinds of colors
    image = np.random.default_rng(0).integers(0, 256, (*size, channels), np.uint8)
    nobody = np.zeros(size, bool)
    (with_code,) = redo_all(image, [drawn], person_mask=nobody)
    # when it is perturbed by a process that has come by few
    monkeypatch.setattr(compiled, "WORTHWHILE", 10**12)
    for name in ("_to_hsv", "_from_hsv"):
        monkeypatch.setattr(hsv, name, None)
    monkeypatch.setattr(blur, "_average_down", None)
    (with_pillow,) = redo_all(image, [drawn], person_mask=nobody)
    # then without any machine code it is the same, of the same kind
    np.testing.assert_array_equal(with_pillow[..., :3], with_code[..., :3])
    assert with_pillow.shape == with_code.shape
    assert with_pillow.flags.c_contiguous
    assert with_pillow.flags.writeable


def test_hue_shift_on_pillows_scale_not_on_opencvs():
    # given pure red, whose hue is 0; when it is shifted by a third of the circle; then it is green
    red = np.full((2, 2, 3), (255, 0, 0), np.uint8)
    green = redo(red, Perturbation(feature="color", strength="strong", shift=85))
    assert green[0, 0].tolist() == [0, 255, 0]


def test_value_shift_is_clipped_and_keeps_hue_and_saturation():
    image = np.full((2, 2, 3), (250, 125, 0), np.uint8)
    brighter = redo(image, Perturbation(feature="lighting", strength="strong", shift=30))
    darker = redo(image, Perturbation(feature="lighting", strength="strong", shift=-250))
    # 126 and not 128: Pillow cuts the fraction of the hue
    assert brighter[0, 0].tolist() == [255, 126, 0]
    assert darker.max() == 0


def test_hsv_control_stays_near_the_image(photographs):
    differences = [
        np.abs(redo(image, Perturbation(feature="control-hsv")).astype(int) - image) for image in photographs
    ]
    assert max(each.mean() for each in differences) <= 0.8
    assert any(each.any() for each in differences)

"""What counts as an image."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from truegap.models._images import as_image


@pytest.mark.parametrize("mode", ["L", "RGBA", "P"])
def test_any_mode_becomes_rgb(mode):
    assert as_image(Image.new(mode, (3, 3))).mode == "RGB"


def test_pictures_come_upright():
    # given a picture that says it lies on its side
    picture = Image.new("RGB", (4, 2))
    picture.getexif()[0x0112] = 6
    assert as_image(picture).size == (2, 4)


@pytest.mark.parametrize("wrong", [np.zeros((3, 3), np.uint8), np.zeros((3, 3, 4), np.uint8), "cat.png", None])
def test_wrong_kinds_are_named(wrong):
    with pytest.raises(ValueError, match="an image"):
        as_image(wrong)

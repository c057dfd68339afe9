"""Average colours of cells tell pictures apart, and cannot be made into one."""

from __future__ import annotations

import numpy as np
import pytest

from examples import encoded
from truegap.build.cells import CELLS, PRECISION, ROUNDING, averages, distance
from truegap.build.images import Encoder, UnusableImageError, decode


def test_averages_are_those_of_the_cells_row_by_row():
    image = np.zeros((40, 60, 3), np.uint8)
    image[:10, 15:30] = (10, 20, 30)  # the second cell of the first row
    image[30:, 45:] = 255  # the last cell
    found = np.array(averages(Encoder("png").encode(image))).reshape(4, 4, 3) / PRECISION
    assert found[0, 1].tolist() == [10, 20, 30]
    assert found[3, 3].tolist() == [255, 255, 255]
    assert found.sum() == 60 + 765


@pytest.mark.parametrize("size", [(1, 1), (3, 500), (41, 63)])
def test_any_size_has_sixteen_cells(size):
    flat = np.full((*size, 3), 77, np.uint8)
    assert averages(Encoder("png").encode(flat)) == [77 * PRECISION] * CELLS


def test_another_quality_is_rounding_and_another_picture_or_object_is_not():
    pixels = decode(encoded(1, (240, 320)))
    mine = averages(Encoder("jpeg").encode(pixels))
    assert distance(mine, averages(Encoder("png").encode(pixels))) <= ROUNDING / 2
    changed = pixels.copy()
    changed[100:120, 100:130] = 0
    assert distance(mine, averages(Encoder("jpeg").encode(changed))) > ROUNDING
    assert distance(mine, averages(encoded(2, (240, 320)))) > ROUNDING


def test_what_is_no_picture_is_refused():
    with pytest.raises(UnusableImageError):
        averages(b"no picture")

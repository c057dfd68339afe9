from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truegap.regions import masks
from truegap.regions.boxes import around, clipped, overlap
from truegap.regions.masks import MaskError

BOX = st.tuples(*[st.floats(-50, 150)] * 2, *[st.floats(0.1, 150)] * 2)


@given(BOX)
def test_a_clipped_box_is_inside_and_cutting_it_again_changes_nothing(box):
    try:
        inside, _ = clipped(list(box), (60, 80))
    except MaskError:
        return
    x, y, width, height = inside
    assert 0 <= x < x + width <= 80 + 1e-9
    assert 0 <= y < y + height <= 60 + 1e-9
    again, cut = clipped(list(inside), (60, 80))
    assert again == pytest.approx(inside)
    assert not cut


@given(BOX, BOX)
def test_overlap_is_symmetric_and_whole_with_itself(one, other):
    assert overlap(one, other) == pytest.approx(overlap(other, one))
    assert 0 <= overlap(one, other) <= 1 + 1e-9
    assert overlap(one, one) == pytest.approx(1)


def test_overlap_by_hand():
    assert overlap((0, 0, 2, 2), (1, 0, 2, 2)) == pytest.approx(1 / 3)
    assert overlap((0, 0, 2, 2), (2, 0, 2, 2)) == 0
    assert overlap((0, 0, 0, 0), (0, 0, 0, 0)) == 0


def test_the_box_around_a_mask_touches_its_outermost_pixels():
    inside = np.zeros((6, 8), bool)
    inside[2, 3] = inside[4, 6] = True
    assert around(masks.encode(inside), (6, 8)) == (3, 2, 4, 3)

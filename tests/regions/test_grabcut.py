from __future__ import annotations

import cv2
import numpy as np
import pytest

from truegap.regions.grabcut import NoCut, cut

SIZE = (300, 400)
BOX = (150.0, 60.0, 100.0, 200.0)


def drawn(scale: int = 1):
    """A figure with a head before a ground of noisy stripes, and the truth."""
    height, width = (side * scale for side in SIZE)
    rng = np.random.default_rng(1)
    image = np.full((height, width, 3), (60, 120, 70), np.uint8)
    image[:, :: 16 * scale] = (90, 150, 90)
    truth = np.zeros((height, width), np.uint8)
    cv2.ellipse(truth, (200 * scale, 100 * scale), (22 * scale, 35 * scale), 0, 0, 360, 1, -1)
    cv2.ellipse(truth, (200 * scale, 190 * scale), (42 * scale, 66 * scale), 0, 0, 360, 1, -1)
    image[truth == 1] = (190, 60, 50)
    noisy = image.astype(int) + rng.normal(0, 12, image.shape)
    return np.clip(noisy, 0, 255).astype(np.uint8), truth.astype(bool)


def overlap(one, two):
    return (one & two).sum() / (one | two).sum()


@pytest.mark.parametrize("scale", [1, 4])
def test_a_drawn_figure_is_found_again(scale):
    image, truth = drawn(scale)
    box = tuple(scale * side for side in BOX)
    mask = cut(image, box, "a")
    assert mask.shape == truth.shape
    assert mask.dtype == np.bool_
    # And it is much better than the box
    filled = np.zeros_like(truth)
    filled[int(box[1]) : int(box[1] + box[3]), int(box[0]) : int(box[0] + box[2])] = True
    assert overlap(mask, truth) > 0.9
    assert overlap(filled, truth) < 0.7
    assert not (mask & ~filled).any()


def test_the_same_name_gives_the_same_mask_whatever_was_cut_before():
    # Given a figure that noise all but hides, so that the clustering has a say
    image, _ = drawn()
    noise = np.random.default_rng(2).normal(0, 70, image.shape)
    hidden = np.clip(image + noise, 0, 255).astype(np.uint8)
    first = cut(hidden, BOX, "a")
    cut(image, BOX, "b")
    cv2.setRNGSeed(99)
    cv2.setNumThreads(2)
    np.testing.assert_array_equal(cut(hidden, BOX, "a"), first)
    assert cv2.getNumThreads() == 2
    assert any((cut(hidden, BOX, name) != first).any() for name in "bcdef")


@pytest.mark.parametrize(
    ("box", "reason"),
    [
        ((0.0, 0.0, 400.0, 300.0), "no background around the box"),
        ((10.0, 10.0, 3.0, 50.0), "box is too small"),
        ((500.0, 10.0, 50.0, 50.0), "box is too small"),
    ],
)
def test_what_cannot_be_cut_says_why(box, reason):
    with pytest.raises(NoCut, match=reason):
        cut(drawn()[0], box, "a")


def test_a_picture_of_one_colour_is_refused():
    with pytest.raises(NoCut, match="next to nothing is foreground"):
        cut(np.full((*SIZE, 3), 128, np.uint8), BOX, "a")


def test_nothing_but_background_in_the_box_is_refused():
    # Given a box in which everything looks like what is around it, but for a dot
    image = np.zeros((*SIZE, 3), np.uint8)
    image[:, ::2] = 40
    image[150:155, 195:200] = 255
    with pytest.raises(NoCut, match="next to nothing is foreground"):
        cut(image, BOX, "a")

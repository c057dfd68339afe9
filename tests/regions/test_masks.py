from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from truegap.regions import masks
from truegap.regions.masks import MaskError

SIZES = st.tuples(st.integers(1, 24), st.integers(1, 24))
MASKS = SIZES.flatmap(lambda size: arrays(np.bool_, size))


def packed(*runs: int) -> str:
    """Compressed counts of any runs at all, written independently of the code under test."""
    text = ""
    for place, run in enumerate(runs):
        value = run - runs[place - 2] if place > 2 else run
        while True:
            group, value = value & 0x1F, value >> 5
            done = value == (-1 if group & 0x10 else 0)
            text += chr(48 + (group if done else group | 0x20))
            if done:
                break
    return text


def test_tiny_mask_has_the_runs_that_a_hand_counts():
    # given two columns of three: background, 2 inside | 1 inside, background
    mask = np.array([[0, 1], [1, 0], [1, 0]], dtype=np.uint8)
    # then the runs go down the columns: 1 out, 3 in, 2 out
    assert masks.encode(mask) == packed(1, 3, 2) == masks.from_uncompressed([1, 3, 2], (3, 2))
    assert masks.area(packed(1, 3, 2), (3, 2)) == 3
    assert masks.decode(packed(1, 3, 2), (3, 2)).tolist() == [[False, True], [True, False], [True, False]]


def test_decode_gives_a_writable_mask_in_row_order():
    mask = masks.decode(packed(0, 2, 2), (2, 2))
    assert mask.dtype == np.bool_
    assert mask.flags.c_contiguous
    assert mask.flags.writeable


@given(MASKS)
def test_encode_and_decode_are_inverse(mask):
    counts = masks.encode(mask)
    assert (masks.decode(counts, mask.shape) == mask).all()
    assert masks.area(counts, mask.shape) == mask.sum()


@given(MASKS)
def test_decode_agrees_with_pycocotools(mask):
    from pycocotools import mask as coco

    counts = masks.encode(mask)
    theirs = coco.decode({"counts": counts, "size": list(mask.shape)})
    assert (theirs == masks.decode(counts, mask.shape)).all()


@given(st.data(), SIZES)
def test_union_is_inside_any(data, size):
    several = data.draw(st.lists(arrays(np.bool_, size), max_size=4))
    joined = masks.decode(masks.union([masks.encode(mask) for mask in several], size), size)
    assert (joined == np.any([np.zeros(size, np.bool_), *several], axis=0)).all()


def test_rectangle_polygon_is_exact():
    mask = masks.decode(masks.from_polygons([[1, 1, 4, 1, 4, 5, 1, 5]], (6, 8)), (6, 8))
    expected = np.zeros((6, 8), np.bool_)
    expected[1:5, 1:4] = True
    assert (mask == expected).all()


def test_polygons_are_united_and_cut_at_the_border():
    mask = masks.decode(masks.from_polygons([[-3, -3, 2, -3, 2, 2, -3, 2], [6, 4, 9, 4, 9, 7, 6, 7]], (6, 8)), (6, 8))
    expected = np.zeros((6, 8), np.bool_)
    expected[:2, :2] = True
    expected[4:, 6:] = True
    assert (mask == expected).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_polygons_agree_with_another_rasteriser(seed):
    from skimage.draw import polygon2mask

    # given a star-shaped polygon
    rng = np.random.default_rng(seed)
    angles = np.sort(rng.uniform(0, 2 * np.pi, 20))
    radii = rng.uniform(20, 45, 20)
    x, y = 60 + radii * np.cos(angles), 50 + radii * np.sin(angles)
    mask = masks.decode(masks.from_polygons([np.stack([x, y], axis=1).ravel().tolist()], (100, 120)), (100, 120))
    # then only pixels beside the outline differ: less than one per pixel of it
    theirs = polygon2mask((100, 120), np.stack([y, x], axis=1))
    outline = np.hypot(np.diff(x, append=x[0]), np.diff(y, append=y[0])).sum()
    assert (mask != theirs).sum() < outline
    assert mask.sum() > 500


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        (packed(1, 3), "do not add up"),
        (packed(1, 3, 3), "do not add up"),
        (packed(10, 2, -6), "negative"),
        (packed(2**31, 1, 1), "do not add up"),
        (packed(2**33 + 3, -(2**33), 3), "negative"),
        (packed(1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5), "more runs"),
        ("", "end early"),
        ("o", "end early"),
        ("oooooooooooo0", "too large"),
        ("1 3", "character"),
        ("é", "character"),
        ("\x00", "character"),
    ],
)
def test_hostile_counts_are_refused(counts, reason):
    for use in (masks.decode, masks.area, lambda text, size: masks.union([text, packed(6)], size)):
        with pytest.raises(MaskError, match=reason):
            use(counts, (3, 2))


@given(st.text(alphabet=[chr(48 + n) for n in range(64)], max_size=12), SIZES)
def test_any_text_is_a_mask_or_refused(counts, size):
    try:
        mask = masks.decode(counts, size)
    except MaskError:
        return
    assert mask.shape == size
    assert masks.area(counts, size) == mask.sum()


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ([1, 3], "do not add up"),
        ([1, -3, 8], "negative"),
        ([1, 2.5, 2.5], "not a list of integers"),
        (["1", "3", "2"], "not a list of integers"),
        ([2**70, 1, 1], "not a list of integers"),
        ([2**63 - 1, 2**63 - 1, 8], "do not add up"),
        ([], "not a list of integers"),
        ([[1], [3, 2]], "not a list of integers"),
        (None, "not a list of integers"),
        ({"a": 1}, "not a list of integers"),
    ],
)
def test_hostile_runs_are_refused(counts, reason):
    with pytest.raises(MaskError, match=reason):
        masks.from_uncompressed(counts, (3, 2))


@pytest.mark.parametrize(
    ("polygons", "reason"),
    [
        ([], "no polygon"),
        ([[1, 1, 4, 1]], "fewer than three"),
        ([[1, 1, 4, 1, 4]], "not a list of x, y"),
        ([[1, 1, 4, 1, 4, float("nan")]], "not finite"),
        ([[1, 1, 4, 1, 4, float("inf")]], "not finite"),
        ([[1, 1, 4, 1, 4, 1e300]], "far outside"),
        ([[1, 1, 4, 1, 4, "a"]], "not a number"),
        ([[1, 1, 4, 1, 4, None]], "not finite"),
        ([[[1, 1], [4, 1], [4, 4]]], "not a list of x, y"),
        ([[1, 1, 4, 1, 4, 5, 1, 5], [2, 2]], "fewer than three"),
        ([[9, 1, 12, 1, 12, 5]], "no pixel"),
        ([[0, 0, 8, 6] * 500_000], "too long"),
    ],
)
def test_hostile_polygons_are_refused(polygons, reason):
    with pytest.raises(MaskError, match=reason):
        masks.from_polygons(polygons, (6, 8))


@pytest.mark.parametrize("size", [(0, 5), (5, -1), (100_000, 100_000)])
def test_hostile_sizes_are_refused(size):
    for use in (masks.decode, masks.area, lambda text, size: masks.union([text], size)):
        with pytest.raises(MaskError, match="size"):
            use(packed(6), size)
    with pytest.raises(MaskError, match="size"):
        masks.from_polygons([[1, 1, 4, 1, 4, 5]], size)
    with pytest.raises(MaskError, match="size"):
        masks.union([], size)


def test_only_two_dimensional_masks_are_encoded():
    with pytest.raises(MaskError, match="two-dimensional"):
        masks.encode(np.zeros((2, 2, 1)))
    with pytest.raises(MaskError, match="size"):
        masks.encode(np.zeros((0, 4)))


def test_real_annotations_agree_with_pycocotools(shared):
    import json

    from pycocotools import mask as coco

    # given every annotation of real files, crowds too
    file = json.loads((shared / "data/tiny_coco/annotations/instances_val2017.json").read_text())
    sizes = {image["id"]: (image["height"], image["width"]) for image in file["images"]}
    close = []
    for entry in file["annotations"]:
        size, drawn = sizes[entry["image_id"]], entry["segmentation"]
        if entry["iscrowd"]:
            counts = masks.from_uncompressed(drawn["counts"], size)
        else:
            counts = masks.from_polygons(drawn, size)
        # then the mask is theirs
        theirs = coco.decode(coco.frPyObjects(drawn, *size))
        theirs = theirs.any(axis=2) if theirs.ndim == 3 else theirs
        assert (masks.decode(counts, size) == theirs).all()
        close.append(abs(masks.area(counts, size) - entry["area"]) < 0.2 * entry["area"] + 60)
    # and its area is the file's, where polygons do not overlap (there the file counts twice)
    assert len(close) == 382
    assert np.mean(close) > 0.95

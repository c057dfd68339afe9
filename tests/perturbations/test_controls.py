"""The controls that no paper has: the person removed, object placebos, backgrounds swapped."""

from __future__ import annotations

import numpy as np
import pytest

from truegap.perturbations import Options, draw, draw_placebo, redo
from truegap.perturbations.swap import cover, without_person
from truegap.schema import Perturbation, Region

SIZE = (60, 80)


@pytest.fixture
def image():
    return np.random.default_rng(0).integers(1, 256, (*SIZE, 3), np.uint8)


@pytest.fixture
def person():
    mask = np.zeros(SIZE, bool)
    mask[10:40, 30:45] = True
    mask[20:30, 45:50] = True
    return mask


def things(n: int) -> list[Region]:
    return [Region(id=i, label="cup", box=(9.0 * i, 45.0, 6.0, 5.0)) for i in range(n)]


def test_removed_person_is_black_and_nothing_else_changes(image, person):
    changed = redo(image, Perturbation("person-removed"), person_mask=person)
    assert not changed[person].any()
    np.testing.assert_array_equal(changed[~person], image[~person])


def test_removed_box_hides_the_outline(image, person):
    changed = redo(image, Perturbation("person-removed", options={"removal": "box"}), person_mask=person)
    expected = image.copy()
    expected[10:40, 30:50] = 0
    np.testing.assert_array_equal(changed, expected)


def test_nobody_to_remove(image):
    nobody = np.zeros(SIZE, bool)
    for removal in ("mask", "box"):
        drawn = Perturbation("person-removed", options={"removal": removal})
        np.testing.assert_array_equal(redo(image, drawn, person_mask=nobody), image)


@pytest.mark.parametrize("image_id", map(str, range(20)))
def test_placebo_is_the_same_rectangles_where_nothing_is(image, person, image_id):
    objects = things(8)
    meant = draw("object", "strong", image_id=image_id, objects=objects)
    drawn = draw_placebo("strong", person, image_id=image_id, objects=objects)
    assert drawn.object_ids == meant.object_ids
    assert sorted(box[2:] for box in drawn.boxes) == [(6.0, 5.0)] * len(meant.object_ids)
    assert drawn.overlapping == 0
    taken = person.copy()
    for each in objects:
        x, y, width, height = map(int, each.box)
        taken[y : y + height, x : x + width] = True
    changed = redo(image, drawn, person_mask=person)
    black = (changed != image).any(axis=2)
    assert black.sum() == 30 * len(drawn.boxes)  # off one another too
    assert not (black & taken).any()


def test_stronger_placebo_extends_the_weaker(person):
    for n in range(30):
        weak, strong = (draw_placebo(s, person, image_id=str(n), objects=things(8)).boxes for s in ("weak", "strong"))
        assert set(weak) <= set(strong)


def test_placebo_without_room_is_counted(image):
    everywhere = np.ones(SIZE, bool)
    drawn = draw_placebo("strong", everywhere, objects=things(8), options=Options(count="ceil"))
    assert drawn.overlapping == len(drawn.boxes) == 3


def test_objects_beyond_the_picture_have_placebos_inside(person):
    large = [Region(id=1, label="table", box=(-20.0, 30.0, 300.0, 300.0))]
    drawn = draw_placebo("weak", person, objects=large, options=Options(count="ceil"))
    assert drawn.boxes == ((0.0, 0.0, 80.0, 30.0),) or drawn.boxes[0][2:] == (80.0, 30.0)


def test_swap_keeps_the_person_and_nothing_else(image, person):
    donor = np.full((90, 120, 3), 200, np.uint8)
    donor_person = np.zeros((90, 120), bool)
    donor_person[20:80, 40:80] = True
    donor[donor_person] = 0
    drawn = Perturbation("background-swap", "cross", donor="7")
    changed = redo(image, drawn, person_mask=person, donor=(donor, donor_person))
    np.testing.assert_array_equal(changed[person], image[person])
    # the donor's person is painted over from around: nothing of it is left
    assert changed[~person].min() > 190


@pytest.mark.parametrize("size", [(1, 300), (300, 1), (1, 1)])
def test_a_narrow_donor_gives_the_same_every_time(image, person, size):
    donor = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    taken = np.zeros(size, bool)
    taken[: size[0] // 2 + 1, : size[1] // 2 + 1] = True
    drawn = Perturbation("background-swap", "same", donor="7")
    # given memory with other contents beside the picture each time
    results = set()
    for level in range(20):
        scratch = [np.full(length, level, np.uint8) for length in (64, 256, 1024, 4096)]
        del scratch
        results.add(redo(image, drawn, person_mask=person, donor=(donor, taken)).tobytes())
    assert len(results) == 1


@pytest.mark.parametrize("shape", [(9, 9), (9, 9, 5), (0, 9, 3)])
def test_a_donor_that_is_no_picture_is_refused(image, person, shape):
    drawn = Perturbation("background-swap", "same", donor="7")
    with pytest.raises(ValueError, match=r"donor has shape .*: give RGB"):
        redo(image, drawn, person_mask=person, donor=(np.zeros(shape, np.uint8), np.zeros(shape[:2], bool)))


def test_painting_over_leaves_the_rest(image, person):
    filled = without_person(image, person)
    far = np.zeros(SIZE, bool)
    far[:, :20] = True
    np.testing.assert_array_equal(filled[far], image[far])
    assert (filled[person] != image[person]).any()


@pytest.mark.parametrize("size", [(60, 80), (80, 60), (30, 200), (200, 30), (1, 1)])
def test_cover_fills_without_distortion(size):
    # given a picture of one wide band; then it stays horizontal, and no border appears
    picture = np.zeros((50, 70, 3), np.uint8)
    picture[:25] = 255
    covered = cover(picture, size)
    assert covered.shape == (*size, 3)
    assert (covered == covered[:, :1]).all()


def test_missing_parts_are_named(image, person):
    with pytest.raises(ValueError, match="person-removed needs person_mask"):
        redo(image, Perturbation("person-removed"))
    with pytest.raises(ValueError, match="background-swap needs the image '7' and its person mask: pass donor"):
        redo(image, Perturbation("background-swap", "same", donor="7"), person_mask=person)

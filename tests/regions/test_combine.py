from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truegap.regions.combine import Detection, as_regions, intersection_over_union, is_part, is_person, suppress

SIDES = st.integers(0, 20).map(float)
BOXES = st.lists(st.tuples(SIDES, SIDES, st.integers(1, 20).map(float), st.integers(1, 20).map(float)), max_size=6)


def found(label="cup", score=0.9, box=(0.0, 0.0, 10.0, 10.0), origin="a"):
    return Detection(label, score, box, None, origin)


@given(BOXES, BOXES)
def test_overlap_is_that_of_counted_pixels(one, two):
    # Given boxes drawn on a grid of whole pixels
    def drawn(box):
        mask = np.zeros((40, 40), bool)
        mask[int(box[1]) : int(box[1] + box[3]), int(box[0]) : int(box[0] + box[2])] = True
        return mask

    shares = intersection_over_union(one, two)
    assert shares.shape == (len(one), len(two))
    for i, a in enumerate(one):
        for j, b in enumerate(two):
            assert shares[i, j] == pytest.approx((drawn(a) & drawn(b)).sum() / (drawn(a) | drawn(b)).sum())


def test_of_two_detections_of_one_thing_the_surer_stays():
    sure, unsure = found(score=0.9), found("mug", 0.8, (0.5, 0, 10, 10))
    assert suppress([], [unsure, sure]) == [sure]


def test_an_earlier_detector_goes_before_a_surer_later_one():
    first, second = found(score=0.3, origin="first"), found("mug", 0.9, origin="second")
    assert suppress([], [first, second]) == [first]


def test_what_is_annotated_stays_and_hides_what_is_found_there():
    here, there = found(), found(box=(30.0, 30.0, 5.0, 5.0))
    assert suppress([(0, 0, 10, 10)], [here, there]) == [there]


def test_two_things_that_only_touch_both_stay():
    # Given two boxes that share two thirds of their union
    one, two = found(box=(0.0, 0.0, 10.0, 10.0)), found(score=0.5, box=(2.0, 0.0, 10.0, 10.0))
    assert suppress([], [one, two]) == [one, two]


def test_a_suppressed_box_hides_nothing_itself():
    # Given a row of boxes, each of which is like its neighbour but not like the one after
    a, b, c = (
        found(score=score, box=(shift, 0.0, 20.0, 10.0)) for score, shift in ((0.9, 0.0), (0.8, 3.0), (0.7, 6.0))
    )
    assert suppress([], [a, b, c]) == [a, c]


def test_ids_are_unique_and_exact_as_doubles():
    twice = [found(), found(), found("dog")]
    regions = as_regions(twice, taken=[as_regions([found()])[0].id])
    ids = [each.id for each in regions]
    assert len({*ids, as_regions([found()])[0].id}) == 4
    assert all(0 <= each < 2**53 for each in ids)


def test_ids_do_not_depend_on_what_else_was_found():
    cup, dog = found(), found("dog", box=(5.0, 5.0, 30.0, 30.0))
    assert as_regions([dog, cup])[1].id == as_regions([cup])[0].id
    assert as_regions([cup])[0].id != as_regions([dog])[0].id


@pytest.mark.parametrize("label", ["person", "Woman", " boy ", "CHILD"])
def test_human_beings_are_persons(label):
    assert is_person(label)


@pytest.mark.parametrize("label", ["snowman", "mannequin", "teddy bear", "manhole", "person's hat"])
def test_other_things_are_no_persons(label):
    assert not is_person(label)


def test_parts_of_the_body_are_parts():
    assert is_part("Human hair")
    assert not is_part("humanoid robot")

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from examples import SIZE, example, person_mask
from truegap.build.images import decode
from truegap.regions import grabcut, masks
from truegap.regions.combine import Detection
from truegap.regions.find import NOBODY, find
from truegap.regions.finders import Finders, choose
from truegap.regions.models import resolve
from truegap.schema import Region

PERSON = Region(1, "person", (20.0, 5.0, 20.0, 25.0))
ORIGIN = "found.json@0 (score>=0.5)"


class File:
    """Stands where a file of detections stands; `find` only asks whether there is one."""


def bare(**changes):
    return example(0, persons=(PERSON,), **changes)


def looked_at(one, finders, given=()):
    return find(one, decode(one.image.read()), finders, given)


def detection(label, box, score=0.9, mask=None):
    return Detection(label, score, box, mask, ORIGIN)


def from_file(**options):
    return Finders(file=File(), annotated_objects=False, **options)


def test_annotated_masks_stay_and_missing_ones_are_cut():
    one = example(0, persons=(*example(0).persons, replace(PERSON, id=2, box=(2.0, 2.0, 16.0, 30.0))))
    found = looked_at(one, choose("grabcut"))
    assert found.persons[0] == one.persons[0]
    cut = found.persons[1]
    if cut.mask is None:
        assert cut.origin.startswith("annotation; mask: box (grabcut: ")
    else:
        assert cut.origin == f"annotation; mask: {grabcut.describe()}"
        assert 0 < masks.area(cut.mask, SIZE) <= 16 * 30
    assert found.objects == one.objects


def test_a_box_stands_in_where_nothing_can_be_cut_and_is_counted():
    whole = example(0, persons=(replace(PERSON, box=(0.0, 0.0, 60.0, 40.0)),))
    found = looked_at(whole, choose("grabcut"))
    assert found.persons[0].mask is None
    assert found.persons[0].origin == "annotation; mask: box (grabcut: no background around the box)"
    assert found.repairs == {"box stands in for a mask (grabcut: no background around the box)": 1}


def test_box_leaves_masks_aside():
    found = looked_at(example(0), choose("box"))
    assert [each.mask for each in found.persons] == [None]
    assert found.persons[0].origin == "annotation; mask: box"
    assert found.objects == example(0).objects


def test_detected_persons_stand_in_where_none_is_annotated_largest_first():
    given = [
        detection("man", (0.0, 0.0, 5.0, 5.0)),
        detection("cup", (30.0, 30.0, 6.0, 6.0)),
        detection("woman", (10.0, 0.0, 20.0, 30.0)),
        detection("Human face", (12.0, 0.0, 6.0, 6.0)),
    ]
    found = looked_at(example(0, persons=(), objects=()), from_file(), given)
    assert [each.label for each in found.persons] == ["woman", "man"]
    assert [each.label for each in found.objects] == ["cup"]
    assert {each.origin for each in (*found.persons, *found.objects)} == {ORIGIN}


def test_annotated_persons_stay_and_detected_ones_are_never_objects():
    found = looked_at(bare(), from_file(), [detection("man", (0.0, 0.0, 5.0, 5.0))])
    assert found.persons == (PERSON,)
    assert found.objects == ()


def test_objects_come_from_what_is_named():
    cup = detection("mug", (6.0, 25.5, 5.0, 12.0))  # on an annotated cup
    dog = detection("dog", (50.0, 1.0, 8.0, 8.0))
    alone = looked_at(bare(), from_file(), [cup, dog])
    assert {each.label for each in alone.objects} == {"mug", "dog"}
    both = looked_at(bare(), replace(from_file(), annotated_objects=True), [cup, dog])
    assert both.objects[:8] == bare().objects
    assert [each.label for each in both.objects[8:]] == ["dog"]
    ids = [each.id for each in both.objects]
    assert len(set(ids)) == len(ids)


def test_the_mask_of_a_detected_person_goes_to_the_annotated_one_who_is_the_same():
    counts = masks.encode(person_mask())
    near = detection("person", (21.0, 5.0, 20.0, 25.0), mask=counts)
    far = detection("person", (0.0, 0.0, 10.0, 10.0), score=0.99, mask=counts)
    found = looked_at(bare(), from_file(), [far, near])
    assert found.persons == (replace(PERSON, mask=counts, origin=f"annotation; mask: {ORIGIN}"),)
    assert looked_at(bare(), from_file(), [far]).persons == (PERSON,)


def test_a_detected_mask_is_given_once_to_the_closest():
    counts = masks.encode(person_mask())
    two = (replace(PERSON, id=1, box=(22.0, 5.0, 20.0, 25.0)), replace(PERSON, id=2))
    found = looked_at(bare(), from_file(), [detection("person", (20.0, 5.0, 20.0, 25.0), mask=counts)])
    assert found.persons[0].mask == counts
    crowded = looked_at(replace(bare(), persons=two), from_file(), [detection("person", PERSON.box, mask=counts)])
    assert [each.mask for each in crowded.persons] == [None, counts]
    # And two detected persons go to the two annotated ones
    given = [detection("person", two[0].box, mask=counts), detection("person", (16.0, 5.0, 20.0, 25.0), mask=counts)]
    paired = looked_at(replace(bare(), persons=two), from_file(), given)
    assert [each.mask for each in paired.persons] == [counts, counts]


def test_an_image_without_anybody_has_a_problem():
    assert looked_at(example(0, persons=()), choose("grabcut")).problem == NOBODY
    assert looked_at(bare(), choose("grabcut")).problem is None


def test_object_masks_are_made_only_where_they_are_asked_for():
    cup = Region(5, "cup", (5.0, 5.0, 20.0, 20.0))
    plain = looked_at(bare(objects=(cup,)), choose("grabcut"))
    asked = looked_at(bare(objects=(cup,)), choose("grabcut", object_masks=True))
    assert plain.objects == (cup,)
    assert asked.objects[0].origin.startswith("annotation; mask: ")


def test_sam_makes_masks_of_annotated_and_of_detected_boxes(saved):
    sam = resolve(str(saved("sam")))
    found = looked_at(
        example(0, persons=(), objects=()), from_file(masks=sam), [detection("person", (5.0, 5.0, 30.0, 30.0))]
    )
    (person,) = found.persons
    assert person.mask is None or person.origin == f"{ORIGIN}; mask: {sam.origin}"
    annotated = looked_at(bare(), choose(str(saved("sam"))))
    assert annotated.persons[0].origin.startswith("annotation; mask: ")
    assert (annotated.persons[0].mask is None) == bool(annotated.repairs)
    assert looked_at(example(0), choose(str(saved("sam")))).persons == example(0).persons


def test_several_detectors_are_united(saved):
    one, two = str(saved("detr")), str(saved("rt_detr"))
    alone = [looked_at(bare(), choose(each, threshold=0.1)) for each in (one, two)]
    both = looked_at(bare(), choose(f"{one},{two}", threshold=0.1))
    boxes = {each.id: each for each in both.objects}
    # Everything of the first is there, and of the second what is not there already
    assert {each.id for each in alone[0].objects} <= set(boxes)
    assert set(boxes) <= {each.id for some in alone for each in some.objects}
    assert {each.origin.partition("@")[0] for each in both.objects} == {"tiny-detr", "tiny-rt_detr"}
    assert len(both.objects) > len(alone[0].objects) > 0


@pytest.mark.parametrize("family", ["mask2former", "eomt", "owlv2", "grounding_dino"])
def test_the_same_image_gives_the_same_regions(saved, family):
    finders = choose(str(saved(family)), threshold=0.05)
    first = looked_at(example(3, persons=()), finders)
    assert looked_at(example(3, persons=()), finders) == first
    assert first.persons or first.objects
    for each in (*first.persons, *first.objects):
        assert np.isfinite(each.box).all()
        assert each.box[0] + each.box[2] <= SIZE[1] + 1e-6

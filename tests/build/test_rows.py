from __future__ import annotations

import hashlib

import numpy as np
import pytest

from examples import SIZE, person_mask
from truegap.build.rows import perturbation_field, perturbation_of, regions_of, row_hash
from truegap.regions import masks
from truegap.schema import Perturbation, Region


@pytest.mark.parametrize(
    "drawn",
    [
        Perturbation("none"),
        Perturbation("color", "weak", 3, shift=-4),
        Perturbation("object", "strong", 0, object_ids=(900100000105, 2), n_objects=9, options={"shape": "mask"}),
        Perturbation("object", "weak", 0, object_ids=(), n_objects=0),
        Perturbation("background", "strong", 0, radius=40.0, options={"bleed": "none"}),
    ],
)
def test_perturbation_survives_its_column(drawn):
    assert perturbation_of(perturbation_field(drawn)) == drawn


def test_person_mask_is_the_union_and_a_box_where_there_is_no_mask():
    persons = (Region(1, "person", (20, 5, 20, 25), masks.encode(person_mask())), Region(2, "person", (0.5, 0, 2, 3)))
    expected = person_mask()
    expected[0:3, 0:3] = True
    np.testing.assert_array_equal(regions_of(persons, (), SIZE).person_mask, expected)


def test_object_masks_are_decoded_only_when_asked_for():
    thing = Region(7, "cup", (0, 0, 5, 5), masks.encode(person_mask()))
    assert regions_of((), (thing,), SIZE).object_masks == {}
    np.testing.assert_array_equal(regions_of((), (thing,), SIZE, with_masks=True).object_masks[7], person_mask())


def test_row_hash_sees_image_and_fields():
    fields = {"image_id": "1", "gender": 0}
    assert row_hash("a", fields) == row_hash("a", dict(reversed(fields.items())))
    assert len({row_hash("a", fields), row_hash("b", fields), row_hash("a", fields | {"gender": 1})}) == 3


def test_row_hash_is_that_of_the_canonical_json():
    fields = {"image_id": "é1", "gender": 0, "perturbation": {"b": [1.5, None], "a": "x"}}
    line = '{"gender":0,"image":"abc","image_id":"\\u00e91","perturbation":{"a":"x","b":[1.5,null]}}'
    assert row_hash("abc", fields) == hashlib.sha256(line.encode()).hexdigest()

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from truegap.counterfactual import Picture, bleach
from truegap.counterfactual.bleach import bleach_pictures
from truegap.regions import masks
from truegap.schema import Region

PICTURE = Picture("Chef", "woman", 0)


@pytest.fixture
def photo():
    return np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)


@pytest.fixture
def person():
    mask = np.zeros((24, 32), bool)
    mask[4:20, 10:20] = True
    return mask


def test_only_the_person_loses_its_colour(photo, person):
    before = photo.copy()
    bleached = bleach(photo, person)
    assert (photo == before).all()
    assert (bleached[~person] == photo[~person]).all()
    inside = bleached[person]
    assert (inside == inside[:, :1]).all()
    assert np.abs(inside[:, 0] - photo[person] @ [0.299, 0.587, 0.114]).max() <= 1


def test_a_pil_image_comes_back_as_one_and_agrees_with_the_array(photo, person):
    bleached = bleach(Image.fromarray(photo), person)
    assert isinstance(bleached, Image.Image)
    assert (np.asarray(bleached) == bleach(photo, person)).all()
    assert bleach(Image.fromarray(photo).convert("RGBA"), person).mode == "RGB"


def test_a_view_that_is_not_contiguous_is_fine(photo, person):
    turned = bleach(photo[:, ::-1], person[:, ::-1])
    assert (turned[:, ::-1] == bleach(photo, person)).all()


@pytest.mark.parametrize("shape", [(24, 31), (32, 24), (24, 32, 1)])
def test_a_mask_of_another_shape_is_refused(photo, shape):
    with pytest.raises(ValueError, match="mask of bool"):
        bleach(photo, np.zeros(shape, bool))


def test_values_that_are_no_image_or_mask_are_refused(photo, person):
    with pytest.raises(ValueError, match="uint8"):
        bleach(photo / 255, person)
    with pytest.raises(ValueError, match="mask of uint8"):
        bleach(photo, person.astype(np.uint8))


def region(mask=None, number=1):
    return Region(number, "person", (10, 4, 10, 16), None if mask is None else masks.encode(mask), "found")


def test_pictures_are_bleached_once_and_again_when_mask_or_base_changes(tmp_path, put, person):
    base = put(tmp_path / PICTURE.path("base"))
    found = {PICTURE.path("base"): [region(person)]}
    assert bleach_pictures(tmp_path, [PICTURE], found) == (1, {})
    assert bleach_pictures(tmp_path, [PICTURE], found) == (0, {})
    written = np.asarray(Image.open(tmp_path / PICTURE.path("bleached")))
    assert (written == bleach(np.asarray(Image.open(base)), person)).all()
    assert bleach_pictures(tmp_path, [PICTURE], {PICTURE.path("base"): [region(~person)]}) == (1, {})
    put(base, 9)
    assert bleach_pictures(tmp_path, [PICTURE], found) == (1, {})


def test_a_person_without_a_mask_is_left_out_and_nothing_old_stays(tmp_path, put, person):
    put(tmp_path / PICTURE.path("base"))
    both = {PICTURE.path("base"): [region(person), region(number=2)]}
    bleach_pictures(tmp_path, [PICTURE], {PICTURE.path("base"): [region(person)]})
    assert bleach_pictures(tmp_path, [PICTURE], both) == (0, {"a person has no mask": 1})
    assert not (tmp_path / PICTURE.path("bleached")).exists()
    assert bleach_pictures(tmp_path, [PICTURE], {}) == (0, {"nobody was detected": 1})
    wrong = {PICTURE.path("base"): [region(np.ones((5, 5), bool))]}
    assert bleach_pictures(tmp_path, [PICTURE], wrong)[1].total() == 1
    (tmp_path / PICTURE.path("base")).write_bytes(b"\x89PNG not really")
    assert bleach_pictures(tmp_path, [PICTURE], both)[1] == {"not a JPEG, PNG or WebP image": 1}
    (tmp_path / PICTURE.path("base")).unlink()
    assert bleach_pictures(tmp_path, [PICTURE], both)[1] == {"no base image": 1}


def test_two_persons_are_bleached_both(tmp_path, put, person):
    base = put(tmp_path / PICTURE.path("base"))
    other = np.zeros_like(person)
    other[0:3, 0:3] = True
    bleach_pictures(tmp_path, [PICTURE], {PICTURE.path("base"): [region(person), region(other, 2)]})
    written = np.asarray(Image.open(tmp_path / PICTURE.path("bleached")))
    assert (written == bleach(np.asarray(Image.open(base)), person | other)).all()

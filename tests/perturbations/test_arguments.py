"""What people pass for masks, objects and options."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

from truegap.perturbations import Options, draw, perturb, redo
from truegap.schema import Perturbation, Region

IMAGE = np.random.default_rng(0).integers(0, 256, (12, 16, 3), np.uint8)
OBJECTS = [Region(number, "cup", (2.0 * number, 1.0, 3.0, 8.0)) for number in range(6)]
MASKS = arrays.arrays(bool, IMAGE.shape[:2])
MEANT = {
    "0 and 1": lambda mask: mask.astype(np.uint8),
    "0 and 255": lambda mask: mask.astype(np.uint8) * 255,
    "mode 1": Image.fromarray,
    "mode L, 255": lambda mask: Image.fromarray(mask.astype(np.uint8) * 255),
    "mode L, 1": lambda mask: Image.fromarray(mask.astype(np.uint8)),
    "Fortran order": np.asfortranarray,
    "a view": lambda mask: np.repeat(mask, 2, axis=1)[:, ::2],
}


@pytest.mark.parametrize("form", MEANT)
@settings(max_examples=15, deadline=None)
@given(mask=MASKS)
def test_a_mask_means_the_same_in_every_form(form, mask):
    given_so = MEANT[form](mask)
    for feature in ("background", "object"):
        wanted, drawn = perturb(IMAGE, feature, "strong", person_mask=mask, objects=OBJECTS)
        found, _ = perturb(IMAGE, feature, "strong", person_mask=given_so, objects=OBJECTS)
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(redo(IMAGE, drawn, person_mask=given_so, objects=OBJECTS), wanted)


@pytest.mark.parametrize("form", MEANT)
@settings(max_examples=10, deadline=None)
@given(mask=MASKS)
def test_masks_of_objects_too(form, mask):
    options = Options(shape="mask", count="ceil")

    def blacked(made):
        masks = {each.id: made for each in OBJECTS}
        return perturb(IMAGE, "object", "strong", objects=OBJECTS, object_masks=masks, options=options)[0]

    np.testing.assert_array_equal(blacked(MEANT[form](mask)), blacked(mask))


@settings(max_examples=50, deadline=None)
@given(mask=arrays.arrays(np.uint8, IMAGE.shape[:2], elements=st.sampled_from([0, 1, 2, 127, 254, 255])))
def test_what_is_neither_on_nor_off_is_refused(mask):
    known = {0, 1} >= set(mask.ravel().tolist()) or {0, 255} >= set(mask.ravel().tolist())
    for made in (mask, Image.fromarray(mask)):
        if known:
            perturb(IMAGE, "background", "weak", person_mask=made)
        else:
            with pytest.raises(ValueError, match=r"^person_mask holds other values than 0 and 1, .*> 127`$"):
                perturb(IMAGE, "background", "weak", person_mask=made)


@settings(max_examples=40, deadline=None)
@given(
    shape=arrays.array_shapes(min_dims=0, max_dims=4, max_side=20),
    dtype=st.sampled_from([bool, np.uint8, np.int64, np.float32, np.uint16]),
)
def test_a_mask_of_another_shape_or_type_is_refused(shape, dtype):
    mask = np.zeros(shape, dtype)
    if mask.shape == IMAGE.shape[:2] and dtype in (bool, np.uint8):
        return
    with pytest.raises(ValueError, match=r"^person_mask is ndarray of .*: give booleans of shape \(12, 16\)$"):
        perturb(IMAGE, "background", "weak", person_mask=mask)


@pytest.mark.parametrize("mode", ["RGB", "P", "LA", "I", "F"])
def test_a_picture_of_another_mode_is_no_mask(mode):
    mask = Image.new(mode, (16, 12))
    with pytest.raises(ValueError, match=f"^person_mask is a PIL image of mode {mode}: give one of mode 1 or L$"):
        perturb(IMAGE, "background", "weak", person_mask=mask)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"person_mask": [[True]]}, "person_mask is list: give an array of booleans"),
        ({"person_mask": "mask.png"}, "person_mask is str: give an array of booleans"),
        ({"options": {"shape": "mask"}}, r"options is dict: give truegap.perturbations.Options, such as"),
        ({"options": "mask"}, "options is str: give"),
        ({"objects": "cup"}, "objects is str: give a list of truegap.schema.Region"),
        ({"objects": {"id": 1}}, "objects is dict: give a list"),
        ({"objects": OBJECTS[0]}, "objects is Region: give a list"),
        ({"objects": 3}, "objects is int: give a list"),
        (
            {"objects": [OBJECTS[0], {"id": 1, "bbox": [0, 0, 1, 1]}]},
            r"objects\[1\] is dict: give truegap",
        ),
        ({"objects": np.zeros((2, 4))}, r"objects\[0\] is ndarray of float64: give"),
        ({"object_masks": [np.zeros((12, 16), bool)]}, "object_masks is list: give a dict of masks by object id"),
    ],
)
def test_arguments_of_another_type_are_refused_in_one_line(arguments, message):
    for feature in ("object", "color") if "person_mask" not in arguments else ("background",):
        with pytest.raises(TypeError, match=message) as error:
            perturb(IMAGE, feature, "strong", **{"objects": OBJECTS, **arguments})
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("box", [(0, 0, 1), (0, 0, 1, float("nan")), (0, 0, float("inf"), 1), ("a",) * 4, None])
def test_a_box_that_is_none_is_refused(box):
    with pytest.raises(ValueError, match=r"^objects\[0\]: box is .*: give four finite numbers"):
        draw("object", "strong", objects=[Region(1, "cup", box)])


def test_an_iterator_of_objects_is_not_used_up():
    wanted, _ = perturb(IMAGE, "object", "strong", objects=OBJECTS)
    found, _ = perturb(IMAGE, "object", "strong", objects=iter(OBJECTS))
    np.testing.assert_array_equal(found, wanted)


def test_a_row_is_not_what_was_drawn():
    with pytest.raises(TypeError, match=r"^perturbation is dict: give what draw or perturb returned$"):
        redo(IMAGE, {"feature": "color"})


@pytest.mark.parametrize("shift", [256, -256, 10**12, 2**70, 1.5, float("nan"), "x"])
@pytest.mark.parametrize("feature", ["color", "lighting"])
def test_a_shift_beyond_the_scale_is_refused(feature, shift):
    with pytest.raises(ValueError, match=r"shift is .*: give a whole number from -255 to 255"):
        redo(IMAGE, Perturbation(feature, shift=shift))


@pytest.mark.parametrize("radius", [-3, 1e9, float("inf"), float("nan"), "x"])
@pytest.mark.parametrize("bleed", ["paste", "none"])
def test_a_radius_beyond_any_picture_is_refused(bleed, radius):
    nobody = np.zeros(IMAGE.shape[:2], bool)
    with pytest.raises(ValueError, match=r"radius is .*: give a number from 0 to 10000"):
        redo(IMAGE, Perturbation("background", radius=radius, options={"bleed": bleed}), person_mask=nobody)


def test_numbers_of_numpy_are_numbers():
    nobody = np.zeros(IMAGE.shape[:2], bool)
    for plain, of_numpy in ((200, np.uint8(200)), (-7, np.int64(-7))):
        wanted = redo(IMAGE, Perturbation("color", shift=plain))
        np.testing.assert_array_equal(redo(IMAGE, Perturbation("color", shift=of_numpy)), wanted)
    wanted = redo(IMAGE, Perturbation("background", radius=2.5), person_mask=nobody)
    found = redo(IMAGE, Perturbation("background", radius=np.float32(2.5)), person_mask=nobody)
    np.testing.assert_array_equal(found, wanted)

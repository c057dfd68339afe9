from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

import truegap
from truegap.perturbations import Options, draw, perturb, redo, redo_all
from truegap.schema import Perturbation, Region

FEATURES = ("color", "lighting", "object", "background")
OBJECTS = [Region(id=i, label="cup", box=(8.0 * i, 4.0, 8.0, 10.0)) for i in range(5)]


@pytest.fixture
def image():
    return np.random.default_rng(0).integers(0, 256, (32, 48, 3), np.uint8)


@pytest.fixture
def person():
    mask = np.zeros((32, 48), bool)
    mask[2:20, 10:30] = True
    return mask


@pytest.mark.parametrize("feature", FEATURES)
def test_type_and_size_come_back(image, person, feature):
    as_array, drawn = perturb(image, feature, "strong", image_id="1", person_mask=person, objects=OBJECTS)
    as_pil, drawn_pil = perturb(
        Image.fromarray(image), feature, "strong", image_id="1", person_mask=person, objects=OBJECTS
    )
    assert type(as_array) is np.ndarray
    assert isinstance(as_pil, Image.Image)
    assert drawn == drawn_pil
    np.testing.assert_array_equal(as_array, np.asarray(as_pil))


@pytest.mark.parametrize("feature", FEATURES)
def test_input_is_left_alone_and_redo_repeats(image, person, feature):
    before = image.copy()
    changed, drawn = perturb(image, feature, "strong", image_id="3", person_mask=person, objects=OBJECTS)
    np.testing.assert_array_equal(image, before)
    assert (changed != image).any()
    np.testing.assert_array_equal(redo(image, drawn, person_mask=person, objects=OBJECTS), changed)


@pytest.mark.parametrize("strength", ["weak", "middle", "strong"])
@pytest.mark.parametrize("bleed", ["paste", "none"])
def test_background_leaves_the_person(image, person, strength, bleed):
    blurred, drawn = perturb(image, "background", strength, person_mask=person, options=Options(bleed=bleed))
    np.testing.assert_array_equal(blurred[person], image[person])
    assert drawn.radius == {"weak": 10, "middle": 25, "strong": 40}[strength]
    assert blurred[~person].std() < image[~person].std() / 3


def test_no_bleed_lets_no_person_pixel_out(person):
    # given a white person on black; then the halo is there when pasting and gone without bleeding
    image = np.repeat((person * 255).astype(np.uint8)[..., None], 3, axis=2)
    halo, _ = perturb(image, "background", "weak", person_mask=person)
    clean, _ = perturb(image, "background", "weak", person_mask=person, options=Options(bleed="none"))
    assert halo[~person].max() > 50
    assert clean[~person].max() == 0


def test_no_bleed_is_normalised_convolution(image, person):
    # independent reference: scipy's Gaussian, weighted by the background; three boxes are close to it
    blurred = redo(image, Perturbation(feature="background", radius=3.0, options={"bleed": "none"}), person_mask=person)
    weights = (~person).astype(float)
    below = ndimage.gaussian_filter(weights, 3.0, mode="nearest")
    for channel in range(3):
        above = ndimage.gaussian_filter(image[..., channel] * weights, 3.0, mode="nearest")
        expected = (above / below)[~person]
        assert np.abs(blurred[..., channel][~person] - expected).mean() < 2


def test_objects_are_black_and_the_person_is_not(image, person):
    blacked = redo(image, Perturbation("object", object_ids=(1, 4)), person_mask=person, objects=OBJECTS)
    expected = image.copy()
    expected[4:14, 8:16] = 0
    expected[4:14, 32:40] = 0
    expected[person] = image[person]
    np.testing.assert_array_equal(blacked, expected)


def test_unprotected_person_is_covered(image, person):
    options = {"protect_person": False}
    blacked = redo(image, Perturbation("object", object_ids=(1,), options=options), person_mask=person, objects=OBJECTS)
    assert not blacked[4:14, 8:16].any()


def test_mask_shape_blacks_out_the_mask(image):
    mask = np.zeros((32, 48), bool)
    mask[5, 9] = True
    drawn = Perturbation("object", object_ids=(1, 2), options={"shape": "mask"})
    blacked = redo(image, drawn, objects=OBJECTS, object_masks={1: mask})
    expected = image.copy()
    expected[5, 9] = 0
    expected[4:14, 16:24] = 0  # object 2 has no mask: its box
    np.testing.assert_array_equal(blacked, expected)


def test_boxes_outside_the_image_are_clipped(image):
    outside = [Region(id=1, label="cup", box=(-5, -5, 7, 7)), Region(id=2, label="cup", box=(100, 100, 5, 5))]
    blacked = redo(image, Perturbation("object", object_ids=(1, 2)), objects=outside)
    expected = image.copy()
    expected[:2, :2] = 0
    np.testing.assert_array_equal(blacked, expected)


def test_no_objects_changes_nothing(image):
    same, drawn = perturb(image, "object", "strong")
    np.testing.assert_array_equal(same, image)
    assert (drawn.object_ids, drawn.n_objects) == ((), 0)


def test_views_are_perturbed_like_copies(image, person):
    for feature in FEATURES:
        view, _ = perturb(image[:, ::-1], feature, "strong", person_mask=person, objects=OBJECTS)
        copy, _ = perturb(image[:, ::-1].copy(), feature, "strong", person_mask=person, objects=OBJECTS)
        np.testing.assert_array_equal(view, copy)


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "CMYK"])
def test_other_pil_modes_become_rgb(image, mode):
    changed, _ = perturb(Image.fromarray(image).convert(mode), "color", "weak")
    assert changed.mode == "RGB"


def test_bad_input_names_the_remedy(image, person):
    with pytest.raises(TypeError, match=r"ndarray of float64: give a PIL image or a uint8 RGB array"):
        perturb(image / 255.0, "color", "weak")
    with pytest.raises(ValueError, match=r"shape \(32, 48\): give RGB"):
        perturb(image[..., 0], "color", "weak")
    with pytest.raises(ValueError, match="background needs person_mask"):
        perturb(image, "background", "weak")
    with pytest.raises(ValueError, match=r"person_mask .*give booleans of shape \(32, 48\)"):
        perturb(image, "background", "weak", person_mask=person[:5])
    with pytest.raises(ValueError, match=r"objects \[9\] were drawn"):
        redo(image, Perturbation("object", object_ids=(9,)), objects=OBJECTS)


def test_public_face():
    assert truegap.perturb is perturb
    assert truegap.redo is redo


def test_a_fourth_channel_changes_no_pixel(image, person):
    # given every kind of change, some sharing the conversion to HSV
    drawn = [draw(feature, "strong", image_id="1", objects=OBJECTS) for feature in FEATURES]
    drawn += [
        Perturbation("background", radius=10.0, options={"bleed": "none"}),
        Perturbation("control-hsv"),
        Perturbation("none"),
        Perturbation("person-removed"),
        Perturbation("person-removed", options={"removal": "box"}),
        Perturbation("object", object_ids=(OBJECTS[0].id,), options={"shape": "mask"}),
        Perturbation("object-placebo", boxes=((1.0, 2.0, 9.0, 5.0),)),
        Perturbation("background-swap", "same", donor="2"),
    ]
    given = {"person_mask": person, "objects": OBJECTS, "object_masks": {OBJECTS[0].id: person[:, ::-1].copy()}}
    padded = np.concatenate([image, image[..., :1]], axis=2)
    plain, four = ({"2": (each[::-1].copy(), person[::-1].copy())} for each in (image, padded))
    expected = redo_all(image, drawn, **given, donors=plain)
    for one, other in zip(expected, redo_all(padded, drawn, **given, donors=four), strict=True):
        np.testing.assert_array_equal(other[..., :3], one)
    with pytest.raises(ValueError, match=r"give RGB \(height, width, 3\)"):
        redo(padded, drawn[0], person_mask=person)

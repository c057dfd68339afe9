"""Predictions are made from the rendering: what is left of each feature at its own place."""

from __future__ import annotations

import pytest

from truegap.instrument.predict import predicted
from truegap.perturbations import draw
from truegap.schema import Perturbation
from truegap.synthetic import example, strengths
from truegap.synthetic.readings import FULL, NAMES, hue_reading, value_reading

SIGN = {"woman": -1, "man": 1}


@pytest.fixture(scope="module")
def images():
    made = [example(31, index, strengths(0.5)) for index in range(4)]
    return {one.image_id: one for one in made}


def planted(one) -> dict[str, float]:
    scene = one.image.scene
    signs = {name: SIGN[gender] * FULL for name, gender in scene.typical.items()}
    return {
        "person": signs["presentation"],
        "background": signs["background"],
        "object": signs["object"],
        "color": hue_reading(scene.hue),
        "lighting": value_reading(scene.value),
    }


def test_an_untouched_picture_shows_what_was_planted(images):
    for one in images.values():
        found = predicted(one, {"original": Perturbation("none")}, images)["original"]
        assert list(found) == list(NAMES)
        assert found == pytest.approx(planted(one), abs=0.05)


def test_a_shift_moves_its_own_feature_as_far_as_it_says(images):
    for one in images.values():
        scene = one.image.scene
        drawn = {
            f"{name}-{shift}": Perturbation(name, shift=shift) for name in ("color", "lighting") for shift in (-9, 9)
        }
        found = predicted(one, drawn, images)
        assert found["color-9"]["color"] == pytest.approx(hue_reading(scene.hue + 9), abs=0.25)
        assert found["lighting--9"]["lighting"] == pytest.approx(value_reading(scene.value - 9), abs=0.1)
        assert found["color-9"]["lighting"] == pytest.approx(planted(one)["lighting"], abs=0.05)
        assert found["color-9"]["person"] == pytest.approx(planted(one)["person"], abs=0.05)


def test_a_blur_takes_texture_and_objects_and_leaves_the_figure(images):
    for one in images.values():
        drawn = draw("background", "strong", image_id=one.image_id)
        found = predicted(one, {"blurred": drawn}, images)["blurred"]
        assert abs(found["background"]) < 0.05
        assert abs(found["object"]) < 0.15
        assert found["person"] == pytest.approx(planted(one)["person"])
        assert found["color"] == pytest.approx(planted(one)["color"], abs=0.35)


def test_a_blackout_takes_the_object_that_tells(images):
    for one in images.values():
        telling = next(each for each in one.objects if each.label == one.extra["telling_object"])
        other = next(each for each in one.objects if each is not telling)
        drawn = {
            name: Perturbation("object", object_ids=(each.id,), n_objects=len(one.objects))
            for name, each in (("telling", telling), ("other", other))
        }
        found = predicted(one, drawn, images)
        assert found["telling"]["object"] == 0
        assert found["other"]["object"] == pytest.approx(planted(one)["object"], abs=0.2)


def test_a_removed_person_says_nothing_and_a_swap_says_what_the_donor_says(images):
    one, other = list(images.values())[:2]
    drawn = {
        "removed": Perturbation("person-removed"),
        "swapped": Perturbation("background-swap", donor=other.image_id),
    }
    found = predicted(one, drawn, images)
    assert found["removed"]["person"] == 0
    assert found["removed"]["background"] == pytest.approx(planted(one)["background"], abs=0.01)
    assert found["swapped"] == pytest.approx(planted(other) | {"person": planted(one)["person"]}, abs=0.05)

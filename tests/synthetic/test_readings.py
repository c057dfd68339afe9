"""What a drawn picture shows is read from its pixels: right where it is there, nothing where it is not."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from truegap.perturbations import perturb
from truegap.synthetic import draw_scene, region_masks, render, strengths
from truegap.synthetic.readings import FULL, NAMES, hue_reading, readings, value_reading

SIGN = {"woman": -1, "man": 1}
INDEPENDENT = strengths({"presentation": 0.0})


def picture(scene) -> np.ndarray:
    return cv2.cvtColor(render(scene), cv2.COLOR_BGR2RGB)


@pytest.fixture(scope="module")
def seen():
    scenes = [draw_scene(21, index, INDEPENDENT) for index in range(24)]
    return [(scene, picture(scene)) for scene in scenes]


@pytest.mark.parametrize("name", NAMES)
def test_every_feature_is_read_from_pixels(seen, name):
    planted = "presentation" if name == "person" else name
    for scene, image in seen:
        assert readings(image, [name])[name] * SIGN[scene.typical[planted]] > 0.8


def test_a_reading_costs_only_what_is_asked_for(seen):
    _, image = seen[0]
    assert list(readings(image, ["color"])) == ["color"]
    assert list(readings(image)) == list(NAMES)


def test_another_size_is_scaled(seen):
    for scene, image in seen[:4]:
        larger = cv2.resize(image, (448, 448), interpolation=cv2.INTER_NEAREST)
        found = readings(larger)
        assert found["color"] * SIGN[scene.typical["color"]] > 0.8
        assert found["person"] * SIGN[scene.typical["presentation"]] > 0.8


def test_nothing_is_read_where_nothing_is():
    black = np.zeros((224, 224, 3), np.uint8)
    assert readings(black) == dict.fromkeys(NAMES, 0.0)


def test_the_person_is_read_from_the_figure_alone(seen):
    for scene, image in seen[:6]:
        without = image.copy()
        without[region_masks(scene)[0]] = 0
        found = readings(without)
        assert found["person"] == 0
        assert abs(found["background"]) > 0.8
        assert found["object"] == pytest.approx(readings(image)["object"], abs=0.05)


def test_a_blur_leaves_color_and_takes_texture_and_objects(seen):
    for scene, image in seen[:6]:
        mask = region_masks(scene)[0]
        blurred, _ = perturb(image, "background", "middle", image_id="a", person_mask=mask)
        found = readings(blurred)
        assert abs(found["background"]) < 0.2
        assert abs(found["object"]) < 0.2
        assert found["color"] * SIGN[scene.typical["color"]] > 0.5
        assert found["person"] == pytest.approx(readings(image)["person"], abs=0.002)


def test_hue_and_brightness_turn_smoothly():
    assert hue_reading(150) == value_reading(172) == -FULL
    assert hue_reading(126) == value_reading(148) == FULL
    assert hue_reading(138) == value_reading(160) == 0
    assert hue_reading(None) == value_reading(None) == 0

"""What the figure wears has a correlation of its own, which is full unless another is named."""

from __future__ import annotations

import numpy as np
import pytest

from truegap.errors import UserError
from truegap.synthetic import draw_scene, example, render, selection, strengths


def test_the_figure_wears_the_label_unless_told_otherwise():
    for index in range(40):
        scene = draw_scene(1, index, strengths(0.3))
        assert scene.typical["presentation"] == scene.gender
    assert "presentation" not in strengths(0.3)
    assert "presentation" not in strengths({"presentation": 1.0})


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_its_correlation_is_a_dial(rho):
    scenes = [draw_scene(2, index, strengths({"presentation": rho})) for index in range(3000)]
    own = np.mean([scene.typical["presentation"] == scene.gender for scene in scenes])
    assert own == pytest.approx((1 + rho) / 2, abs=0.04)


def test_only_the_garment_changes_with_it():
    alike, other = (
        next(
            scene
            for scene in (draw_scene(3, index, strengths({"presentation": 0.0})) for index in range(40))
            if (scene.typical["presentation"] == scene.gender) is wears_it
        )
        for wears_it in (True, False)
    )
    index = next(i for i in range(40) if draw_scene(3, i, strengths({"presentation": 0.0})) == other)
    plain = draw_scene(3, index, strengths(0.0))
    assert (plain.gender, plain.figure, plain.things) == (other.gender, other.figure, other.things)
    assert plain.pattern != other.pattern
    assert (render(plain) != render(other)).any()
    assert alike.pattern == draw_scene(3, 0, strengths(0.0), alike.gender).pattern


def test_the_row_says_what_was_planted():
    assert example(4, 0, strengths(0.0)).extra["planted_presentation"] == example(4, 0, strengths(0.0)).gender
    chosen = selection(4, rho={"presentation": 0.5})
    assert chosen.options["rho"]["presentation"] == 0.5


def test_a_wrong_strength_is_named():
    with pytest.raises(UserError, match="presentation is 2"):
        strengths({"presentation": 2})

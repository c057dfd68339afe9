from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from truegap.perturbations import Options, draw
from truegap.perturbations.keys import Key
from truegap.schema import Region

STRENGTHS = ("weak", "middle", "strong")


def _objects(n: int) -> list[Region]:
    return [Region(id=100 + i, label="cup", box=(0, 0, 1, 1)) for i in range(n)]


def _shifts(strength: str, n: int = 4000, **options) -> list[int]:
    drawn = [draw("color", strength, image_id=str(i), options=Options(**options)) for i in range(n)]
    return [each.shift for each in drawn]


@pytest.mark.parametrize(
    ("strength", "options", "allowed"),
    [
        ("weak", {}, range(11)),
        ("middle", {}, range(11, 21)),
        ("strong", {}, range(11, 31)),
        ("strong", {"strong_gap": 20}, range(21, 31)),
    ],
)
def test_shifts_are_uniform_over_the_allowed_integers(strength, options, allowed):
    both_signs = sorted({sign * size for size in allowed for sign in (-1, 1)})
    counts = Counter(_shifts(strength, **options))
    assert sorted(counts) == both_signs
    assert stats.chisquare([counts[shift] for shift in both_signs]).pvalue > 1e-4


def test_stronger_shift_keeps_the_direction():
    for i in range(300):
        weak, middle, strong = (draw("lighting", s, image_id=str(i)).shift for s in STRENGTHS)
        assert np.sign(middle) == np.sign(strong)
        assert weak * strong >= 0
        assert abs(strong) >= abs(middle) >= abs(weak)


def test_stronger_object_mask_extends_the_weaker():
    for count in ("unbiased", "ceil", "bernoulli"):
        for i in range(100):
            options = Options(count=count)
            weak, middle, strong = (
                draw("object", s, image_id=str(i), objects=_objects(7), options=options).object_ids for s in STRENGTHS
            )
            assert set(weak) <= set(middle) <= set(strong)


@pytest.mark.parametrize("n", [1, 4, 7, 30])
@pytest.mark.parametrize("count", ["unbiased", "bernoulli"])
def test_expected_share_of_objects_is_exact(n, count):
    # given many images with n objects; then the mean share is 20 %, within five standard errors
    images = 3000
    drawn = [
        draw("object", "middle", image_id=str(i), objects=_objects(n), options=Options(count=count))
        for i in range(images)
    ]
    shares = np.array([len(each.object_ids) / n for each in drawn])
    assert abs(shares.mean() - 0.2) <= 5 * max(shares.std(), 1e-9) / np.sqrt(images) + 1e-9
    if count == "unbiased":
        assert np.ptp(shares * n) <= 1 + 1e-9


def test_ceil_blacks_out_at_least_one():
    assert len(draw("object", "weak", objects=_objects(3), options=Options(count="ceil")).object_ids) == 1
    assert draw("object", "weak", objects=[], options=Options(count="ceil")).object_ids == ()


def test_every_object_is_equally_likely():
    counts = Counter(
        i for n in range(3000) for i in draw("object", "strong", image_id=str(n), objects=_objects(5)).object_ids
    )
    assert stats.chisquare(list(counts.values())).pvalue > 1e-4


def test_draw_depends_on_its_key_alone():
    # given the same key; then order of objects does not matter, and each part of the key does
    drawn = draw("object", "strong", benchmark="b", image_id="1", objects=_objects(20))
    again = draw("object", "strong", benchmark="b", image_id="1", objects=_objects(20)[::-1])
    assert drawn == again
    others = [{"benchmark": "c"}, {"image_id": "2"}, {"seed": 1}]
    base = {"benchmark": "b", "image_id": "1", "seed": 0}
    assert all(
        draw("object", "strong", objects=_objects(20), **base | o).object_ids != drawn.object_ids for o in others
    )


def test_draw_is_frozen_for_good():
    # a changed value here means that published benchmarks can no longer be redone
    assert Key("coco-gender", "139", "color", 0).uniform("shift") == pytest.approx(0.12438473856456, abs=1e-14)
    assert draw("color", "strong", benchmark="coco-gender", image_id="139").shift == -26
    assert draw("object", "strong", benchmark="coco-gender", image_id="139", objects=_objects(10)).object_ids == (
        107,
        100,
        103,
    )


def test_only_changed_options_are_recorded():
    assert draw("background", "weak").options == {}
    assert draw("background", "weak", options=Options(bleed="none")).options == {"bleed": "none"}
    assert Options.of({"bleed": "none"}) == replace(Options(), bleed="none")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("colour", "weak"), "unknown feature 'colour'.*color, lighting, object, background"),
        (("color", "extreme"), "unknown strength 'extreme'.*weak, middle, strong"),
    ],
)
def test_unknown_names_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        draw(*arguments)


def test_unknown_options_are_refused():
    with pytest.raises(ValueError, match=r"count='half'.*'unbiased', 'ceil', 'bernoulli'"):
        Options(count="half")
    with pytest.raises(ValueError, match="unknown options"):
        Options.of({"shapes": "box"})


def test_repeated_object_ids_are_refused():
    with pytest.raises(ValueError, match="image '7': object ids are not unique"):
        draw("object", "weak", image_id="7", objects=_objects(1) * 2)

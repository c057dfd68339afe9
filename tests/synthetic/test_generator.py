"""The generator plants what it says: labels, correlations, pixels, masks."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageFilter

from truegap.errors import UserError
from truegap.regions import masks
from truegap.schema import Feature
from truegap.synthetic import draw_scene, drawing, example, region_masks, selection, strengths
from truegap.synthetic.scene import NEUTRAL, TELLING
from truegap.synthetic.textures import TILTS, ZOOMS, background_tile, garment_tile

MANY = 3000
SIGMAS = 4.5


def pixels(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def digest(numbers) -> str:
    found = hashlib.sha256()
    for number in sorted(numbers):
        found.update(example(7, number, strengths(0.5)).image.read())
    return found.hexdigest()


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_another_process_renders_the_same_bytes(hash_seed):
    code = (
        "import hashlib; from truegap.synthetic import example, strengths\n"
        "found = {i: example(7, i, strengths(0.5)).image.read() for i in (9, 3, 0)}\n"
        "print(hashlib.sha256(b''.join(found[i] for i in sorted(found))).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert printed.stdout.strip() == digest([0, 3, 9])


def test_a_longer_benchmark_begins_with_the_shorter_one():
    short, long = selection(6, seed=3, rho=0.5), selection(12, seed=3, rho=0.5)
    assert list(short.examples) == list(long.examples)[:6]
    assert selection(6, seed=4, rho=0.5).examples[0].image.read() != short.examples[0].image.read()


def test_examples_are_made_when_they_are_asked_for(monkeypatch):
    made = []
    module = sys.modules["truegap.synthetic.selection"]
    monkeypatch.setattr(module, "example", lambda *of: made.append(of[1]) or example(*of))
    examples = selection(8, seed=3).examples
    assert len(examples) == 8
    assert not made
    assert examples[-1] == example(3, 7, strengths(0.0))
    assert made == [7]
    some = pickle.loads(pickle.dumps(examples[2:6:3]))  # noqa: S301  # its own bytes
    assert made == [7]
    assert list(some) == [example(3, 2, strengths(0.0)), example(3, 5, strengths(0.0))]
    assert [one.image_id for one in examples] == [f"synthetic-{index:08d}" for index in range(8)]
    assert len({examples.made_from, some.made_from, examples[:2].made_from}) == 3
    with pytest.raises(IndexError):
        examples[8]


def test_what_examples_are_made_from_tells_them_apart():
    of = {"n": 4, "seed": 1, "rho": 0.5, "size": 64}
    others = [{"n": 5}, {"seed": 2}, {"rho": 0.6}, {"rho": {"color": 0.5}}, {"size": 65}]
    told = [selection(**{**of, **other}).examples.made_from for other in ({}, *others)]
    assert len(set(told)) == 6
    assert selection(**of).examples.made_from == told[0]


@pytest.mark.parametrize("n", [2, 7, 40])
def test_labels_are_balanced_and_counted(n):
    chosen = selection(n)
    women = sum(one.gender == "woman" for one in chosen.examples)
    assert women in {n // 2, n - n // 2}
    (step,) = chosen.steps
    assert (step.woman, step.man, step.other) == (women, n - women, 0)
    assert [one.image_id for one in chosen.examples] == sorted({one.image_id for one in chosen.examples})
    assert chosen.options["rho"] == {"color": 0.0, "lighting": 0.0, "object": 0.0, "background": 0.0}


def test_labels_are_in_random_order():
    firsts = Counter(draw_scene(0, 2 * pair, strengths(0)).gender for pair in range(400))
    assert abs(firsts["woman"] - 200) < SIGMAS * 10


@pytest.mark.parametrize("rho", [0.0, 0.5, 1.0])
def test_each_feature_is_typical_as_often_as_planted(rho):
    scenes = [draw_scene(1, index, strengths(rho)) for index in range(MANY)]
    wanted = (1 + rho) / 2
    for feature in Feature:
        for gender in ("woman", "man"):
            own = [scene.typical[feature] == gender for scene in scenes if scene.gender == gender]
            spread = (wanted * (1 - wanted) / len(own)) ** 0.5
            assert abs(np.mean(own) - wanted) <= SIGMAS * spread


def test_the_planted_value_is_the_one_that_is_shown():
    for index in range(300):
        scene = draw_scene(2, index, strengths(0.5))
        assert scene.background == {"woman": "masonry", "man": "foliage"}[scene.typical["background"]]
        assert (scene.hue > 138) == (scene.typical["color"] == "woman")
        assert (scene.value > 160) == (scene.typical["lighting"] == "woman")
        telling = [thing.label for thing in scene.things if thing.label not in NEUTRAL]
        assert len(telling) == 1
        assert telling[0] in TELLING[scene.typical["object"]]
        assert 3 <= len(scene.things) <= 6


def test_only_the_named_features_depend_on_the_label():
    scenes = [draw_scene(3, index, strengths({"background": 1.0, "color": 0.5})) for index in range(MANY)]
    man = np.array([scene.gender == "man" for scene in scenes], float)
    free = {
        "object": [scene.typical["object"] == "man" for scene in scenes],
        "lighting": [scene.value for scene in scenes],
        "x": [scene.figure.x for scene in scenes],
        "height": [scene.figure.height for scene in scenes],
        "body": [scene.figure.body for scene in scenes],
        "hair": [scene.figure.hair for scene in scenes],
        "skin": [scene.figure.skin_value for scene in scenes],
        "garment": [scene.figure.garment_hue for scene in scenes],
        "objects": [len(scene.things) for scene in scenes],
        "zoom": [scene.zoom for scene in scenes],
        "contrast": [scene.contrast for scene in scenes],
    }
    for name, values in free.items():
        assert abs(np.corrcoef(man, np.array(values, float))[0, 1]) < SIGMAS / MANY**0.5, name
    assert np.corrcoef(man, [scene.hue for scene in scenes])[0, 1] < -0.4


def test_draws_are_independent_of_each_other_given_the_label():
    scenes = [draw_scene(4, index, strengths(0.5)) for index in range(MANY)]
    columns = [[scene.typical[feature] == scene.gender for scene in scenes] for feature in Feature]
    columns += [
        [scene.figure.x for scene in scenes],
        [scene.figure.height for scene in scenes],
        [scene.figure.skin_value for scene in scenes],
        [len(scene.things) for scene in scenes],
        [scene.contrast for scene in scenes],
        [scene.fade for scene in scenes],
        [scene.offset[0] for scene in scenes],
    ]
    apart = np.corrcoef(np.array(columns, float))[np.triu_indices(len(columns), k=1)]
    assert np.abs(apart).max() < SIGMAS / MANY**0.5


def test_the_silhouette_says_nothing_of_the_label():
    for index in range(20):
        as_woman, as_man = (draw_scene(5, index, strengths(0.5), gender) for gender in ("woman", "man"))
        assert np.array_equal(region_masks(as_woman)[0], region_masks(as_man)[0])
        assert not np.array_equal(drawing.render(as_woman), drawing.render(as_man))


@pytest.mark.parametrize("size", [64, 224, 300])
def test_masks_are_the_pixels_that_a_region_changes(monkeypatch, size):
    """Paint one region white and render again: all of its mask has changed, and nothing that nobody stands before."""
    layers = drawing._layers
    for index in range(6):
        scene = draw_scene(6, index, strengths(0.5))
        found = region_masks(scene, size)
        before = drawing.render(scene, size)
        for region, mask in enumerate(found):

            def painted(scene, size, region=region):
                for layer in layers(scene, size):
                    yield replace(layer, value=2000.0) if layer.region == region else layer

            monkeypatch.setattr(drawing, "_layers", painted)
            changed = (drawing.render(scene, size) != before).any(axis=2)
            monkeypatch.setattr(drawing, "_layers", layers)
            assert changed[mask].all()
            if region == drawing.PERSON:
                assert np.array_equal(changed, mask)
            else:
                assert not (changed & ~mask & ~np.any([found[0], *found[region + 1 :]], axis=0)).any()


def test_without_the_figure_everything_outside_its_mask_is_the_same(monkeypatch):
    scene = draw_scene(8, 1, strengths(0.5))
    before, mask = drawing.render(scene), region_masks(scene)[0]
    layers = drawing._layers
    monkeypatch.setattr(drawing, "_layers", lambda *a: (one for one in layers(*a) if one.region != drawing.PERSON))
    after = drawing.render(scene)
    assert np.array_equal(before[~mask], after[~mask])
    assert not np.array_equal(before[mask], after[mask])


def test_regions_of_an_example_are_exact_and_visible():
    for index in range(60):
        one = example(9, index, strengths(0.5))
        scene = one.image.scene
        shown = [masks.decode(region.mask, one.size) for region in (*one.persons, *one.objects)]
        assert all(np.array_equal(a, b) for a, b in zip(shown, region_masks(scene), strict=True))
        assert np.sum(shown, axis=0).max() == 1
        assert [region.label for region in one.objects] == [thing.label for thing in scene.things]
        assert [region.id for region in (*one.persons, *one.objects)] == list(range(1, len(shown) + 1))
        for region, mask in zip((*one.persons, *one.objects), shown, strict=True):
            y, x = np.nonzero(mask)
            assert region.box == (x.min(), y.min(), np.ptp(x) + 1, np.ptp(y) + 1)
            assert mask.sum() > 300
        assert pixels(one.image.read()).shape == (224, 224, 3)


def test_the_truth_stands_beside_the_image():
    one = example(0, 5, strengths(1.0))
    own = one.gender
    assert {one.extra[f"planted_{feature}"] for feature in Feature} == {own}
    assert one.extra["background"] == {"woman": "masonry", "man": "foliage"}[own]
    assert one.extra["telling_object"] in TELLING[own]
    assert one.extra["telling_object"] in {region.label for region in one.objects}
    assert one.license == "CC0 1.0"


def test_references_are_small_and_picklable():
    one = example(1, 123_456, strengths(0.5))
    packed = pickle.dumps(one.image)
    assert len(packed) < 400
    assert pickle.loads(packed).read() == one.image.read()  # noqa: S301 (our own bytes)
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301 (our own bytes)


def test_backgrounds_differ_in_fine_texture_only():
    """Same mean, same spread; and a blur of radius 10 leaves next to nothing of either."""
    for family in ("masonry", "foliage"):
        for zoom in ZOOMS:
            for tilt in TILTS:
                tile = background_tile(family, zoom, tilt, 224)
                assert abs(tile.mean()) < 1e-3
                assert abs(tile.std() - 1) < 1e-3
                crop = tile[40:264, 60:284]
                assert abs(crop.mean()) < 0.1
                picture = Image.fromarray(np.clip(crop * 20 + 160, 0, 255).astype(np.uint8))
                left = np.asarray(picture.filter(ImageFilter.GaussianBlur(10)), float)[20:-20, 20:-20]
                assert left.std() < 0.05 * 20


def test_garments_differ_in_pattern_only():
    zigzag, dots = garment_tile("zigzag", 224), garment_tile("dots", 224)
    assert abs(zigzag.mean()) < 1e-4
    assert abs(dots.mean()) < 1e-4
    assert abs(zigzag.std() - dots.std()) < 0.05
    assert abs(np.corrcoef(zigzag.ravel(), dots.ravel())[0, 1]) < 0.1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n": 0}, "at least 1"),
        ({"n": 2, "rho": 1.5}, "from 0"),
        ({"n": 2, "rho": {"background": -0.1}}, "background is -0.1"),
        ({"n": 2, "rho": float("nan")}, "nan"),
        ({"n": 2, "rho": {"colour": 0.5}}, "'colour'"),
        ({"n": 2, "size": 20}, "smallest"),
    ],
)
def test_what_is_out_of_range_is_said(options, words):
    with pytest.raises(UserError, match=words):
        selection(**options)

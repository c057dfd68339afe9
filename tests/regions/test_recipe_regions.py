"""A recipe brings back regions that were detected, and tells no box that the source annotates."""

from __future__ import annotations

import json
import shutil
import warnings

import numpy as np
import pyarrow.parquet as pq
import pytest

import truegap
from examples import SIZE, encoded, person_mask
from recipe_factory import BOX, archive, build, change_rows, change_terms, coco, recipe_of
from truegap.build import read_manifest
from truegap.build.recipe import REGIONS, read_recipe
from truegap.errors import UserError
from truegap.regions import finders as finders_module
from truegap.regions import masks
from truegap.regions.finders import choose

CONFIGS = ("original", "object-strong", "background-strong", "person-removed")
COUNTS = masks.encode(person_mask())


def detections(folder, *, segmentation=True):
    """Somebody in every picture, and a thing."""
    rows = []
    for number in range(6):
        person = {"image_id": str(number), "label": "person", "bbox": BOX, "score": 0.9}
        if segmentation:
            person["segmentation"] = {"size": list(SIZE), "counts": COUNTS}
        rows += [person, {"image_id": str(number), "label": "dog", "bbox": [46.5, 2, 8, 7], "score": 0.7}]
    path = folder / "found.json"
    path.write_text(json.dumps(rows))
    return path


def regions_of(recipe):
    path = recipe / REGIONS
    return pq.read_table(path).to_pylist() if path.exists() else []


def masks_of(built):
    from datasets import load_dataset

    return [mask for row in load_dataset(str(built), "original", split="test")["person_masks"] for mask in row]


def assert_identical(recipe, built, source, configs=CONFIGS):
    """Then every row is that of the published build, regions and where they come from included."""
    from datasets import load_dataset

    for config in configs:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            loaded = truegap.load(str(recipe), config, source=source, workers=1)
        for mine, theirs in zip(loaded, load_dataset(str(built), config, split="test"), strict=True):
            np.testing.assert_array_equal(np.asarray(mine.pop("image")), np.asarray(theirs.pop("image")))
            assert mine == theirs


def test_what_a_file_detected_comes_back_without_the_file(tmp_path):
    # Given photographs without a box, and a file of detections
    source = archive(tmp_path / "mine", boxes=())
    path = detections(tmp_path)
    built = build(source, tmp_path / "built", CONFIGS, choose(detections=path))
    # When the recipe is made and the file is gone
    recipe_of(built, tmp_path / "recipe")
    path.unlink()
    # Then persons and things are in the recipe, those that the source annotates are not
    regions = regions_of(tmp_path / "recipe")
    assert [(each["kind"], each["label"]) for each in regions[:2]] == [("person", "person"), ("object", "dog")]
    assert {each["mask"] for each in regions if each["kind"] == "person"} == {COUNTS}
    assert all(each["origin"].startswith("found.json@") for each in regions)
    assert len(regions) == 12
    assert_identical(tmp_path / "recipe", built, source)


def test_annotated_things_beside_detected_ones_come_from_the_source(tmp_path):
    source = archive(tmp_path / "mine", boxes=())
    path = detections(tmp_path)
    built = build(source, tmp_path / "built", CONFIGS, choose("annotations", detections=path))
    recipe_of(built, tmp_path / "recipe")
    # The table's cup and bag come first, the dog behind them
    things = [(each["label"], each["place"]) for each in regions_of(tmp_path / "recipe") if each["kind"] == "object"]
    assert things == [("dog", 2)] * 6
    assert_identical(tmp_path / "recipe", built, source)


def test_masks_drawn_in_annotated_boxes_are_drawn_again(tmp_path):
    source = archive(tmp_path / "mine")
    (source / "5.jpg").write_bytes(encoded(5))  # GrabCut finds nobody in it
    built = build(source, tmp_path / "built", CONFIGS, choose("grabcut"))
    made = recipe_of(built, tmp_path / "recipe")
    # Then nothing in the recipe tells a box: no mask, no region
    assert [bool(each) for each in masks_of(built)] == [True] * 5 + [False]
    assert made.terms.masks_to_draw == 6
    assert regions_of(tmp_path / "recipe") == []
    text = "".join(file.read_text(errors="replace") for file in (tmp_path / "recipe").glob("*.*"))
    assert "6 are drawn again from the copy" in text
    assert "grabcut (side 256" in text
    assert_identical(tmp_path / "recipe", built, source)


def test_masks_drawn_in_annotated_boxes_are_published_where_that_is_asked_for(tmp_path, monkeypatch):
    source = archive(tmp_path / "mine")
    (source / "5.jpg").write_bytes(encoded(5))
    built = build(source, tmp_path / "built", CONFIGS, choose("grabcut"))
    made = recipe_of(built, tmp_path / "recipe", masks="all")
    regions = regions_of(tmp_path / "recipe")
    assert made.terms.masks_to_draw == 0
    assert len(regions) == 6
    assert [bool(each["mask"]) for each in regions] == [True] * 5 + [False]
    assert all(each["box"] is None and each["id"] is None for each in regions)
    assert (
        "whoever made this recipe holds that the source's terms allow it" in (tmp_path / "recipe/README.md").read_text()
    )
    # And nobody draws them again
    monkeypatch.setattr("truegap.regions.grabcut.cut", None)
    assert_identical(tmp_path / "recipe", built, source)


def test_a_mask_that_was_found_and_given_to_an_annotated_person_is_published_without_the_box(tmp_path):
    source = archive(tmp_path / "mine")
    built = build(source, tmp_path / "built", CONFIGS, choose("annotations", detections=detections(tmp_path)))
    made = recipe_of(built, tmp_path / "recipe")
    persons = [each for each in regions_of(tmp_path / "recipe") if each["kind"] == "person"]
    assert made.terms.masks_to_draw == 0
    assert [(each["place"], each["box"], each["mask"]) for each in persons] == [(0, None, COUNTS)] * 6
    assert persons[0]["origin"].startswith("annotation; mask: found.json@")
    assert_identical(tmp_path / "recipe", built, source)


def test_masks_cut_from_detected_boxes_are_published(tmp_path):
    source = archive(tmp_path / "mine", boxes=())
    path = detections(tmp_path, segmentation=False)
    built = build(source, tmp_path / "built", CONFIGS, choose("grabcut", detections=path))
    made = recipe_of(built, tmp_path / "recipe")
    persons = [each for each in regions_of(tmp_path / "recipe") if each["kind"] == "person"]
    assert made.terms.masks_to_draw == 0
    assert all(each["mask"] and each["box"] == BOX and "; mask: grabcut" in each["origin"] for each in persons)
    assert_identical(tmp_path / "recipe", built, source)


@pytest.mark.parametrize("regions", ["box", "grabcut"])
def test_detected_things_beside_masks_that_are_drawn_again(tmp_path, regions):
    source = archive(tmp_path / "mine")
    path = detections(tmp_path, segmentation=False)
    built = build(source, tmp_path / "built", CONFIGS, choose(regions, detections=path))
    made = recipe_of(built, tmp_path / "recipe")
    path.unlink()
    assert made.terms.masks_to_draw == 6
    assert {each["kind"] for each in regions_of(tmp_path / "recipe")} == {"object"}
    assert_identical(tmp_path / "recipe", built, source)


def test_detected_persons_beside_annotated_ones_whose_masks_are_drawn_again(tmp_path):
    # Given boxes in three pictures, somebody detected in the others, and GrabCut finding nobody in two
    source = archive(tmp_path / "mine", boxes=(0, 1, 2))
    for number in (2, 5):
        (source / f"{number}.jpg").write_bytes(encoded(number))
    path = detections(tmp_path, segmentation=False)
    built = build(source, tmp_path / "built", CONFIGS, choose("grabcut", detections=path))
    made = recipe_of(built, tmp_path / "recipe")
    persons = [each for each in regions_of(tmp_path / "recipe") if each["kind"] == "person"]
    assert made.terms.masks_to_draw == 3
    assert [(each["image_id"], bool(each["mask"])) for each in persons] == [("3", True), ("4", True), ("5", False)]
    assert_identical(tmp_path / "recipe", built, source)


@pytest.mark.slow
def test_detectors_are_not_needed_again_and_segmenters_are_known_by_their_content(saved, tmp_path, monkeypatch):
    # Given things from a detector, and masks that a segmenter drew in annotated boxes
    source = archive(tmp_path / "mine")
    places = [shutil.copytree(saved(family), tmp_path / f"my-{family}") for family in ("detr", "sam")]
    used = choose(",".join(map(str, places)), threshold=0.05)
    built = build(source, tmp_path / "built", ("original", "background-strong"), used)
    made = recipe_of(built, tmp_path / "recipe")
    left = made.terms.masks_to_draw
    assert left == 6
    assert all(each["kind"] == "object" for each in regions_of(tmp_path / "recipe"))
    # When the detector is gone and the segmenter is not here, then its name is said
    shutil.rmtree(places[0])
    monkeypatch.chdir(tmp_path / "mine")
    with pytest.raises(
        UserError, match=r"masks were drawn by my-sam inside of annotated boxes, .* no such folder"
    ) as no:
        truegap.load(str(tmp_path / "recipe"), "background-strong", source=source, workers=1)
    assert "\n" not in str(no.value)
    # And where it is, everything comes back
    monkeypatch.chdir(tmp_path)
    assert_identical(tmp_path / "recipe", built, source, ("background-strong",))
    # But not where another model has its name
    (tmp_path / "my-sam/config.json").write_text(json.dumps({"model_type": "sam", "changed": True}))
    with pytest.raises(UserError, match="the model of this name here has content"):
        truegap.load(str(tmp_path / "recipe"), "background-strong", source=source, workers=1)


def test_masks_of_another_grabcut_are_refused(tmp_path):
    source = archive(tmp_path / "mine")
    recipe_of(build(source, tmp_path / "built", CONFIGS, choose("grabcut")), tmp_path / "recipe")
    selection = read_recipe(tmp_path / "recipe").terms.selection
    change_terms(
        tmp_path / "recipe", selection={**selection, "regions": {**selection["regions"], "masks": "grabcut (side 9)"}}
    )
    with pytest.raises(UserError, match=r"masks were drawn by grabcut \(side 9\), and this truegap draws with grabcut"):
        truegap.load(str(tmp_path / "recipe"), "original", source=source)


@pytest.mark.parametrize(
    "model",
    [
        {"model": "../../etc", "revision": None, "content": "x"},
        {"model": "/etc", "revision": None, "content": "x"},
        {"model": "a/b/c", "revision": None, "content": "x"},
        {"model": "org/name", "revision": "../main", "content": "x"},
        {"model": 3, "revision": None, "content": "x"},
        {},
    ],
)
def test_a_model_in_a_recipe_is_a_name_and_no_path(tmp_path, model, monkeypatch):
    monkeypatch.setattr(finders_module, "resolve", None)
    with pytest.raises(UserError, match="which is no name of a model") as refused:
        finders_module.redrawing(model, object_masks=False)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"mask": "not run lengths"}, "counts"),
        ({"mask": masks.encode(np.ones((3, 3), bool))}, "run lengths do not add up"),
        ({"kind": "soul"}, "neither of a person nor of an object"),
        ({"place": 7}, "the source annotates another number of persons"),
        ({"place": -1}, "the source annotates another number of persons"),
        ({"box": None}, "the source annotates another number of persons"),
        ({"box": [float("nan"), 0, 1, 1]}, "box is not four finite numbers"),
        ({"box": [1e6, 0, 5, 5]}, "box is outside of the image"),
        ({"box": [-30, 0, 500, 5]}, "box is outside of the image"),
    ],
)
def test_a_region_that_does_not_fit_leaves_its_image_out(tmp_path, changes, reason):
    source = archive(tmp_path / "mine", boxes=())
    recipe_of(build(source, tmp_path / "built", CONFIGS, choose(detections=detections(tmp_path))), tmp_path / "recipe")
    change_rows(
        tmp_path / "recipe" / REGIONS,
        lambda row: row | changes if (row["image_id"], row["kind"]) == ("2", "person") else row,
    )
    with pytest.warns(
        UserWarning, match=f"1 images of the recipe are missing: 2 .the recipe's regions do not fit: .*{reason}"
    ):
        loaded = truegap.load(str(tmp_path / "recipe"), "background-strong", source=source)
    assert loaded["image_id"] == ["0", "1", "3", "4", "5"]


def test_a_table_of_regions_that_lacks_images_is_said(tmp_path):
    source = archive(tmp_path / "mine", boxes=())
    recipe_of(build(source, tmp_path / "built", CONFIGS, choose(detections=detections(tmp_path))), tmp_path / "recipe")
    change_rows(tmp_path / "recipe" / REGIONS, lambda row: None if row["image_id"] == "2" else row)
    with pytest.warns(UserWarning, match="missing: 2 .the recipe's regions do not fit: nobody is marked"):
        truegap.load(str(tmp_path / "recipe"), "background-strong", source=source)
    (tmp_path / "recipe" / REGIONS).unlink()
    with pytest.raises(UserError, match="the recipe's regions fit none of 6 images"):
        truegap.load(str(tmp_path / "recipe"), "background-strong", source=source)


def test_two_objects_of_one_id_leave_their_image_out(tmp_path):
    source = archive(tmp_path / "mine", boxes=())
    finders = choose("annotations", detections=detections(tmp_path))
    recipe_of(build(source, tmp_path / "built", CONFIGS, finders), tmp_path / "recipe")
    change_rows(tmp_path / "recipe" / REGIONS, lambda row: row | {"id": 1} if row["image_id"] == "2" else row)
    with pytest.warns(UserWarning, match="missing: 2 .the recipe's regions do not fit: two objects have one id"):
        truegap.load(str(tmp_path / "recipe"), "object-strong", source=source)


def test_a_region_that_somebody_changed_is_noticed(tmp_path):
    source = archive(tmp_path / "mine", boxes=())
    finders = choose(detections=detections(tmp_path))
    recipe_of(build(source, tmp_path / "built", CONFIGS, finders), tmp_path / "recipe")
    change_rows(tmp_path / "recipe" / REGIONS, lambda row: row | {"label": "cat"} if row["label"] == "dog" else row)
    with pytest.warns(UserWarning, match="regions are not those of the recipe"):
        truegap.load(str(tmp_path / "recipe"), "original", source=source)


def test_masks_that_were_left_aside_for_boxes_are_left_aside_again(tmp_path):
    source = coco(tmp_path / "coco")
    built = build(source, tmp_path / "built", CONFIGS, choose("box"))
    made = recipe_of(built, tmp_path / "recipe")
    assert masks_of(built) == [None] * 6
    assert made.terms.masks_to_draw == 6
    assert_identical(tmp_path / "recipe", built, source)


def test_the_command_says_how_many_masks_are_left_out(tmp_path, capsys):
    from truegap.cli.recipe import recipe

    source = archive(tmp_path / "mine")
    built = build(source, tmp_path / "built", CONFIGS, choose("grabcut"))
    recipe(built, tmp_path / "recipe", workers=1)
    assert "6 masks were drawn inside of annotated boxes, which they tell" in capsys.readouterr().out
    assert read_manifest(built).selection["regions"]["masks"].startswith("grabcut")
    with pytest.raises(UserError, match="--masks some: use one of found, all"):
        recipe(built, tmp_path / "other", masks="some")

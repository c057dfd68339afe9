"""A recipe holds no image and no label, and gives the same benchmark from a copy of the source."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import truegap
from examples import SIZE, encoded
from truegap.build import Plan, Workspace, build_shard, choose_configs, read_manifest
from truegap.build.recipe import read_recipe, write_recipe
from truegap.errors import UserError
from truegap.sources import read


@pytest.fixture
def archive(tmp_path):
    """COCO as it unpacks: six photographs of one person each."""
    folder = tmp_path / "coco"
    (folder / "val2017").mkdir(parents=True)
    (folder / "annotations").mkdir()
    height, width = SIZE
    images, annotations, captions = [], [], []
    for number in range(1, 7):
        name = f"{number:012}.jpg"
        (folder / "val2017" / name).write_bytes(encoded(number))
        images.append({"id": number, "file_name": name, "height": height, "width": width, "license": 4})
        for place, (category, x, y, w, h) in enumerate([(1, 20, 5, 20, 25), (47, 3, 32, 8, 6), (47, 45, 32, 8, 6)]):
            polygon = [x, y, x + w, y, x + w, y + h, x, y + h]
            box = {"bbox": [x, y, w, h], "area": w * h, "iscrowd": 0, "segmentation": [polygon]}
            annotations.append({"id": 10 * number + place, "image_id": number, "category_id": category, **box})
        captions.append({"id": number, "image_id": number, "caption": "a woman" if number % 2 else "a man"})
    shared = {
        "licenses": [{"id": 4, "name": "x", "url": "http://creativecommons.org/licenses/by/2.0/"}],
        "images": images,
    }
    categories = [{"id": 1, "name": "person"}, {"id": 47, "name": "cup"}]
    instances = {**shared, "annotations": annotations, "categories": categories}
    (folder / "annotations/instances_val2017.json").write_text(json.dumps(instances))
    (folder / "annotations/captions_val2017.json").write_text(json.dumps({**shared, "annotations": captions}))
    return folder


@pytest.fixture
def built(archive, tmp_path):
    configs = choose_configs(["original", "color-strong", "background-strong", "extra"])
    workspace = Workspace(
        Plan("coco-gender", "1.0.0", read("coco-gender", archive), configs, seed=3), tmp_path / "built"
    )
    with workspace.opened():
        for task in workspace.tasks():
            build_shard(task)
        workspace.finish()
    return tmp_path / "built"


@pytest.fixture
def recipe(built, tmp_path):
    write_recipe(built, tmp_path / "recipe")
    return tmp_path / "recipe"


def test_no_image_and_no_label_is_in_it(recipe, built):
    from datasets import load_dataset

    table = load_dataset(str(recipe), "background-strong", split="test")
    assert sorted(table.column_names) == ["image_id", "image_sha256", "perturbation"]
    text = (recipe / "recipe.json").read_text()
    manifest = read_manifest(built)
    assert not any(digest in text for digests in manifest.rows.sha256.values() for digest in digests)
    assert '"gender"' not in text
    assert b"\xff\xd8\xff" not in b"".join(file.read_bytes() for file in recipe.rglob("*.parquet"))


def test_the_same_copy_gives_the_same_rows(recipe, built, archive):
    from datasets import load_dataset

    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for config in ("background-strong", "background-swap-cross", "color-strong"):
            loaded = truegap.load(str(recipe), config, source=archive)
            published = load_dataset(str(built), config, split="test")
            assert loaded["image_id"] == published["image_id"]
            assert loaded["perturbation"] == published["perturbation"]
            for mine, theirs in zip(loaded, published, strict=True):
                np.testing.assert_array_equal(np.asarray(mine["image"]), np.asarray(theirs["image"]))


def test_missing_and_different_images_are_named(recipe, archive):
    (archive / "val2017/000000000002.jpg").unlink()
    (archive / "val2017/000000000003.jpg").write_bytes(encoded(99))
    with pytest.warns(UserWarning, match=r"1 images of the recipe are missing: 2 \(") as said:
        loaded = truegap.load(str(recipe), "color-strong", source=archive)
    assert any("color-strong: 1 images differ from the recipe: 3" in str(each.message) for each in said)
    assert loaded["image_id"] == ["1", "3", "4", "5", "6"]


def test_images_that_the_recipe_does_not_name_stay_out(recipe, archive):
    text = json.loads((recipe / "recipe.json").read_text())
    text["image_id"] = text["image_id"][:4]
    text["image_sha256"] = {config: digests[:4] for config, digests in text["image_sha256"].items()}
    (recipe / "recipe.json").write_text(json.dumps(text))
    assert truegap.load(str(recipe), "color-strong", source=archive)["image_id"] == ["1", "2", "3", "4"]


def test_what_cannot_be_used_is_one_line(recipe, archive, tmp_path):
    with pytest.raises(UserError, match="the recipe has no config color-weak: it has original"):
        truegap.load(str(recipe), "color-weak", source=archive)
    with pytest.raises(UserError, match="is not a folder"):
        truegap.load(str(recipe), "original", source=tmp_path / "nowhere")
    with pytest.raises(UserError, match="exists: choose another --out"):
        write_recipe(tmp_path / "built", recipe)
    with pytest.raises(UserError, match=r"is not a recipe: recipe\.json is missing"):
        read_recipe(tmp_path)
    (recipe / "recipe.json").write_text("{}")
    with pytest.raises(UserError, match=r"recipe\.json: benchmark"):
        read_recipe(recipe)


def test_command_line(recipe, archive, built, tmp_path, capsys):
    from truegap.cli.build import build

    build("coco-gender", tmp_path / "again", archive, recipe=str(recipe), workers=1)
    assert "images are those of the recipe, to the byte" in capsys.readouterr().out
    assert read_manifest(tmp_path / "again").rows == read_manifest(built).rows
    with pytest.raises(UserError, match="is a recipe of coco-gender, not of facet"):
        build("facet", tmp_path / "other", archive, recipe=str(recipe))

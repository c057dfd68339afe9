"""A recipe holds no image and no label, and gives the same benchmark from a copy of the source."""

from __future__ import annotations

import hashlib
import json
import warnings

import numpy as np
import pytest

import truegap
from examples import encoded
from recipe_factory import archive as own_folder
from recipe_factory import build as build_folder
from recipe_factory import change_rows, change_terms, coco, recipe_of
from truegap.build import Plan, Workspace, build_shard, choose_configs, read_manifest
from truegap.build.recipe import read_recipe
from truegap.build.recipe_write import write_recipe
from truegap.errors import UserError
from truegap.sources import read


@pytest.fixture
def archive(tmp_path):
    return coco(tmp_path / "coco")


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


@pytest.fixture
def strict():
    """Given that everything is identical, nothing is warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


def said_of(recipe, config, source, **options):
    """What a load warns of, as one text, and the dataset."""
    with pytest.warns(UserWarning, match=".") as said:
        loaded = truegap.load(str(recipe), config, source=source, **options)
    return "\n".join(str(each.message) for each in said if each.category is UserWarning), loaded


def test_no_image_no_label_and_no_annotation_is_in_it(recipe, built):
    from datasets import load_dataset

    table = load_dataset(str(recipe), "background-strong", split="test")
    assert set(table.column_names) == {
        *("image_id", "source", "license", "attribution"),
        *("perturbation", "image_sha256", "averages"),
    }
    text = (recipe / "recipe.json").read_text()
    manifest = read_manifest(built)
    assert not any(digest in text for digests in manifest.rows.sha256.values() for digest in digests)
    assert '"gender"' not in text
    assert not (recipe / "regions").exists()
    assert b"\xff\xd8\xff" not in b"".join(file.read_bytes() for file in recipe.rglob("*.parquet"))
    placebos = load_dataset(str(recipe), "object-placebo-strong", split="test")
    # The rectangles have the sizes of annotated objects
    assert all(each["boxes"] is None for each in placebos["perturbation"])


@pytest.mark.usefixtures("strict")
def test_of_a_recipe_on_the_hub_only_what_is_asked_for_comes(recipe, archive, loopback_hub):
    files = {each.relative_to(recipe).as_posix(): each.read_bytes() for each in recipe.rglob("*") if each.is_file()}
    commit = loopback_hub.commit("dataset", "org/recipe", files, "v1.0.0")
    loaded = truegap.load("org/recipe@v1.0.0", "color-strong", source=archive, workers=1)
    assert loaded["image_id"] == [str(number) for number in range(1, 7)]
    asked = {path.split(f"{commit}/")[-1] for path in loopback_hub.asked if path.startswith("GET /datasets/")}
    assert asked == {
        "recipe.json",
        *(f"data/{each}/test-00000-of-00001.parquet" for each in ("original", "color-strong")),
    }


def test_licence_and_attribution_travel_with_every_row(tmp_path):
    source = own_folder(tmp_path / "mine")
    built = build_folder(source, tmp_path / "built", ("original", "color-weak"))
    recipe_of(built, tmp_path / "recipe")
    from datasets import load_dataset

    for rows in (
        load_dataset(str(built), "color-weak", split="test"),
        load_dataset(str(tmp_path / "recipe"), "color-weak", split="test"),
        truegap.load(str(tmp_path / "recipe"), "color-weak", source=source),
    ):
        assert rows["license"] == ["CC BY-NC 4.0", *["CC BY 4.0"] * 5]
        assert rows["attribution"] == [f"https://example.org/{number}" for number in range(6)]
        assert rows["source"] == [f"{number}.jpg" for number in range(6)]


def test_the_card_says_what_is_published_and_is_valid_for_the_hub(recipe):
    from huggingface_hub import DatasetCard

    card = DatasetCard.load(recipe / "README.md")
    assert card.data.license == "apache-2.0"
    assert [each["config_name"] for each in card.data.configs] == read_recipe(recipe).terms.configs
    table = [line for line in card.text.splitlines() if line.startswith("| ")]
    assert any(line.startswith("| images | no |") for line in table)
    assert any(line.startswith("| labels | no |") for line in table)
    assert all(line.count("|") == 4 for line in table)


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("config", ["background-strong", "background-swap-cross", "object-placebo-strong"])
def test_the_same_copy_gives_the_same_rows(recipe, built, archive, config):
    from datasets import load_dataset

    loaded = truegap.load(str(recipe), config, source=archive)
    published = load_dataset(str(built), config, split="test")
    assert loaded.column_names == published.column_names
    for mine, theirs in zip(loaded, published, strict=True):
        np.testing.assert_array_equal(np.asarray(mine.pop("image")), np.asarray(theirs.pop("image")))
        assert mine == theirs


def test_missing_and_different_images_are_named(recipe, archive):
    (archive / "val2017/000000000002.jpg").unlink()
    (archive / "val2017/000000000003.jpg").write_bytes(encoded(99))
    said, loaded = said_of(recipe, "color-strong", archive)
    assert "1 images of the recipe are missing: 2 (image file " in said
    assert (
        "color-strong: 4 images identical to the byte, 1 different: 3 (its file differs from the one of the recipe)"
        in said
    )
    assert loaded["image_id"] == ["1", "3", "4", "5", "6"]


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("broken", [b"no image", encoded(2)[:-150], encoded(99), None])
def test_a_copy_that_is_mended_is_looked_at_again(recipe, archive, broken):
    file = archive / "val2017/000000000002.jpg"
    if broken is None:
        file.unlink()
    else:
        file.write_bytes(broken)
    with pytest.warns(UserWarning, match="2"):
        truegap.load(str(recipe), "color-strong", source=archive)
    with pytest.warns(UserWarning, match="2"):
        truegap.load(str(recipe), "color-strong", source=archive)
    file.write_bytes(encoded(2))
    assert len(truegap.load(str(recipe), "color-strong", source=archive)) == 6


def test_a_missing_donor_changes_its_own_images_alone(tmp_path):
    from datasets import load_dataset

    archive = coco(tmp_path / "more", 16)
    recipe = tmp_path / "recipe"
    recipe_of(build_folder(archive, tmp_path / "built", ("original", "background-swap-same")), recipe)
    drawn = load_dataset(str(recipe), "background-swap-same", split="test")
    donors = dict(zip(drawn["image_id"], (each["donor"] for each in drawn["perturbation"]), strict=True))
    gone = donors["1"]
    (archive / f"val2017/{int(gone):012}.jpg").unlink()
    said, loaded = said_of(recipe, "background-swap-same", archive)
    left = [each for each in donors if each != gone]
    hit = [each for each in left if donors[each] == gone]
    assert loaded["image_id"] == left
    assert f"{len(left) - len(hit)} images identical to the byte, {len(hit)} different: " in said
    assert f"{hit[0]} (something else was drawn for it)" in said


def test_rows_that_were_made_elsewhere_are_equal_up_to_rounding_or_different(recipe, archive):
    levels = {"1": 1, "2": 96, "3": 97}  # in 1/64 of a level; 96 are 1.5 levels

    def elsewhere(row):
        if row["image_id"] in levels:
            row["image_sha256"] = "0" * 64
            row["averages"][7] += levels[row["image_id"]]
        return row

    change_rows(recipe / "data/color-strong/test-00000-of-00001.parquet", elsewhere)
    change_terms(recipe, versions={**read_recipe(recipe).terms.versions, "opencv-python-headless": "4.0"})
    said, _ = said_of(recipe, "color-strong", archive)
    assert (
        "color-strong: 3 images identical to the byte, 2 equal up to rounding (averages of cells within 1.50 of 255 "
        "levels), 1 different: 3 (averages of cells differ by 1.5 levels)"
    ) in said
    assert "opencv-python-headless is " in said
    assert " here and 4.0 in the recipe" in said


def test_another_draw_is_different_however_little_it_changes(recipe, archive):
    def redrawn(row):
        row["image_sha256"] = "0" * 64
        row["perturbation"]["shift"] += row["image_id"] == "4"
        return row

    change_rows(recipe / "data/color-strong/test-00000-of-00001.parquet", redrawn)
    said, _ = said_of(recipe, "color-strong", archive)
    assert "0 images identical to the byte, 5 equal up to rounding (averages of cells within 0.00" in said
    assert "1 different: 4 (something else was drawn for it)" in said


def test_another_decoder_is_equal_up_to_rounding(recipe, archive, tmp_path, monkeypatch):
    from truegap.build import shard
    from truegap.hub.load import open_recipe, prepared, read_source, rebuild

    opened = open_recipe(str(recipe))
    plan, _ = prepared(opened, read_source(opened, archive), configs=("original", "color-strong"), workers=1)
    # given a decoder of JPEG that rounds up where this one rounds down
    decoded = shard.opened
    monkeypatch.setattr(shard, "opened", lambda data: decoded(data).point(lambda level: min(level + 1, 255)))
    found = rebuild(opened, plan, tmp_path / "again", workers=1)
    assert found.configs["original"].identical == 6
    color = found.configs["color-strong"]
    assert color.identical < 6
    assert color.identical + color.rounded == 6
    assert not color.different
    assert 0 < color.levels <= 1.5
    assert found.unequal == ()
    assert not found.is_identical


def test_other_labels_and_other_boxes_are_noticed_without_being_published(recipe, archive):
    path = archive / "annotations/captions_val2017.json"
    path.write_text(
        path.read_text().replace(
            '"id": 2, "image_id": 2, "caption": "a man"', '"id": 2, "image_id": 2, "caption": "a woman"'
        )
    )
    said, loaded = said_of(recipe, "color-strong", archive)
    assert loaded["gender"][1] == 0
    assert said.startswith("labels are not those of the recipe: the annotations of this copy are others")
    path = archive / "annotations/instances_val2017.json"
    path.write_text(path.read_text().replace('"bbox": [3, 32, 8, 6]', '"bbox": [3, 31, 8, 6]', 1))
    said, _ = said_of(recipe, "color-strong", archive)
    assert said.startswith("regions and labels are not those of the recipe")


@pytest.mark.usefixtures("strict")
def test_every_split_is_redone_into_its_own(tmp_path):
    from datasets import load_dataset

    source = own_folder(tmp_path / "mine", 12, splits=True)
    built = build_folder(
        source, tmp_path / "built", choose_configs(["original", "color-weak", "background-swap-cross"])
    )
    recipe_of(built, tmp_path / "recipe")
    for config in ("color-weak", "background-swap-cross"):
        for split in ("train", "validation", "test"):
            mine = truegap.load(str(tmp_path / "recipe"), config, source=source, split=split, workers=1)
            theirs = load_dataset(str(built), config, split=split)
            assert mine["image_id"] == theirs["image_id"] == mine.filter(lambda r: r["split"] == split)["image_id"]  # noqa: B023
            assert mine["perturbation"] == theirs["perturbation"]
    # And where the copy says another split, the recipe decides
    table = source / "metadata.csv"
    table.write_text(table.read_text().replace(",train,", ",test,"))
    assert len(truegap.load(str(tmp_path / "recipe"), "color-weak", source=source, split="train", workers=1)) == 4
    with pytest.raises(UserError, match="has no split dev: it has train and validation and test"):
        truegap.load(str(tmp_path / "recipe"), "color-weak", source=source, split="dev")


def test_whose_background_was_taken_is_said_only_where_labels_may_be(tmp_path, recipe):
    source = own_folder(tmp_path / "mine")
    built = build_folder(source, tmp_path / "own", ("original", "background-swap-same"))
    recipe_of(built, tmp_path / "other")
    told, untold = (read_recipe(each).rows("background-swap-same").values() for each in (recipe, tmp_path / "other"))
    assert all(row.drawn["donor"] for row in told)
    assert not any(row.drawn["donor"] for row in untold)


def test_backgrounds_are_drawn_among_the_same_images(tmp_path):
    source = own_folder(tmp_path / "mine", 12)
    # Two images whose files are broken are among those that backgrounds are drawn from, not in the benchmark
    for number in (3, 4):
        file = source / f"{number}.jpg"
        file.write_bytes(file.read_bytes()[:-200])
    configs = ("original", "background-swap-same", "background-swap-cross")
    recipe_of(build_folder(source, tmp_path / "built", configs), tmp_path / "recipe")
    assert read_recipe(tmp_path / "recipe").terms.unreadable == ["3", "4"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for config in configs:
            assert len(truegap.load(str(tmp_path / "recipe"), config, source=source)) == 10


def test_images_that_the_recipe_does_not_name_stay_out(recipe, archive):
    def first_four(row):
        return row if row["image_id"] in "1234" else None

    for path in recipe.glob("data/*/*.parquet"):
        change_rows(path, first_four)
    change_terms(recipe, images=4)
    _, loaded = said_of(recipe, "color-strong", archive)
    assert loaded["image_id"] == ["1", "2", "3", "4"]


def test_command_line(recipe, archive, built, tmp_path):
    from typer.testing import CliRunner

    from truegap.cli.app import app

    again = ["--source", str(archive), "--recipe", str(recipe), "--workers", "1", "--out"]
    done = CliRunner().invoke(app, ["build", "coco-gender", *again, str(tmp_path / "again"), "--json"])
    assert "all 54 images are those of the recipe, to the byte" in done.stderr
    assert json.loads(done.stdout)["benchmark"] == "coco-gender"
    assert read_manifest(tmp_path / "again").rows == read_manifest(built).rows
    other = CliRunner().invoke(app, ["build", "facet", *again, str(tmp_path / "other")])
    assert isinstance(other.exception, UserError)
    assert "is a recipe of coco-gender, not of facet" in str(other.exception)


def test_a_recipe_does_not_depend_on_the_number_of_workers(built, tmp_path):
    from functools import partial

    from truegap.engine import run_tasks

    write_recipe(built, tmp_path / "one")
    write_recipe(built, tmp_path / "two", run=partial(run_tasks, workers=2))

    def content(folder):
        return {
            file.relative_to(folder): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in folder.rglob("*")
            if file.is_file()
        }

    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert not list(tmp_path.glob(".*"))

"""A recipe that somebody else made, or that was torn on its way: one line, and no path of it is followed."""

from __future__ import annotations

import pickle
import sys

import pytest

import truegap
from recipe_factory import archive, build, change_rows, change_terms, recipe_of
from truegap import cli
from truegap.build.recipe import read_recipe
from truegap.build.recipe_write import write_recipe
from truegap.errors import UserError

TABLE = "data/original/test-00000-of-00001.parquet"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """An archive, a build of it, and its recipe."""
    folder = tmp_path_factory.mktemp("hostile")
    source = archive(folder / "mine", 4)
    built = build(source, folder / "built", ("original", "color-weak"))
    recipe_of(built, folder / "recipe")
    return folder


@pytest.fixture
def recipe(made, tmp_path):
    import shutil

    return shutil.copytree(made / "recipe", tmp_path / "recipe")


def refusal(recipe, made, config="original", **options):
    """The one line that is said."""
    with pytest.raises(UserError) as refused:
        truegap.load(str(recipe), config, source=made / "mine", workers=1, **options)
    text = str(refused.value)
    assert "\n" not in text
    return text


class Evil:
    def __reduce__(self):
        return sys.exit, (99,)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is not a recipe: recipe.json is missing"),
        (b"", "recipe.json: Invalid JSON"),
        (b"[]", "recipe.json: "),
        (b'{"format_version": 2', "recipe.json: Invalid JSON"),
        (b"\xff\xfe\x00", "recipe.json: "),
        (pickle.dumps(Evil()), "recipe.json: Invalid JSON"),
    ],
)
def test_a_recipe_that_is_none(recipe, made, content, message):
    (recipe / "recipe.json").unlink()
    if content is not None:
        (recipe / "recipe.json").write_bytes(content)
    assert message in refusal(recipe, made)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format_version": 1}, "this truegap reads recipes of format 2: use the truegap that made it"),
        ({"format_version": "two"}, "this truegap reads recipes of format 2"),
        ({"surprise": 1}, "'surprise' is not known"),
        ({"benchmark": "../../etc"}, "benchmark: "),
        ({"benchmark": "synthetic"}, "there is no source 'synthetic'"),
        ({"version": "1.0.0/../.."}, "version: "),
        ({"seed": "x"}, "seed: "),
        ({"configs": []}, "configs: "),
        ({"configs": ["../../../tmp/x"]}, "configs: '../../../tmp/x' is no config"),
        ({"images": 0}, "images: "),
        ({"images": 10**12}, "images: "),
        ({"perturbations": {"bleed": "blood"}}, "perturbations: bleed='blood'"),
        ({"perturbations": {"evil": 1}}, "perturbations: unknown options"),
        ({"encoder": {"encoding": "bmp"}}, "encoder: unknown encoding 'bmp'"),
        ({"encoder": {}}, "encoder: unknown encoding ''"),
        ({"sha256": {}}, "sha256: "),
        ({"sha256": {"labels": "x", "regions": "y", "terms": "z"}}, "sha256.labels: "),
        ({"masks": "some"}, "masks: "),
        ({"masks_to_draw": -1}, "masks_to_draw: "),
        ({"selection": {"regions": {"masks": "box"}}}, "annotated_objects: Field required"),
        ({"selection": {"metadata": "../metadata.csv"}}, "is not the name of a file in"),
        ({"selection": {"groups": [["x"]]}}, "folder: groups"),
    ],
)
def test_terms_that_cannot_be(recipe, made, changes, message):
    change_terms(recipe, **changes)
    assert message in refusal(recipe, made)


def test_a_path_in_the_options_of_a_recipe_is_not_followed(recipe, made, tmp_path, monkeypatch):
    from truegap.hub import load

    seen = {}
    monkeypatch.setattr("truegap.sources.read", lambda *_where, **options: seen.update(options))
    for name, option in (("coco-gender", "labels_file"), ("genderbias-vl", "images_folder")):
        change_terms(recipe, benchmark=name, selection={option: str(tmp_path), "split": "x", "nonsense": 1})
        load.read_source(read_recipe(recipe), made)
        assert option not in seen
        assert "nonsense" not in seen
    load.read_source(read_recipe(recipe), made, images_folder=tmp_path)
    assert seen["images_folder"] == tmp_path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "0 of 4 images are there; get the recipe again"),
        (b"", "get the recipe again"),
        (b"PAR1 and nothing", "get the recipe again"),
        (pickle.dumps(Evil()), "get the recipe again"),
    ],
)
def test_a_table_that_is_none(recipe, made, content, message):
    path = recipe / TABLE
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    assert message in refusal(recipe, made)


def test_a_table_that_is_torn(recipe, made):
    path = recipe / TABLE
    path.write_bytes(path.read_bytes()[:-100])
    assert f"{path}: " in refusal(recipe, made)


@pytest.mark.parametrize("where", [60, 200, 400, 800])
def test_a_table_with_another_byte_is_one_line_or_nothing(recipe, made, where):
    path = recipe / TABLE
    content = bytearray(path.read_bytes())
    content[where] ^= 0xFF
    path.write_bytes(bytes(content))
    try:
        truegap.load(str(recipe), "original", source=made / "mine", workers=1)
    except UserError as error:
        assert "\n" not in str(error)  # noqa: PT017  # both outcomes are right


def rewritten(path, change):
    import pyarrow.parquet as pq

    pq.write_table(change(pq.read_table(path)), path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop_columns(["image_sha256"]), "get the recipe again"),
        (lambda table: table.drop_columns(["averages"]), "get the recipe again"),
        (lambda table: table.rename_columns(["x", *table.column_names[1:]]), "get the recipe again"),
        (lambda table: table.slice(0, 3), "3 of 4 images are there"),
        (lambda table: table.take([0, 0, 1, 2]), "image '0' is there twice"),
    ],
)
def test_a_table_of_something_else(recipe, made, change, message):
    rewritten(recipe / TABLE, change)
    assert message in refusal(recipe, made)


def test_empty_cells(recipe, made):
    path = recipe / "data/color-weak/test-00000-of-00001.parquet"
    change_rows(path, lambda row: row | {"averages": None})
    assert "image '0' has no averages" in refusal(recipe, made, "color-weak")
    import pyarrow as pa

    def empty(table):
        field = pa.field("image_id", pa.string())
        return table.set_column(0, field, pa.array([None] * 4, pa.string()))

    rewritten(path, empty)
    assert "with null values to non-nullable" in refusal(recipe, made, "color-weak")


def test_another_config_or_archive(recipe, made, tmp_path):
    assert "the recipe has no config color-strong: it has original, color-weak" in refusal(recipe, made, "color-strong")
    with pytest.raises(UserError, match="is not a folder"):
        truegap.load(str(recipe), "original", source=tmp_path / "nowhere")
    other = archive(tmp_path / "other", 4)
    (other / "metadata.csv").write_text((other / "metadata.csv").read_text().replace(".jpg,", ".jpg,other"))
    with pytest.raises(UserError, match="none of the recipe's 4 images is in the source: check --source"):
        truegap.load(str(recipe), "original", source=other)
    with pytest.raises(UserError, match="nowhere is neither a folder nor"):
        truegap.load("nowhere", "original", source=made / "mine")


def test_the_command_exits_with_2_and_one_line(recipe, made, tmp_path, monkeypatch, capsys):
    (recipe / TABLE).write_bytes(b"torn")
    arguments = [
        "build",
        "folder",
        "--recipe",
        str(recipe),
        "--source",
        str(made / "mine"),
        "--out",
        str(tmp_path / "o"),
    ]
    monkeypatch.setattr(sys, "argv", ["truegap", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("truegap: ")
    assert said.count("\n") == 1


def test_a_build_that_is_not_its_manifest_gives_no_recipe(made, tmp_path):
    import shutil

    built = shutil.copytree(made / "built", tmp_path / "built")
    table = built / "data/color-weak/test-00000-of-00001.parquet"
    shutil.copy(built / "data/original/test-00000-of-00001.parquet", table)
    with pytest.raises(UserError, match="the images of config color-weak are not those of its manifest"):
        write_recipe(built, tmp_path / "recipe")
    table.write_bytes(table.read_bytes()[:500])
    with pytest.raises(UserError, match="build the benchmark again"):
        write_recipe(built, tmp_path / "recipe")
    with pytest.raises(UserError, match="exists: choose another --out"):
        write_recipe(made / "built", made / "recipe")
    with pytest.raises(UserError, match="is not a built benchmark"):
        write_recipe(tmp_path, tmp_path / "recipe")
    # And nothing half done stays
    assert not [each for each in tmp_path.iterdir() if each.name != "built"]


def test_a_benchmark_without_a_source_gives_no_recipe(made, tmp_path):
    import json
    import shutil

    built = shutil.copytree(made / "built", tmp_path / "built")
    manifest = json.loads((built / "manifest.json").read_text())
    (built / "manifest.json").write_text(json.dumps(manifest | {"benchmark": "synthetic"}))
    with pytest.raises(UserError, match="synthetic has no source to repeat it from: publish it as it is"):
        write_recipe(built, tmp_path / "recipe")

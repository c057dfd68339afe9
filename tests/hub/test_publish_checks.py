"""What a folder must be before anything of it is published."""

from __future__ import annotations

import json
import pickle
import shutil
from contextlib import nullcontext
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recipe_factory import archive, build, change_rows, coco, recipe_of
from truegap import __version__
from truegap.engine import run_tasks
from truegap.errors import UserError
from truegap.hub.difference import difference
from truegap.hub.publish_dataset import Where, dataset_publication
from truegap.hub.publish_module import metric_publication, pinned, space_publication
from truegap.hub.tree import Held

TABLE = "data/background-strong/test-00000-of-00001.parquet"


def silent(title: str, total: int):
    return nullcontext(lambda _: None)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checks")
    return build(coco(folder / "archive", 4), folder / "coco-gender", ("original", "background-strong"))


@pytest.fixture
def built(made, tmp_path):
    return shutil.copytree(made, tmp_path / "coco-gender")


@pytest.fixture
def module(root, tmp_path):
    return shutil.copytree(root / "metrics/ygap", tmp_path / "ygap", ignore=shutil.ignore_patterns("__pycache__"))


@pytest.fixture
def refused(loopback_hub, tmp_path):
    """The one line of a refusal; nothing was asked of the Hub."""

    def refused(folder, publication=dataset_publication) -> str:
        further = ["ORG"]
        if publication is dataset_publication:
            further = [Where("ORG"), tmp_path / "scratch", partial(run_tasks, workers=1), silent]
        with pytest.raises(UserError) as caught:
            publication(folder, *further)
        assert "\n" not in str(caught.value)
        assert not loopback_hub.asked
        return str(caught.value)

    return refused


def change_image(row):
    return row | {"image": {**row["image"], "bytes": row["image"]["bytes"] + b"\0"}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (change_image, "config background-strong is not what manifest.json says (row '1')"),
        (lambda row: row | {"gender": 1 - row["gender"]}, "is not what manifest.json says (row '1')"),
        (lambda row: row | {"license": "CC0 1.0"}, "is not what manifest.json says (row '1')"),
        (lambda row: None if row["image_id"] == "4" else row, "(3 of 4 rows)"),
    ],
)
def test_every_row_must_be_that_of_the_manifest(built, refused, change, message):
    change_rows(built / TABLE, change)
    assert message in refused(built)


def test_a_manifest_cannot_be_mended_to_fit(built, refused):
    change_rows(built / TABLE, change_image)
    path = built / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["rows"]["sha256"]["background-strong"][0] = "0" * 64
    path.write_text(json.dumps(manifest))
    assert "manifest.json contradicts itself about config background-strong" in refused(built)


def test_the_card_must_be_the_one_of_the_build(built, refused):
    card = built / "README.md"
    card.write_text(card.read_text().replace("background-strong", "color-weak"))
    assert "README.md: its `configs:` are not those of the build" in refused(built)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("notes.txt", "notes.txt is no part of the benchmark"),
        ("data/original/extra.parquet", "data/original/extra.parquet is no part of the benchmark"),
        ("coco_gender.py", "coco_gender.py is no part of the benchmark"),
        (".env", "is hidden, and may hold what nobody should see"),
        (".git/config", "is hidden"),
        ("a:b", "the name does not fit a repository"),
    ],
)
def test_nothing_else_may_lie_there(built, refused, path, message):
    (built / path).parent.mkdir(exist_ok=True)
    (built / path).write_bytes(b"x")
    assert message in refused(built)


@pytest.mark.parametrize("name", ["README.md", "manifest.json", "eval.yaml", "croissant.json", ".gitattributes"])
def test_no_token_leaves_in_a_text_of_a_benchmark(built, refused, name):
    with (built / name).open("ab") as file:
        file.write(b" " * 11_000_000 + b"hf_" + b"a" * 34 + b"\n")
    assert f"{name}: holds what looks like a token of the Hub" in refused(built)


def test_an_empty_text_holds_nothing(built, refused):
    (built / "eval.yaml").write_bytes(b"")
    (built / "croissant.json").write_bytes(pickle.dumps(1))
    assert "croissant.json: is a pickle or may hold one" in refused(built)


def test_a_missing_file_is_named(built, refused):
    (built / TABLE).unlink()
    assert f"{TABLE} is missing (1 in all)" in refused(built)


def test_no_link_is_followed(built, refused, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (built / TABLE).unlink()
    (built / TABLE).symlink_to(tmp_path / "secret")
    assert f"{TABLE}: is a link, which is not published" in refused(built)


def test_nor_a_linked_folder(built, refused, tmp_path):
    (built / "data").rename(tmp_path / "data")
    (built / "data").symlink_to(tmp_path / "data")
    assert "data: is a link" in refused(built)


def test_what_tools_leave_behind_is_not_published(module):
    (module / "__pycache__").mkdir()
    (module / "__pycache__/ygap.pyc").write_bytes(b"\x80")
    assert not [path for path in metric_publication(module, "ORG").files if "pyc" in path]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("weights.pkl", pickle.dumps(1), "is a pickle or may hold one"),
        ("table.csv", pickle.dumps(1), "is a pickle or may hold one"),
        ("model.pt", b"PK", "is a pickle or may hold one"),
        ("app.py", b"TOKEN = 'hf_" + b"a" * 34 + b"'", "holds what looks like a token of the Hub"),
    ],
)
def test_neither_pickles_nor_tokens_leave(module, refused, name, content, message):
    (module / name).write_bytes(content)
    assert message in refused(module, metric_publication)
    assert message in refused(module, space_publication)


def test_what_is_no_metric_or_space_is_said(module, refused, tmp_path):
    (module / "README.md").write_text("no front matter")
    assert "README.md: must begin with YAML" in refused(module, metric_publication)
    (module / "ygap.py").rename(module / "other.py")
    assert "no ygap.py in it" in refused(module, metric_publication)


def test_a_space_keeps_the_version_that_it_names():
    assert pinned("truegap[space]\ngradio>=6\n") == f"truegap[space]=={__version__}\ngradio>=6\n"
    assert pinned("truegap @ git+https://example.org/t@abc\n") == "truegap @ git+https://example.org/t@abc\n"
    assert pinned("truegap-tools\n") == f"truegap=={__version__}\ntruegap-tools\n"


def test_a_recipe_holds_what_a_recipe_holds(refused, tmp_path):
    recipe = tmp_path / "recipe"
    recipe_of(build(archive(tmp_path / "archive", 4), tmp_path / "built", ("original", "color-weak")), recipe)
    path = recipe / "data/color-weak/test-00000-of-00001.parquet"
    table = pq.read_table(path)
    pq.write_table(table.append_column("gender", pa.array(["woman"] * len(table))), path)
    assert "a recipe has no column 'gender'" in refused(recipe)
    pq.write_table(table, path)
    (recipe / "recipe.json").write_text((recipe / "recipe.json").read_text() + "hf_" + "a" * 34)
    assert "recipe.json: holds what looks like a token" in refused(recipe)
    (recipe / "recipe.json").write_bytes((recipe / "recipe.json").read_bytes()[:-37])
    (recipe / "images.zip").write_bytes(b"x")
    assert "images.zip is no part of a recipe" in refused(recipe)


def test_the_difference_is_by_content(tmp_path):
    (tmp_path / "a").write_bytes(b"hello")
    there = {
        "a": Held(5, "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0"),
        "b": Held(5, "?", "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"),
        "c": Held(5, "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0"),
        "d": Held(7, "x"),
        ".gitattributes": Held(1, "x"),
    }
    found = difference({"a": tmp_path / "a", "b": b"hello", "c": b"hallo", "e": b"new", ".gitattributes": b""}, there)
    assert (found.same, found.added, found.changed, found.removed) == (2, {"e": 3}, {"c": 5}, {"d": 7})
    assert found.to_send == 8

"""The contact sheet as the command line draws it."""

from __future__ import annotations

import pytest
from PIL import Image
from typer.testing import CliRunner

from examples import selection
from truegap.build import Plan, Workspace, build_shard
from truegap.cli.app import app
from truegap.errors import UserError


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("sheet") / "b"
    workspace = Workspace(Plan("synthetic", "1.0.0", selection(4), ("original", "color-strong")), out)
    with workspace.opened():
        for task in workspace.tasks():
            build_shard(task)
        workspace.finish()
    return out


def run(*arguments):
    return CliRunner().invoke(app, ["sheet", *map(str, arguments)], catch_exceptions=True)


def test_a_picture_is_written_whole(built, tmp_path):
    out = tmp_path / "deep/sheet.png"
    done = run(built, "--out", out, "--images", 2)
    assert done.exit_code == 0, done.exception
    with Image.open(out) as picture:
        assert picture.format == "PNG"
        assert done.stdout == f"{out}: 2 images x 2 configs, {picture.width} x {picture.height} pixels\n"
    assert [each.name for each in out.parent.iterdir()] == ["sheet.png"]


def test_images_and_configs_are_chosen(built, tmp_path):
    out = tmp_path / "sheet.png"
    chosen = run(built, "--out", out, "--sample-id", 3, "--sample-id", 1, "--configs", "color-strong", "--width", 400)
    assert "2 images x 1 configs, 400 x" in chosen.stdout


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--out", "sheet.jpg"], "--out sheet.jpg: give a name that ends in .png"),
        (["--sample-id", "9"], "synthetic has no image 9; its ids are like 0, 1, 2"),
        (["--configs", "colour"], "unknown config colour"),
        (["--configs", "color-weak"], "has no config color-weak: it has original, color-strong"),
        (["--width", "200"], "--width 200 is too narrow for 2 configs"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(built, tmp_path, more, message):
    out = [] if "--out" in more else ["--out", tmp_path / "sheet.png"]
    done = run(built, *out, *more)
    assert isinstance(done.exception, UserError)
    assert message in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_no_benchmark_is_one_line(tmp_path):
    (tmp_path / "b").mkdir()
    done = run(tmp_path / "b", "--out", tmp_path / "s.png")
    assert "is not a built benchmark" in str(done.exception)

"""A user's own images, as the command line builds them."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from examples import encoded
from truegap.cli.app import app
from truegap.errors import UserError


@pytest.fixture
def images(tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    rows = ["file_name,gender,person_boxes"]
    for number in range(4):
        (folder / f"{number}.jpg").write_bytes(encoded(number))
        rows.append(f'{number}.jpg,{"woman" if number % 2 else "man"},"[[20, 5, 20, 25]]"')
    (folder / "metadata.csv").write_text("\n".join(rows))
    return folder


def run(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=True)


def test_own_images_become_a_benchmark(images, tmp_path):
    done = run("build", "folder", "--source", images, "--out", tmp_path / "b", "--workers", 1, "--json")
    assert done.exit_code == 0, done.exception
    manifest = json.loads(done.stdout)
    assert manifest["configs"]["background-strong"]["rows"] == 4
    assert len(manifest["configs"]) == 15


def test_an_unknown_option_lists_those_there_are(images, tmp_path):
    done = run("build", "folder", "--source", images, "--out", tmp_path / "b", "--option", "colour=red")
    assert isinstance(done.exception, UserError)
    assert "colour" in str(done.exception)
    assert "options:" in str(done.exception)
    assert "give name=value" in str(
        run("build", "folder", "--source", images, "--out", tmp_path / "b", "-o", "x").exception
    )

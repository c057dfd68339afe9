"""`truegap build --regions`: what a user types, through to the rows."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from examples import encoded
from truegap.cli.app import app
from truegap.errors import UserError


@pytest.fixture
def photos(tmp_path):
    """A user's own folder: two photographs, each with a person's box."""
    folder = tmp_path / "photos"
    folder.mkdir()
    lines = ["file_name,gender,person_boxes"]
    for number, gender in enumerate(["woman", "man"]):
        (folder / f"{number}.jpg").write_bytes(encoded(number))
        lines.append(f'{number}.jpg,{gender},"[[20, 5, 20, 25]]"')
    (folder / "metadata.csv").write_text("\n".join(lines))
    return folder


def build(photos, out, *more):
    command = ["build", "folder", "--source", str(photos), "--out", str(out), "--workers", "1", "--json"]
    done = CliRunner().invoke(app, [*command, "--configs", "original,object-strong,background-weak", *more])
    if done.exception is not None:
        raise done.exception
    return json.loads(done.stdout)


def rows(out):
    from datasets import load_dataset

    return load_dataset(str(out), "original", split="test")


def test_grabcut_is_in_manifest_and_rows(photos, tmp_path):
    manifest = build(photos, tmp_path / "out", "--regions", "grabcut")
    assert manifest["selection"]["regions"]["masks"].startswith("grabcut (side ")
    for row in rows(tmp_path / "out"):
        assert row["person_origins"][0].startswith("annotation; mask: ")
    # which is what is done where nothing is named and persons have boxes alone
    assert build(photos, tmp_path / "default")["build_key"] == manifest["build_key"]
    plain = build(photos, tmp_path / "plain", "--regions", "annotations")
    assert plain["build_key"] != manifest["build_key"]
    assert [row["person_origins"] for row in rows(tmp_path / "plain")] == [["annotation"]] * 2


def test_detections_become_objects_that_are_blacked_out(photos, tmp_path):
    path = tmp_path / "detic.json"
    found = [
        {"image_id": f"{number}.jpg", "category_id": 2, "bbox": [3 * i, 31, 3, 8], "score": score}
        for number in (0, 1)
        for i, score in enumerate([0.9] * 10 + [0.4] * 10)
    ]
    path.write_text(json.dumps(found))
    (tmp_path / "words.txt").write_text("person\nteapot\n")
    told = ["--detections", str(path), "--vocabulary", str(tmp_path / "words.txt")]
    few = build(photos, tmp_path / "few", *told)
    many = build(photos, tmp_path / "many", *told, "--score-threshold", "0.3")
    assert few["configs"]["object-strong"]["objects"] == 20
    assert many["configs"]["object-strong"]["objects"] == 40
    assert few["configs"]["object-strong"]["objects_drawn"] == 6
    assert {each["label"] for row in rows(tmp_path / "few") for each in row["objects"]} == {"teapot"}


def test_a_repeated_command_finds_the_build_finished(photos, tmp_path):
    first = build(photos, tmp_path / "out", "--regions", "grabcut")
    assert build(photos, tmp_path / "out", "--regions", "grabcut") == first
    with pytest.raises(UserError, match="with other regions"):
        build(photos, tmp_path / "out", "--regions", "box")


def test_models_are_named_by_their_folder(photos, tmp_path, saved):
    manifest = build(photos, tmp_path / "out", "--regions", str(saved("rt_detr")), "--score-threshold", "0.1")
    (model,) = manifest["selection"]["regions"]["detectors"]
    assert (model["model"], model["threshold"]) == ("tiny-rt_detr", 0.1)
    assert str(saved("rt_detr").parent) not in json.dumps(manifest)
    origins = {each["origin"] for row in rows(tmp_path / "out") for each in row["objects"]}
    assert origins == {f"tiny-rt_detr@{model['content'][:12]} (score>=0.1)"}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--regions", "magic"], "--regions: model magic: no such folder"),
        (["--regions", "grabcut", "--score-threshold", "0.5"], "--score-threshold is for detections"),
        (["--vocabulary", "coco"], "--vocabulary is for open-vocabulary detectors"),
        (["--detections", "nowhere.json"], "detections nowhere.json: cannot be read"),
    ],
)
def test_a_mistake_is_one_line_and_builds_nothing(photos, tmp_path, more, message):
    with pytest.raises(UserError, match=message):
        build(photos, tmp_path / "out", *more)
    assert not (tmp_path / "out").exists()

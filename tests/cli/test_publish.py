"""`truegap publish` against a Hub on this machine, and what the real clients then load from it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache, partial

import datasets
import evaluate
import pytest
import yaml
from typer.testing import CliRunner

from loopback_hub import READER_TOKEN, TOKEN
from recipe_factory import archive, build, coco, owned
from truegap import __version__, load
from truegap.cli.app import app
from truegap.errors import UserError
from truegap.hub import publish_module, wheel
from truegap.hub.benchmark import open_benchmark
from truegap.hub.wheel import build_wheel

CONFIGS = ("original", "control", "background-strong")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Six photographs of COCO that may be given away, in three configs."""
    folder = tmp_path_factory.mktemp("publish")
    return build(owned(coco(folder / "archive")), folder / "coco-gender", CONFIGS)


@pytest.fixture(scope="module")
def private(tmp_path_factory):
    """Photographs of one's own, whose labels nobody said may be given away."""
    folder = tmp_path_factory.mktemp("publish-folder")
    return build(archive(folder / "archive"), folder / "folder", CONFIGS)


@pytest.fixture(scope="module")
def one_wheel():
    """Builds the wheel of the checkout once; `test_wheel` shows that the same code gives the same one."""
    return cache(build_wheel)


@pytest.fixture
def hub(loopback_hub, monkeypatch, tmp_path, one_wheel):
    """The Hub, and a user who may write."""
    monkeypatch.setattr(publish_module, "build_wheel", one_wheel)
    # Who works on the code has files that git does not know yet.
    monkeypatch.setattr(wheel, "_known_to_git", lambda _: None)
    loopback_hub.connect(monkeypatch, tmp_path / "hub-cache", TOKEN)
    return loopback_hub


def publish(*arguments, fails: bool = False) -> str:
    """What the command prints, or the one line of its refusal."""
    done = CliRunner().invoke(
        app, ["publish", *map(str, arguments), *(["--workers", "1"] * (arguments[0] == "dataset"))]
    )
    if fails:
        assert isinstance(done.exception, UserError), done.output
        assert "\n" not in str(done.exception)
        assert TOKEN not in str(done.exception) + done.output
        return str(done.exception)
    assert done.exception is None, done.output
    assert TOKEN not in done.output
    return done.stdout


def said(*arguments) -> dict:
    return json.loads(publish(*arguments, "--json"))


def test_a_published_dataset_is_loaded_by_revision_and_streamed(hub, built, monkeypatch):
    # a look needs no token
    with monkeypatch.context() as patch:
        patch.delenv("HF_TOKEN")
        shown = said("dataset", built, "--namespace", "ORG", "--dry-run")
    assert (shown["state"], shown["commit"], not hub.repositories) == ("new", None, True)
    done = said("dataset", built, "--namespace", "ORG")
    assert (done["state"], done["tag"], done["added"]) == ("published", "v1.0.0", shown["added"])
    repository = hub.repositories["dataset", "ORG/coco-gender"]
    # one commit after the Hub's own, and the tag on it
    assert list(repository.titles.values()) == ["initial commit", "Version 1.0.0"]
    assert repository.refs == {"main": done["commit"], "v1.0.0": done["commit"]}

    here = datasets.load_dataset(str(built), "background-strong", split="test")
    there = datasets.load_dataset("ORG/coco-gender", "background-strong", split="test", revision="v1.0.0")
    assert there.features == here.features
    assert there["image_id"] == here["image_id"]
    assert there[0]["image"].tobytes() == here[0]["image"].tobytes()
    streamed = datasets.load_dataset("ORG/coco-gender", "original", split="test", revision="v1.0.0", streaming=True)
    assert [row["image_id"] for row in streamed] == here["image_id"]
    assert open_benchmark("ORG/coco-gender@v1.0.0", ["original"]).revision == done["commit"]
    card = hub.files("dataset", "ORG/coco-gender")["README.md"].decode()
    assert 'load_dataset("ORG/coco-gender", "original", split="test", revision="v1.0.0")' in card
    assert "PATH_OR_REPO" not in card


def test_every_version_stays_what_it_was(hub, built, tmp_path):
    old = said("dataset", built, "--namespace", "ORG")
    # the same again is nothing to do
    assert said("dataset", built, "--namespace", "ORG")["state"] == "same"
    # other content does not go under the same tag
    other = tmp_path / "coco-gender"
    shutil.copytree(built, other)
    (other / "README.md").write_text((other / "README.md").read_text() + "\nMore.\n")
    refusal = publish("dataset", other, "--namespace", "ORG", fails=True)
    assert "has the tag v1.0.0 with other content (1 changed: README.md): a tag never moves" in refusal
    assert "--tag v1.0.1" in refusal
    shown = said("dataset", other, "--namespace", "ORG", "--tag", "v1.0.1", "--dry-run")
    assert (shown["state"], set(shown["changed"]), shown["added"]) == (
        "changed", {"README.md", "croissant.json"}, {},
    )  # fmt: skip
    new = said("dataset", other, "--namespace", "ORG", "--tag", "v1.0.1")
    refs = hub.repositories["dataset", "ORG/coco-gender"].refs
    assert refs == {"main": new["commit"], "v1.0.0": old["commit"], "v1.0.1": new["commit"]}
    assert b"More" not in hub.files("dataset", "ORG/coco-gender", "v1.0.0")["README.md"]


def test_what_a_version_no_longer_has_goes(hub, built, tmp_path):
    said("dataset", built, "--namespace", "ORG")
    fewer = build(owned(coco(tmp_path / "archive")), tmp_path / "coco-gender", CONFIGS[:1])
    shown = publish("dataset", fewer, "--namespace", "ORG", "--tag", "v2.0.0", "--dry-run")
    assert "  - data/control/test-00000-of-00001.parquet  " in shown
    assert re.search(r"files: 0 added, \d changed, 2 removed, \d the same; [\d.]+ kB to send", shown)
    assert "nothing was changed; without --dry-run this is one commit" in shown
    said("dataset", fewer, "--namespace", "ORG", "--tag", "v2.0.0")
    files = hub.files("dataset", "ORG/coco-gender")
    assert {path for path in files if path.startswith("data/")} == {"data/original/test-00000-of-00001.parquet"}
    assert ".gitattributes" in files


def test_what_may_not_be_given_away_becomes_a_recipe(hub, private):
    output = publish("dataset", private, "--namespace", "ORG", "--name", "mine")
    assert "published as a recipe, without images and labels: its labels may not be given away (unknown)" in output
    files = hub.files("dataset", "ORG/mine")
    assert "recipe.json" in files
    assert "manifest.json" not in files
    # and whoever has the source loads it
    rows = load("ORG/mine@v1.0.0", "background-strong", source=private.parent / "archive", workers=1)
    assert rows["image_id"] == datasets.load_dataset(str(private), "background-strong", split="test")["image_id"]
    everything = b"".join(files.values())
    photograph = (private.parent / "archive/0.jpg").read_bytes()
    assert photograph[200:300] not in everything
    assert said("dataset", private, "--namespace", "ORG", "--name", "mine")["state"] == "same"
    assert 'truegap.load("ORG/mine@v1.0.0"' in files["README.md"].decode()


def test_a_photograph_whose_licence_forbids_changes_keeps_all_images_here(hub, built, tmp_path):
    source = owned(coco(tmp_path / "archive"), 6)
    changed = build(source, tmp_path / "coco-gender", CONFIGS)
    record = said("dataset", changed, "--namespace", "ORG")
    assert "6 images under 'CC BY-ND 2.0', which does not allow changed copies" in record["remarks"][0]
    assert any("--publishable" in each for each in record["remarks"])
    assert "recipe.json" in record["added"]
    # as they are they may be copied
    unchanged = build(source, tmp_path / "original", CONFIGS[:1])
    shown = said("dataset", unchanged, "--namespace", "ORG", "--tag", "v1.0.1", "--dry-run")
    assert "manifest.json" in shown["added"]


def test_whose_photographs_these_are_has_to_be_said(hub, tmp_path):
    nameless = build(coco(tmp_path / "archive"), tmp_path / "coco-gender", CONFIGS[:1])
    shown = said("dataset", nameless, "--namespace", "ORG", "--dry-run")
    assert "6 images under 'CC BY 2.0', whose owner has to be named and is not" in shown["remarks"][0]
    assert "recipe.json" in shown["added"]


def test_the_pages_of_the_hub_know_the_benchmark(hub, built):
    said("dataset", built, "--namespace", "ORG")
    files = hub.files("dataset", "ORG/coco-gender")
    page = yaml.safe_load(files["eval.yaml"])
    assert page["evaluation_framework"] == "truegap"
    assert [task["id"] for task in page["tasks"]] == [
        "vqa_bias", "vqa_mean_delta", "vqa_bias_lite_1", "vqa_mean_delta_lite_1",
        "retrieval_bias", "retrieval_mean_delta", "retrieval_bias_lite_1", "retrieval_mean_delta_lite_1",
    ]  # fmt: skip
    described = json.loads(files["croissant.json"])
    needed = {"@context", "@type", "conformsTo", "description", "license", "name", "url", "creator", "datePublished"}
    assert needed <= set(described)
    assert "http://mlcommons.org/croissant/RAI/1.0" in described["conformsTo"]
    responsible = {name for name in described if name.startswith("rai:")}
    assert {"rai:dataCollection", "rai:dataAnnotationProtocol", "rai:dataBiases", "rai:personalSensitiveInformation",
            "rai:dataLimitations", "rai:dataUseCases", "rai:dataSocialImpact"} <= responsible  # fmt: skip
    assert all(described[name] for name in responsible)
    # every record set is fed by a file set whose pattern matches files, and every field by a column
    held = {each["@id"]: each for each in described["distribution"]}
    columns = datasets.load_dataset(str(built), "original", split="test").column_names
    for records in described["recordSet"]:
        source = held[records["field"][0]["source"]["fileSet"]["@id"]]
        folder = source["includes"].removesuffix("*.parquet")
        assert any(path.startswith(folder) for path in files)
        assert source["containedIn"]["@id"] in held
        assert [each["@id"].split("/")[1] for each in records["field"]] == columns
    assert described["url"].endswith("/datasets/ORG/coco-gender")
    assert described["version"] == "1.0.0"


def test_a_published_metric_is_loaded_by_revision(hub, root, monkeypatch):
    record = said("metric", root / "metrics/ygap", "--namespace", "ORG", "--tag", "v1.2.0")
    assert (record["kind"], record["state"]) == ("space", "published")
    metric = evaluate.load("ORG/ygap", revision="v1.2.0")
    answers = {"predictions": [0.9, 0.6, 0.2, 0.3], "genders": ["man", "man", "woman", "woman"]}
    assert metric.compute(**answers)["ygap"] == pytest.approx(0.5)
    files = hub.files("space", "ORG/ygap")
    assert not any(line.startswith(b"from truegap.") for line in files["ygap.py"].splitlines())
    assert b'evaluate.load("ORG/ygap", revision="v1.2.0")' in files["README.md"]
    assert said("metric", root / "metrics/ygap", "--namespace", "ORG", "--tag", "v1.2.0")["state"] == "same"


def test_a_published_space_installs_the_truegap_that_published_it(hub, root, tmp_path):
    pytest.importorskip("pip", reason="pip is not installed")
    space = ["space", root / "spaces/leaderboard", "--namespace", "ORG"]
    assert "nobody can fetch a wheel of truegap from a private Space" in publish(*space, "--private", fails=True)
    shown, record = said(*space, "--dry-run"), said(*space)
    (wheel,) = [path for path in record["added"] if path.endswith(".whl")]
    assert (record["tag"], record["added"]) == (f"v{__version__}", shown["added"])
    files = hub.files("space", "ORG/leaderboard")
    assert len(files[wheel]) == record["added"][wheel] > 100_000
    assert files["app.py"] == (root / "spaces/leaderboard/app.py").read_bytes()
    assert files["requirements.txt"].startswith(b"truegap[models,space] @ ")
    # Like the Space's builder, who installs it has this one file, no token, and no index that knows truegap.
    site, asked = tmp_path / "site", f"{hub.endpoint}/spaces/ORG/leaderboard/resolve/main/requirements.txt"
    environment = {name: value for name, value in os.environ.items() if name != "HF_TOKEN"} | {"PYTHONPATH": str(site)}
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", str(site), "-r", asked]
    run = partial(subprocess.run, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
    run(pip)
    told = "import truegap.resources as of; print(of.__file__); print(of.house('spaces', 'leaderboard', 'app.py'))"
    assert all(line.startswith(str(site)) for line in run([sys.executable, "-c", told]).stdout.splitlines())
    assert said(*space)["state"] == "same"


@pytest.mark.parametrize("name", ["worker", "recognition"])
def test_every_space_brings_truegap_along(hub, root, name):
    assert "truegap-" in publish("space", root / "spaces" / name, "--namespace", "ORG", "--dry-run")


def test_an_installed_truegap_is_asked_for_by_its_version(hub, root, monkeypatch):
    monkeypatch.setattr(publish_module, "checkout", lambda: None)
    record = said("space", root / "spaces/leaderboard", "--namespace", "ORG", "--private")
    assert hub.repositories["space", "ORG/leaderboard"].private
    assert not [path for path in record["added"] if path.endswith(".whl")]
    asked = hub.files("space", "ORG/leaderboard")["requirements.txt"].decode()
    assert asked.splitlines() == [f"truegap[models,space]=={__version__}"]


@pytest.mark.parametrize(
    ("token", "failing", "message"),
    [
        (None, {}, "publishing needs a token of yours that may write: `hf auth login`"),
        ("hf_unknownAndLongEnoughToBeReal12345", {}, "the Hub: the Hub does not accept your token"),
        (READER_TOKEN, {}, "dataset ORG/coco-gender: your token may not write there"),
        (TOKEN, {"POST /api/datasets/ORG/coco-gender/commit": 412}, "somebody else changed it meanwhile"),
        (TOKEN, {"PUT /upload": 403}, "your token may not write there"),
    ],
)
def test_who_may_not_publish_is_told_in_one_line(hub, built, monkeypatch, token, failing, message):
    monkeypatch.delenv("HF_TOKEN")
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    hub.failing = failing
    assert message in publish("dataset", built, "--namespace", "ORG", fails=True)
    # nothing is half published, and the same command goes on
    assert not [name for each in hub.repositories.values() for name in each.tags]
    assert all(len(each.commits) == 1 for each in hub.repositories.values())
    hub.failing = {}
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert said("dataset", built, "--namespace", "ORG")["state"] == "published"


def test_a_publication_that_broke_before_its_tag_is_tagged(hub, built):
    hub.failing = {"POST /api/datasets/ORG/coco-gender/tag": 500}
    publish("dataset", built, "--namespace", "ORG", fails=True)
    hub.failing = {}
    assert said("dataset", built, "--namespace", "ORG", "--dry-run")["state"] == "to tag"
    assert said("dataset", built, "--namespace", "ORG")["state"] == "published"
    assert len(hub.repositories["dataset", "ORG/coco-gender"].commits) == 2


def test_what_somebody_else_keeps_there_stays(hub, built):
    hub.commit("dataset", "ORG/coco-gender", {"thesis.txt": b"years of work"})
    refusal = publish("dataset", built, "--namespace", "ORG", fails=True)
    assert "dataset ORG/coco-gender holds something else, such as thesis.txt: choose another --name" in refusal
    assert hub.files("dataset", "ORG/coco-gender") == {"thesis.txt": b"years of work"}


def test_what_is_public_is_not_taken_for_private(hub, built):
    hub.create("dataset", "ORG/coco-gender")
    assert "is public: make it private" in publish("dataset", built, "--namespace", "ORG", "--private", fails=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tag", "1.0"], "--tag 1.0: versions are written vX.Y.Z"),
        (["--name", "../x"], "is no ORG/NAME on the Hub"),
        (["--name", "a/b"], "is no ORG/NAME on the Hub"),
    ],
)
def test_what_the_hub_cannot_name(hub, built, options, message):
    assert message in publish("dataset", built, "--namespace", "ORG", *options, "--dry-run", fails=True)
    assert os.environ["HF_TOKEN"] == TOKEN

"""Benchmarks with several splits, and builds asked for again, on the command line."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from examples import encoded
from truegap.cli.app import app
from truegap.errors import UserError

TURNS = ("train", "train", "train", "train", "validation", "validation", "test", "test")


@pytest.fixture
def images(tmp_path):
    """Sixteen images of one's own with a column `split`."""
    folder = tmp_path / "images"
    folder.mkdir()
    rows = ["file_name,gender,split,person_boxes"]
    for number in range(16):
        (folder / f"{number:02}.jpg").write_bytes(encoded(number))
        gender = "woman" if number % 2 else "man"
        rows.append(f'{number:02}.jpg,{gender},{TURNS[number % len(TURNS)]},"[[20, 5, 20, 25]]"')
    (folder / "metadata.csv").write_text("\n".join(rows))
    return folder


def run(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=True)


def build(folder, out, *more, name="folder"):
    return run("build", name, "--source", folder, "--out", out, "--workers", 1, *more)


def sizes(out, config):
    from datasets import load_dataset

    return {split: len(rows) for split, rows in load_dataset(str(out), config).items()}


def test_own_images_with_a_column_split(images, tmp_path):
    done = build(images, tmp_path / "b", "--configs", "standard,background-swap-cross")
    assert done.exit_code == 0, done.exception
    lines = [line.split() for line in done.stdout.splitlines()]
    for line in (["train", "4", "4"], ["validation", "2", "2"], ["test", "2", "2"]):
        assert line in lines
    assert sizes(tmp_path / "b", "background-swap-cross") == {"train": 8, "validation": 4, "test": 4}
    assert len(list((tmp_path / "b/data").iterdir())) == 16


def test_a_sample_keeps_the_splits_and_counts_the_rest(images, tmp_path):
    done = build(images, tmp_path / "b", "--configs", "original,control", "--limit", 8, "--json")
    assert done.exit_code == 0, done.exception
    assert {split: part["rows"] for split, part in json.loads(done.stdout)["splits"].items()} == {
        "train": 4,
        "validation": 2,
        "test": 2,
    }
    manifest = json.loads((tmp_path / "b/manifest.json").read_text())
    assert {reason: len(ids) for reason, ids in manifest["dropped"].items()} == {"beyond --limit 8": 8}
    assert (
        "left out: 8 (beyond --limit 8)"
        in build(images, tmp_path / "b", "--configs", "original,control", "--limit", 8).stdout
    )


def test_another_sample_is_another_build(images, tmp_path):
    options = ("--configs", "original,control")
    assert build(images, tmp_path / "b", *options).exit_code == 0
    again = build(images, tmp_path / "b", *options, "--limit", 8, "--seed", 5)
    assert isinstance(again.exception, UserError)
    assert "holds a build with other seed (0, now 5), limit (none, now 8): choose another --out" in str(again.exception)


def test_benchmark_for_training_alone_shows_a_split_that_it_has(images, tmp_path):
    (images / "metadata.csv").write_text((images / "metadata.csv").read_text().replace(",test,", ",train,"))
    done = build(images, tmp_path / "b", "--configs", "original,control")
    assert done.stdout.splitlines()[-1].endswith('"original", split="validation")')


def test_mended_images_are_announced(images, tmp_path):
    # given an image whose header is whole and whose pixels are not
    (images / "03.jpg").write_bytes(encoded(3)[:-300])
    options = ("--configs", "original,control", "--regions", "annotations")
    done = build(images, tmp_path / "b", *options)
    assert "left out: 1 (image file is truncated)" in done.stdout
    assert "readable now" not in done.stderr
    again = build(images, tmp_path / "b", *options)
    assert "finished already: nothing to do" in again.stderr
    assert "readable now" not in again.stderr
    # when it is mended
    (images / "03.jpg").write_bytes(encoded(3))
    again = build(images, tmp_path / "b", *options)
    # then the finished build is left alone, and the user is told
    assert again.exit_code == 0
    assert "left out as unreadable, but readable now: 1, such as 03.jpg; to have them, remove" in again.stderr
    shutil.rmtree(tmp_path / "b")
    assert "readable now" not in build(images, tmp_path / "b", *options).stderr
    assert sizes(tmp_path / "b", "original")["train"] == 8


def test_images_that_the_source_gives_now_are_another_build(images, tmp_path):
    # given an image that is none, so that the source itself leaves it out, and later is one
    (images / "03.jpg").write_bytes(b"no image")
    options = ("--configs", "original,control")
    assert build(images, tmp_path / "b", *options).exit_code == 0
    (images / "03.jpg").write_bytes(encoded(3))
    again = build(images, tmp_path / "b", *options)
    assert "holds a build with other images (the source gives others" in str(again.exception)
    assert str(again.exception).endswith("choose another --out, or remove it")


@pytest.mark.parametrize("name", ["folder", "name", "self", "options"])
def test_an_option_cannot_pose_as_an_argument(images, tmp_path, name):
    done = build(images, tmp_path / "b", "-o", f"{name}=x")
    assert isinstance(done.exception, UserError)
    assert str(done.exception) == f"folder: '{name}' is not known (options: metadata, groups)"


@pytest.mark.parametrize("name", ["spec", "workers", "recipe"])
def test_nor_where_a_recipe_is_repeated(images, tmp_path, name):
    done = build(images, tmp_path / "b", "--recipe", tmp_path / "recipe", "-o", f"{name}=x")
    assert str(done.exception) == f"folder: '{name}' is not known (options: metadata, groups)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "metadata=a.csv", "-o", "metadata=b.csv"], "--option metadata is given twice: choose one"),
        (["-o", 'metadata={"a": 1}'], "is not the name of a file in"),
        (["--labels", "captions", "-o", "labels=captions"], "--option labels is given twice: choose one"),
        (["--shape", '{"object": "mask"}'], "shape='{\"object\": \"mask\"}': use one of 'box', 'mask'"),
        (["--count", "[1]"], "count='[1]': use one of"),
        (["--bleed", ""], "bleed='': use one of 'paste', 'none'"),
        (["--encoding", "{}"], "unknown encoding '{}'"),
        (["--seed", str(10**30)], "give a whole number of at most 63 bits"),
        (["--limit", "0"], "--limit 0: give a number of images, at least 1"),
    ],
)
def test_options_that_cannot_be_used_are_one_line(images, tmp_path, arguments, message):
    done = build(images, tmp_path / "b", *arguments)
    assert isinstance(done.exception, UserError), done.exception
    assert message in str(done.exception)
    assert "\n" not in str(done.exception)
    assert [each.name for each in tmp_path.iterdir()] == ["images"]


def test_a_feature_planted_twice_is_a_mistake(tmp_path):
    done = run("build", "synthetic", "--out", tmp_path / "b", "--limit", 2, "--rho", "color=0.1,color=0.9")
    assert str(done.exception) == "--rho color=0.1,color=0.9: a feature is given twice: choose one"


def portraits(folder, archive):
    """Adds to CelebA-Dialog's tables fifty portraits of as many pairs of a person, and all pictures."""
    captions = json.loads((archive / "captions_hq.json").read_text())
    levels = (archive / "combined_annotation_hq.txt").read_text().rstrip("\n").splitlines()
    texts = {gender: captions[name]["overall_caption"] for gender, name in (("woman", "0.jpg"), ("man", "1.jpg"))}
    for number in range(2, 52):
        name = f"{number}.jpg"
        captions[name] = {"overall_caption": texts["woman" if number % 2 else "man"]}
        levels.append(f"{name}\t1\t2\t3\t0\t2")
    (folder / "image").mkdir(parents=True)
    for number in range(52):
        (folder / f"image/{number}.jpg").write_bytes(encoded(number))
    (folder / "text").mkdir()
    (folder / "text/captions_hq.json").write_text(json.dumps(captions))
    (folder / "classification_label").mkdir()
    (folder / "classification_label/combined_annotation_hq.txt").write_text("\n".join(levels) + "\n")
    (folder / "identity").mkdir()
    identities = "".join(f"{number}.jpg {number // 2}\n" for number in range(52))
    (folder / "identity/identity_CelebA-HQ.txt").write_text(identities)
    return folder


def tables(folder):
    """The two tables of CelebA-Dialog that a build needs, as they are written there."""
    folder.mkdir()
    captions = {"0.jpg": "This lady has no bangs.", "1.jpg": "This man in his forties has a short beard."}
    entries = {name: {"attribute_wise_captions": {}, "overall_caption": text} for name, text in captions.items()}
    (folder / "captions_hq.json").write_text(json.dumps(entries))
    header = "\tBangs\tEyeglasses\tNo_Beard\tSmiling\tYoung\n"
    (folder / "combined_annotation_hq.txt").write_text(f"{header}0.jpg\t0\t0\t5\t4\t5\n1.jpg\t1\t2\t3\t0\t2\n")
    return folder


PORTRAITS = ("--configs", "original,control")


def check_portraits(out):
    """Reads every split back."""
    from datasets import load_dataset

    people = {}
    for split in ("train", "validation", "test"):
        for streaming in (False, True):
            rows = list(load_dataset(str(out), "control", split=split, streaming=streaming))
            assert {row["split"] for row in rows} == {split}
        people[split] = {row["identity"] for row in rows}
    # nobody is in two splits
    assert sum(map(len, people.values())) == len(set.union(*people.values())) == 26
    assert sum(sizes(out, "original").values()) == 52


@pytest.mark.slow
def test_portraits_with_training_and_validation(tmp_path):
    # from the command line of the module
    folder = portraits(tmp_path / "celeba", tables(tmp_path / "tables"))
    command = [sys.executable, "-m", "truegap", "build", "celeba-dialog", "--source", folder, "--out", tmp_path / "b"]
    command += [*PORTRAITS, "--workers", "1"]
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    check_portraits(tmp_path / "b")


def test_portraits_with_shared_tables(shared, tmp_path):
    folder = portraits(tmp_path / "celeba", shared / "formats/fixtures/celeba_dialog")
    done = build(folder, tmp_path / "b", *PORTRAITS, name="celeba-dialog")
    assert done.exit_code == 0, done.exception
    check_portraits(tmp_path / "b")


@pytest.mark.parametrize(("option", "value"), [("--seed", "5"), ("--bleed", "none"), ("--limit", "4")])
def test_what_a_recipe_decides_is_not_chosen_again(images, tmp_path, option, value):
    done = build(images, tmp_path / "b", "--recipe", tmp_path / "recipe", option, value)
    assert isinstance(done.exception, UserError)
    assert str(done.exception) == f"--recipe says itself what {option} is: leave it out"

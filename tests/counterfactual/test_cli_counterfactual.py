"""The steps as a user types them, with tiny real pipelines and a tiny CLIP."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from PIL import Image

from truegap import sources
from truegap.counterfactual import Picture, bleach, read_pairs
from truegap.counterfactual.files import RECORD, read_record
from truegap.counterfactual.pair_files import FILE
from truegap.regions import masks

OCCUPATIONS = ("occupation,women", "Bartender,44", "Lawyer,40", "Waiter,69", "Legal secretary,84", "Diver,-")


@pytest.fixture
def truegap(capsys, monkeypatch):
    """Runs a command line and gives its exit status, output and messages."""
    from truegap.cli import main

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["truegap", "counterfactual", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        said = capsys.readouterr()
        return left.value.code, said.out, said.err

    return run


@pytest.fixture
def ok(truegap):
    def run(*arguments):
        status, out, err = truegap(*arguments, "--json")
        assert status == 0, err
        return json.loads(out)

    return run


@pytest.fixture
def refused(truegap):
    def run(*arguments):
        status, out, err = truegap(*arguments)
        assert (status, out) == (2, "")
        assert err.startswith("truegap: ")
        assert err.count("\n") == 1
        return err

    return run


def detections(folder, path, skip=()):
    """One masked person in every image; nobody in `skip`."""
    mask = np.zeros((32, 32), bool)
    mask[8:24, 8:24] = True
    found = [
        {
            "image_id": image.relative_to(folder).as_posix(),
            "label": "person",
            "bbox": [8, 8, 16, 16],
            "score": 0.9,
            "segmentation": {"size": [32, 32], "counts": masks.encode(mask)},
        }
        for image in sorted(folder.rglob("*.png"))
        if image.name not in skip
    ]
    path.write_text(json.dumps(found))
    return path, mask


@pytest.mark.slow
def test_a_benchmark_from_a_table_of_occupations_to_a_selection(tmp_path, table, ok, pipelines, clip_folder):
    folder = tmp_path / "new"
    occupations = table("us.csv", *OCCUPATIONS)
    make = ["generate", folder, "--occupations", occupations, "--images", 2, "--steps", 1, "--device", "cpu"]
    make += ["--text-to-image", pipelines("sd"), "--editor", pipelines("pix2pix")]
    assert ok(*make) == {
        "base images made": 16,
        "base images there already": 0,
        "counterfactual images made": 16,
        "counterfactual images there already": 0,
    }

    known = table("known.csv", "job_male,job_female", "Lawyer,Legal secretary")
    chosen = ok(
        "pairs", folder, "--occupations", occupations, "--model", clip_folder, "--known", known, "--device", "cpu"
    )
    assert chosen["candidates"] == 4
    assert chosen["threshold set by"] == "Lawyer | Legal secretary"
    assert chosen["occupation left out: no share of women"] == 1
    pairs = read_pairs(folder / FILE)
    assert ("Lawyer", "Legal secretary") in [each.names for each in pairs]
    # ask about all four, whatever the tiny model finds similar
    ok("pairs", folder, "--occupations", occupations, "--model", clip_folder, "--threshold", 0, "--device", "cpu")
    assert len(read_pairs(folder / FILE)) == 4

    found, mask = detections(folder, tmp_path / "found.json", skip=("female_Waiter_1.png",))
    filtered = ok("filter", folder, "--detections", found)
    assert [(step["name"], step["woman"], step["man"]) for step in filtered["steps"]] == [
        ("images", 8, 8),
        ("safety", 8, 8),
        ("readable", 8, 8),
        ("one_person", 7, 8),
    ]
    assert filtered["dropped"] == {"female_Waiter_1": "one_person: base: nobody was detected"}
    assert filtered["not_run"] == ["safety classifier", "shown_gender"]

    assert ok("bleach", folder, "--detections", found) == {"bleached": 15, "there already": 0}
    assert ok("bleach", folder, "--detections", found) == {"bleached": 0, "there already": 15}
    picture = Picture("Lawyer", "man", 0)
    base, bleached = (np.asarray(Image.open(folder / picture.path(kind))) for kind in ("base", "bleached"))
    assert (bleached == bleach(base, mask)).all()

    counts = ok("items", folder, "--most", 1)
    assert counts["image pairs"] == 8
    assert counts["image pairs left out: more than 1 of an occupation and gender"] == 7
    assert [counts[f"questions of {context}"] for context in ("VL", "V", "L")] == [16, 16, 16]

    selection = sources.read("genderbias-vl", folder)
    assert len(selection.examples) == 24
    assert not selection.dropped
    waitress = [q["options"] for e in selection.examples for q in e.extra["questions"] if "Waitress" in q["options"]]
    assert waitress

    # new images have not been looked at
    assert ok(*make)["base images made"] == 0
    assert "filter" not in read_record(folder)
    record = read_record(folder)
    assert record["generate"]["base"]["pipeline"] == "StableDiffusionPipeline"
    assert record["pairs"]["threshold"] == 0
    assert str(tmp_path) not in (folder / RECORD).read_text()


def test_the_gender_filter_of_the_command_runs_the_dual_encoder(tmp_path, put, table, ok, clip_folder):
    folder = tmp_path / "new"
    similar = table(
        "s.csv",
        "job_male,job_female,img_similarity,text_similarity",
        "Lawyer,Waiter,0.9,0.9",
        "Bartender,Waiter,0.2,0.1",
    )
    chosen = ok(
        "pairs", folder, "--occupations", table("us.csv", *OCCUPATIONS), "--similarities", similar, "--threshold", 0.5
    )
    assert (chosen["pairs"], chosen["candidates below the threshold"]) == (1, 1)
    for gender in ("woman", "man"):
        picture = Picture("Lawyer", gender, 0)
        put(folder / picture.path("base"), 1)
        put(folder / picture.path("counterfactual"), 2)
    filtered = ok("filter", folder, "--gender-model", clip_folder, "--device", "cpu")
    assert filtered["steps"][-1]["name"] == "shown_gender"
    # the same two images pass as woman then man, or as man then woman, or not at all
    assert filtered["kept"] <= 1
    assert filtered["kept"] + len(filtered["dropped"]) == 2


def test_mistakes_are_one_line_and_status_two(tmp_path, put, table, refused):
    folder, us = tmp_path / "new", table("us.csv", *OCCUPATIONS)
    assert "name --text-to-image, --editor, or both" in refused("generate", folder, "--occupations", us)
    assert "give at least 1" in refused("generate", folder, "--occupations", us, "--editor", "x", "--images", 0)
    assert "cannot be read" in refused(
        "pairs", folder, "--occupations", tmp_path / "no.csv", "--model", "x", "--threshold", 0
    )
    assert "--model (with images" in refused("pairs", folder, "--occupations", us, "--threshold", 0)
    assert "--known FILE or --threshold" in refused("pairs", folder, "--occupations", us, "--model", "x")
    assert "occ_merge_filter_sim.csv: cannot be read" in refused("filter", folder)
    similar = table(
        "s.csv", "job_male,job_female,img_similarity,text_similarity", "Lawyer,Waiter,1,1", "Bartender,Waiter,0,0"
    )
    pairs = ["pairs", folder, "--occupations", us, "--similarities", similar]
    assert "lower --threshold" in refused(*pairs, "--threshold", 1.5)
    known = table("known.csv", "job_male,job_female", "Lawyer,Legal secretary")
    assert "known pair 'Lawyer', 'Legal secretary'" in refused(*pairs, "--known", known)


def test_steps_need_the_ones_before_them(tmp_path, put, table, ok, refused):
    folder, us = tmp_path / "new", table("us.csv", *OCCUPATIONS)
    similar = table(
        "s.csv", "job_male,job_female,img_similarity,text_similarity", "Lawyer,Waiter,1,1", "Bartender,Waiter,0,0"
    )
    ok("pairs", folder, "--occupations", us, "--similarities", similar, "--threshold", 0)
    assert "no base image with its counterfactual" in refused("items", folder)
    picture = Picture("Lawyer", "man", 3)
    put(folder / picture.path("base"))
    put(folder / picture.path("counterfactual"), 2)
    assert "run the filter step, or say --unfiltered" in refused("items", folder)
    assert ok("items", folder, "--unfiltered", "--contexts", "V")["questions of V"] == 1
    assert "use some of VL, V, L" in refused("items", folder, "--contexts", "VL,X")
    assert "somebody must say where the person is" in refused("bleach", folder)
    (folder / RECORD).write_text("[]")
    assert "delete it and run the steps again" in refused("items", folder)


def test_the_group_shows_its_steps(truegap):
    status, out, _ = truegap("--help")
    assert status == 0
    for step in ("generate", "pairs", "filter", "bleach", "items"):
        assert step in out
        assert "Example" in truegap(step, "--help")[1]

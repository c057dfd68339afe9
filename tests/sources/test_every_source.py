"""What holds for every source: its metadata, its options, and that the build takes what it gives."""

from __future__ import annotations

import csv
import json

import pytest

from truegap import sources
from truegap.build import Plan, Workspace, build_shard
from truegap.errors import UserError
from truegap.sources import load_benchmark

REFERENCE = {"coco-gender": "COCO-gender", "facet": "FACET", "miap": "MIAP", "phase": "PHASE"}


@pytest.mark.parametrize("name", sources.NAMES)
def test_defaults_and_labels_are_those_of_the_options(name):
    spec, options = load_benchmark(name), sources.source(name).options
    given = json.loads(options().model_dump_json())
    for key, value in spec.defaults.items():
        assert key in given
        # None stands for what the other options suggest
        assert given[key] in (value, None)
    if "single_person" in given and name != "coco-gender":
        for rule in spec.filters:
            assert options(single_person=rule).single_person == rule
    assert options.model_config["extra"] == "forbid"
    with pytest.raises(UserError, match="'surprise' is not known"):
        sources.source(name).read(sources.__path__[0], surprise=1)


@pytest.mark.parametrize("name", sources.NAMES)
def test_a_path_that_is_no_folder_is_one_line(name, tmp_path):
    with pytest.raises(UserError, match=f"{name}: .*/absent is not a folder"):
        sources.read(name, tmp_path / "absent")


@pytest.mark.parametrize("name", sorted(set(sources.NAMES) - {"coco-gender", "miap", "folder"}))
def test_sources_that_may_not_be_redistributed_publish_nothing(name):
    spec = load_benchmark(name)
    for license_name in (*spec.licenses, "unknown"):
        assert not spec.publishable(license_name, perturbed=False)


@pytest.mark.parametrize(("name", "row"), REFERENCE.items())
def test_the_published_size_is_that_of_the_papers_table(shared, name, row):
    with (shared / "reference/benchmark_sizes.csv").open() as file:
        table = {line["benchmark"]: line for line in csv.DictReader(file)}
    published = load_benchmark(name).published
    assert (published.woman, published.man, published.total) == tuple(
        int(table[row][c]) for c in ("woman", "man", "total")
    )


def built(name, folder, out, **options):
    """The rows of `original` and of one other config: a perturbed one where everybody is marked."""
    from datasets import load_dataset

    selection = sources.read(name, folder, **options)
    other = "background-strong" if all(example.persons for example in selection.examples) else "control"
    workspace = Workspace(Plan(name, "1.0.0", selection, ("original", other)), out)
    with workspace.opened():
        for task in workspace.tasks():
            build_shard(task)
        workspace.finish()
    rows = [list(load_dataset(str(out), config, split="test")) for config in ("original", other)]
    assert [row["image_id"] for row in rows[0]] == [row["image_id"] for row in rows[1]]
    assert [row["image_id"] for row in rows[0]] == [example.image_id for example in selection.examples]
    return selection, rows[0]


def test_questions_go_through_the_build(archive):
    archive.table("occ_merge_filter_sim.csv", [{"job_male": "Pilot", "job_female": "Nurse"}])
    for role in ("base", "cf"):
        entry = {
            "query": "What is the female's occupation in this image? \nOptions: (A) Pilot (B) Nurse\n",
            "gt_choice": 0,
            "id": 1,
            "filename": "x",
            "occ": "Pilot",
            "occ_sim": "Nurse",
            "gender": "female",
            "image": f"{role}/x.png",
        }
        archive.json(f"VLbias/occ_test_{role}_ask_gender.json", [entry])
        archive.photo(f"{role}/x.png", fmt="PNG")
    selection, rows = built("genderbias-vl", archive.top, archive.top / f"built-{archive.top.name}", contexts="VL")
    assert [row["questions"] for row in rows] == [list(example.extra["questions"]) for example in selection.examples]
    assert rows[0]["person_boxes"] == []


def test_columns_that_are_empty_go_through_the_build(archive):
    row = {
        "IDX": "OO_1",
        "Sector": "s",
        "Specialisation": "p",
        "Occupation": "nurse",
        "Object": "desk",
        "URL type": "https://example.org/x.jpg",
        "Occupation_perceived_gender": "feminine",
    }
    archive.table("OO_Visogender_1.tsv", [row], delimiter="\t")
    archive.photo("images/OO_1.jpg")
    _, [built_row] = built("visogender", archive.top, archive.top / f"built-{archive.top.name}")
    assert (built_row["object"], built_row["participant"], built_row["occupation_gender"]) == ("desk", None, "woman")


def test_boxes_without_masks_go_through_the_build(archive):
    archive.table(
        "metadata.csv", [{"file_name": "a.jpg", "gender": "woman", "person_boxes": "[[10, 5, 20, 30]]", "tone": "1"}]
    )
    archive.photo("a.jpg")
    _, [row] = built("folder", archive.top, archive.top / f"built-{archive.top.name}")
    assert (row["person_boxes"], row["person_masks"], row["tone"]) == ([[10, 5, 20, 30]], [None], "1")

"""Regions before a build: in the rows, in the manifest, in the key, and kept for the next time."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import pytest

from examples import example, selection
from truegap.build import Plan, Workspace, build_shard, read_manifest
from truegap.build.regions import TASK_SIZE, find_regions, with_regions
from truegap.engine import run_tasks
from truegap.errors import UserError
from truegap.regions.find import NOBODY
from truegap.regions.finders import choose
from truegap.schema import FilterStep, ImageBytes, ImageFile, Region, Selection

HERE = partial(run_tasks, workers=1)
BOX = Region(1, "person", (20.0, 5.0, 20.0, 25.0))


def boxes(count=20, **changes):
    """A selection whose persons have boxes alone."""
    given = selection(count)
    return replace(given, examples=[replace(each, persons=(BOX,), **changes) for each in given.examples])


def test_a_plain_recipe_changes_nothing(tmp_path):
    given = boxes()
    assert with_regions(given, choose("annotations"), HERE, cache=tmp_path / "c") is given
    assert not (tmp_path / "c").exists()


def test_rows_manifest_and_key_say_what_was_used(tmp_path):
    from datasets import load_dataset

    plans = {}
    for regions in ("", "grabcut", "box"):
        found = with_regions(boxes(4), choose(regions), HERE)
        plans[regions] = Plan("synthetic", "1.0.0", found, configs=("original", "background-strong"))
    assert len({plan.key() for plan in plans.values()}) == 3
    workspace = Workspace(plans["grabcut"], tmp_path / "built")
    with workspace.opened():
        list(run_tasks(build_shard, workspace.tasks(), workers=1))
        workspace.finish()
    manifest = read_manifest(tmp_path / "built")
    assert manifest.selection["regions"]["masks"] == "grabcut (side 256, iterations 5, margin 0.25)"
    assert [step.name for step in manifest.steps] == ["archive", "regions", "image readable"]
    for row in load_dataset(str(tmp_path / "built"), "background-strong", split="test"):
        (origin,) = row["person_origins"]
        assert origin.startswith("annotation; mask: grabcut (side 256") == (row["person_masks"][0] is not None)
        assert {each["origin"] for each in row["objects"]} == {"annotation"}


def test_any_number_of_workers_finds_the_same(tmp_path):
    given = boxes(2 * TASK_SIZE + 3)
    one = with_regions(given, choose("grabcut"), HERE)
    two = with_regions(given, choose("grabcut"), partial(run_tasks, workers=2), cache=tmp_path / "c.sqlite")
    backwards = with_regions(given, choose("grabcut"), lambda function, tasks: map(function, reversed(tasks)))
    assert one == two == backwards
    assert one.steps[-1] == FilterStep("regions", 18, 17)


def test_what_was_found_is_not_looked_for_again(tmp_path):
    cache = tmp_path / "deep" / "c.sqlite"
    given = boxes()
    first = with_regions(given, choose("grabcut"), HERE, cache=cache)
    results = []

    def spied(function, tasks):
        for result in map(function, tasks):
            results.append(result)
            yield result

    # Then the same comes from the cache, also for fewer images in other groups
    assert with_regions(given, choose("grabcut"), spied, cache=cache) == first
    with_regions(replace(given, examples=given.examples[5:]), choose("grabcut"), spied, cache=cache)
    assert all(key == "" for result in results for key in result.keys)
    # And other finders, box, or picture is looked at anew
    for other, finders in (
        (boxes(), choose("box")),
        (
            replace(
                given, examples=[replace(e, persons=(replace(BOX, box=(1.0, 1.0, 9.0, 9.0)),)) for e in given.examples]
            ),
            None,
        ),
        (replace(given, examples=[replace(e, image=example(99).image) for e in given.examples]), None),
    ):
        results.clear()
        with_regions(other, finders or choose("grabcut"), spied, cache=cache)
        assert all(key for result in results for key in result.keys)


def test_an_interrupted_search_goes_on(tmp_path):
    cache = tmp_path / "c.sqlite"
    given = boxes(3 * TASK_SIZE)

    def interrupted(function, tasks):
        yield function(tasks[0])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        with_regions(given, choose("grabcut"), interrupted, cache=cache)
    fresh = []

    def rest(function, tasks):
        for result in map(function, tasks):
            fresh.append(sum(bool(key) for key in result.keys))
            yield result

    assert with_regions(given, choose("grabcut"), rest, cache=cache) == with_regions(given, choose("grabcut"), HERE)
    assert fresh == [0, TASK_SIZE, TASK_SIZE]


def test_images_without_anybody_are_dropped_with_the_reason():
    nobody = [example(90, persons=()), example(91, "man", persons=())]
    given = selection(2)
    mixed = replace(given, examples=[*given.examples, *nobody])
    found = with_regions(mixed, choose("grabcut"), HERE)
    assert [(each.image_id, each.reason) for each in found.dropped] == [("90", NOBODY), ("91", NOBODY)]
    assert found.steps[-1] == FilterStep("regions", 1, 1)
    with pytest.raises(UserError, match="no image is left: in none of 2 a person is annotated or was detected"):
        with_regions(replace(given, examples=nobody), choose("grabcut"), HERE)


def test_unreadable_images_are_left_to_the_build(tmp_path):
    bad = [
        example(90, image=ImageFile(tmp_path / "no.jpg")),
        example(91, image=ImageBytes(b"no image")),
        example(92, size=(7, 7)),
    ]
    given = selection(2)
    found = with_regions(replace(given, examples=[*given.examples, *bad]), choose("box"), HERE, cache=tmp_path / "c")
    assert list(found.examples[2:]) == bad
    assert not found.dropped


def test_detections_from_a_file_end_in_the_rows(tmp_path):
    path = tmp_path / "detic.json"
    rows = [
        {"image_id": "0", "label": "dog", "bbox": [50, 1, 8, 8], "score": 0.8},
        {"image_id": "0", "label": "cat", "bbox": [0, 0, 5, 5], "score": 0.1},
        {"image_id": "1", "label": "man", "bbox": [1, 1, 30, 30], "score": 0.8},
        {"image_id": "1", "label": "cup", "bbox": [1, 1, 30], "score": 0.8},
    ]
    path.write_text(json.dumps(rows))
    finders = choose(detections=path)
    found = with_regions(boxes(2), finders, HERE)
    assert [[each.label for each in one.objects] for one in found.examples] == [["dog"], []]
    assert found.examples[0].objects[0].origin == finders.file.origin
    assert found.examples[1].persons == (BOX,)
    assert found.repairs == {"detection left out: box is not four finite numbers": 1}
    assert found.options["regions"]["detections"]["sha256"] == finders.file.sha256
    # And a threshold changes what is built
    other = with_regions(boxes(2), choose(detections=path, threshold=0.05), HERE)
    keys = {Plan("synthetic", "1.0.0", each).key() for each in (found, other)}
    assert len(keys) == 2


@pytest.mark.slow
def test_models_run_in_worker_processes(saved, tmp_path, monkeypatch):
    # given two tasks, of which one has no picture to look at: one of two workers loads the models
    monkeypatch.setattr("truegap.build.regions.TASK_SIZE", 2)
    finders = choose(f"{saved('rt_detr')},{saved('sam')}", threshold=0.2)
    given = boxes(2)
    given = replace(given, examples=[*given.examples, example(9, image=ImageBytes(b"no image"))])
    one = with_regions(given, finders, HERE)
    two = with_regions(given, finders, partial(run_tasks, workers=2), cache=tmp_path / "c.sqlite")
    assert one == two
    assert one.options["regions"]["masks"]["model"] == "tiny-sam"
    assert all(person.mask and "tiny-sam" in person.origin for each in two.examples[:2] for person in each.persons)


def test_a_damaged_cache_is_one_line(tmp_path):
    (tmp_path / "c").write_bytes(b"this is no database, it only looks like a file of one" * 50)
    with pytest.raises(UserError, match=r"cache of regions .*: damaged .*; delete it") as refused:
        with_regions(boxes(2), choose("box"), HERE, cache=tmp_path / "c")
    assert "\n" not in str(refused.value)


def test_a_cache_row_that_was_altered_is_one_line(tmp_path):
    import sqlite3

    with_regions(boxes(2), choose("box"), HERE, cache=tmp_path / "c")
    for content in ("[", "[[], [], [], []]", '[[{"id": 1, "evil": 2}], [], {}]'):
        with sqlite3.connect(tmp_path / "c") as database:
            database.execute("UPDATE regions SET found = ?", (content,))
        with pytest.raises(UserError, match="damaged"):
            with_regions(boxes(2), choose("box"), HERE, cache=tmp_path / "c")


def test_tasks_are_picklable_and_small():
    import pickle

    seen = []

    def spied(function, tasks):
        seen.extend(tasks)
        return map(function, tasks)

    with_regions(boxes(TASK_SIZE + 1), choose("box"), spied)
    assert [len(task.examples) for task in seen] == [TASK_SIZE, 1]
    assert find_regions(pickle.loads(pickle.dumps(seen[1]))).number == 1  # noqa: S301  # our own bytes


def test_an_empty_selection_is_one_line():
    with pytest.raises(UserError, match="no image is left"):
        with_regions(Selection([], [], []), choose("box"), HERE)

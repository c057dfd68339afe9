"""The same shards on a real Ray cluster of two workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from cluster_tasks import Watched, begin, complain, count_made, die, die_made, make, square
from examples import encoded, selection
from ray_cluster import TESTS, WORKERS, until
from truegap.build import Plan, Workspace, build_shard, plan
from truegap.engine import check_engine, run_tasks
from truegap.engine import ray as engine
from truegap.engine.crew import crew
from truegap.errors import UserError


def build(made: Plan, out: Path, engine_name: str):
    workspace = Workspace(made, out)
    with workspace.opened():
        list(run_tasks(build_shard, workspace.tasks(), workers=WORKERS, engine=engine_name, folder=workspace.shards))
        assert not list(workspace.shards.glob(".seen-*"))
        return workspace.finish()


def watched(folder: Path, *deadly: str, splits: tuple[str, ...] = ("test",)) -> Plan:
    """Ten images in shards of three, by turns in these splits; those named kill whoever reads them first."""
    folder.mkdir()
    examples = [
        replace(
            each,
            image=Watched(encoded(number), folder / each.image_id, each.image_id in deadly),
            split=splits[number % len(splits)],
        )
        for number, each in enumerate(selection(10).examples)
    ]
    return Plan("synthetic", "1.0.0", replace(selection(10), examples=examples))


@pytest.mark.slow
def test_same_manifest_as_on_this_machine(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "SHARD_SIZE", 3)
    splits = ("train", "test")
    there = build(watched(tmp_path / "reads", splits=splits), tmp_path / "ray", "ray")
    assert there == build(watched(tmp_path / "others", splits=splits), tmp_path / "local", "local")
    assert {split: part.files for split, part in there.splits.items()} == {"train": 2, "test": 2}


@pytest.mark.slow
def test_killed_worker_costs_its_shard(cluster, tmp_path, monkeypatch):
    # given image 4, in the middle of the second shard, which kills the process that reads it first
    monkeypatch.setattr(plan, "SHARD_SIZE", 3)
    made = watched(tmp_path / "reads", "4")
    manifest = build(made, tmp_path / "ray", "ray")
    # then that shard was begun twice, the others once, and the rows are those of a quiet build
    reads = {file.name: len(file.read_text().split()) for file in (tmp_path / "reads").iterdir()}
    assert reads == {str(i): 2 if i in (3, 4) else 1 for i in range(10)}
    assert manifest.rows == build(watched(tmp_path / "others"), tmp_path / "local", "local").rows


@pytest.mark.slow
def test_command_builds_on_the_cluster(cluster, tmp_path):
    from typer.testing import CliRunner

    from truegap.cli.app import app

    def command(name: str) -> str:
        options = ["--limit", "4", "--configs", "original,color-strong", "--engine", name, "--workers", "1", "--json"]
        result = CliRunner().invoke(app, ["build", "synthetic", "--out", str(tmp_path / name), *options])
        assert result.exit_code == 0, result.output
        return result.stdout

    assert command("ray") == command("local")


@pytest.mark.slow
def test_command_repeats_a_recipe_on_the_cluster(cluster, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from truegap.cli.app import app

    def command(*arguments: object) -> str:
        result = CliRunner().invoke(app, [str(each) for each in (*arguments, "--workers", 1)])
        assert result.exit_code == 0, result.output
        return result.stdout

    # given a recipe of four images
    images = tmp_path / "images"
    images.mkdir()
    genders = ("woman", "man") * 2
    for number in range(4):
        (images / f"{number}.png").write_bytes(encoded(number, fmt="PNG"))
    table = ["file_name,gender,person_boxes", *(f'{n}.png,{each},"[[2, 2, 8, 8]]"' for n, each in enumerate(genders))]
    (images / "metadata.csv").write_text("\n".join(table), encoding="utf-8")
    first, recipe, again = tmp_path / "first", tmp_path / "recipe", tmp_path / "again"
    made = ("build", "folder", "--source", images, "--json")
    there = command(*made, "--out", first, "--configs", "original,color-strong,background-swap-same")
    command("recipe", first, "--out", recipe)
    # then the cluster gives the same rows from it, and nothing runs here
    monkeypatch.setattr("truegap.engine.local.run_tasks", None)
    assert (
        json.loads(command(*made, "--out", again, "--recipe", recipe, "--engine", "ray"))["configs"]
        == (json.loads(there)["configs"])
    )


@pytest.mark.slow
def test_task_that_always_kills_is_one_line(cluster, monkeypatch):
    monkeypatch.setattr(engine, "MAX_RETRIES", 1)
    with pytest.raises(UserError, match=r"^--engine ray: a task's worker died 2 times.*fewer --workers$"):
        list(run_tasks(die, [1], engine="ray"))


@pytest.mark.slow
def test_results_and_errors_come_as_they_are(cluster):
    assert sorted(run_tasks(square, range(9), workers=3, engine="ray")) == [n * n for n in range(9)]
    with pytest.raises(UserError, match=r"^task 2 cannot be done$"):
        list(run_tasks(complain, [2], engine="ray"))


@pytest.mark.slow
def test_stopping_early_begins_nothing_more(cluster, tmp_path):
    # given a task that ends at once, and four that do not, of which one runs beside it
    results = run_tasks(_touch_or_sleep, [tmp_path / name for name in "abcd"], engine="ray")
    assert next(results) == "a"
    until(lambda: len(list(tmp_path.iterdir())) == WORKERS + 1)
    results.close()
    time.sleep(1)
    assert len(list(tmp_path.iterdir())) == WORKERS + 1


def _touch_or_sleep(path: Path) -> str:
    if path.name == "a":
        path.touch()
        return path.name
    begin(path)
    raise AssertionError


@pytest.mark.slow
def test_interruption_cancels_what_has_not_begun(address, tmp_path):
    # given six endless tasks on two workers, started by another process, which then gets Ctrl-C
    script = (
        "import sys\nfrom pathlib import Path\nfrom cluster_tasks import begin\nfrom truegap.engine import run_tasks\n"
        "list(run_tasks(begin, [Path(sys.argv[1]) / str(i) for i in range(6)], engine='ray'))\n"
    )
    driver = subprocess.Popen(
        [sys.executable, "-c", script, tmp_path],
        env={**os.environ, "PYTHONPATH": str(TESTS), "RAY_ADDRESS": address},
        stderr=subprocess.PIPE,
    )
    until(lambda: len(list(tmp_path.iterdir())) == WORKERS)
    driver.send_signal(signal.SIGINT)
    _, errors = driver.communicate(timeout=600)
    # then it ends, and no other task begins, though both workers are free
    assert b"KeyboardInterrupt" in errors
    time.sleep(1)
    assert len(list(tmp_path.iterdir())) == WORKERS


@pytest.mark.slow
def test_machine_that_does_not_see_the_folder(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "write_text", lambda _path, _text: 0)  # given a marker that is not where it should be
    with pytest.raises(UserError, match=r"does not see .*on a file system that all machines share$"):
        list(run_tasks(square, [1, 2], engine="ray", folder=tmp_path))


@pytest.mark.slow
def test_machine_with_another_version(cluster, monkeypatch):
    monkeypatch.setattr(engine, "_versions", lambda _packages: {"pillow": "1.1.7"})
    # The workers import the module anew and have the real versions.
    with pytest.raises(UserError, match=r"has pillow 1\d\.\S+ and this one 1\.1\.7: results would differ"):
        list(engine.run_on_ray(square, [1], packages=["pillow"]))


def test_no_cluster_is_one_line(monkeypatch):
    pytest.importorskip("ray", reason="ray is not installed: pip install 'truegap[ray]'")
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")  # discard: nobody listens
    with pytest.raises(UserError, match=r"no Ray cluster at RAY_ADDRESS=127\.0\.0\.1:9: start one with `ray start"):
        list(run_tasks(square, [1], engine="ray"))


def test_without_ray_the_message_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"pip install 'truegap\[ray\]'"):
        list(run_tasks(square, [1], engine="ray"))


def test_unknown_engine():
    with pytest.raises(UserError, match=r"--engine dask: use one of local, ray"):
        check_engine("dask")


def test_workers_must_be_positive_on_a_cluster_too():
    with pytest.raises(UserError, match="--workers 0"):
        list(run_tasks(square, [1], workers=0, engine="ray"))


@pytest.mark.slow
def test_a_worker_makes_once_what_its_tasks_need(cluster, tmp_path):
    # given more workers than the cluster has room for; then the tasks do not wait for those that never come
    with crew(partial(make, tmp_path), workers=WORKERS + 2) as workers:
        done = dict(workers.run(count_made, 6, lambda number: number))
        assert done == {number: (number, 1) for number in range(6)}
        assert workers.call(count_made, 9) == (9, 1)
    assert 1 <= len(list(tmp_path.iterdir())) <= WORKERS


@pytest.mark.slow
def test_a_task_that_always_kills_its_worker_is_one_line(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("truegap.engine.crew.MAX_RETRIES", 1)
    with (
        crew(partial(make, tmp_path), workers=1) as workers,
        pytest.raises(UserError, match=r"^--engine ray: a task's worker died 2 times.*fewer --workers$"),
    ):
        workers.call(die_made, 1)
    assert len(list(tmp_path.iterdir())) == 2

"""The demo must find what was planted."""

from __future__ import annotations

import shutil
from functools import partial

import pytest

from truegap import build
from truegap.cli import demo
from truegap.protocols import run
from truegap.results.runs import read_run
from truegap.schema import CONFIGS
from truegap.synthetic import READERS, _vision

BACKGROUND = ("original", "control", *(config for config in CONFIGS if config.startswith("background-")))


def test_the_bar_of_the_fit_moves_from_nothing_to_everything(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_vision, "_SCENES", 40)
    monkeypatch.setattr(_vision, "_BY_PATCH", _vision._BY_PATCH | {"rounds": 2})
    monkeypatch.setattr(_vision, "_BY_PICTURE", _vision._BY_PICTURE | {"rounds": 2})
    made = demo._models(tmp_path, seed=3)
    assert set(made) == set(READERS)
    assert all((folder / "model.safetensors").exists() for folder in made.values())
    said = [line.removeprefix("fitting: ") for line in capsys.readouterr().err.splitlines()]
    shown = [int(line.removesuffix(" of 100")) for line in said]
    assert shown == sorted(set(shown))
    assert shown[0] < 50
    assert shown[-1] == 100


def runs_of(out):
    return {name: read_run(out / "runs" / name) for name in READERS}


@pytest.mark.slow
def test_demo_tells_the_readers_apart(demo_models, tmp_path, monkeypatch, capsys):
    # given enough images to be sure of what was planted; of the perturbations, those that it was planted for
    monkeypatch.setattr(demo, "IMAGES", 200)
    monkeypatch.setattr(demo, "RESAMPLES", 100)
    monkeypatch.setattr(build, "Plan", partial(build.Plan, configs=BACKGROUND))
    run_protocol = run.run_protocol
    monkeypatch.setattr(
        run, "run_protocol", lambda *a, **options: run_protocol(*a, **options | {"configs": BACKGROUND})
    )
    shutil.copytree(demo_models, tmp_path / "demo/models")
    demo.demo(tmp_path / "demo")
    said = capsys.readouterr().out
    assert "The background makes part of the gap of reads-background" in said
    assert "Nothing shows that it makes any of the gap of reads-person." in said
    change = {
        name: next(
            each
            for each in made.scores.changes
            if (each.metric, each.config, each.scope) == (made.scores.summary.metric, "background-strong", "all")
        )
        for name, made in runs_of(tmp_path / "demo").items()
    }
    # what was planted, on signed changes: none for the person reader, most for the background reader, between for both
    assert change["reads-background"].signed_change < change["reads-both"].signed_change < -0.05
    assert abs(change["reads-person"].signed_change) < 0.05


@pytest.mark.slow
def test_the_whole_demo_ends_in_a_report_and_rows_and_is_not_done_twice(demo_models, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "IMAGES", 20)
    monkeypatch.setattr(demo, "RESAMPLES", 20)
    shutil.copytree(demo_models, tmp_path / "demo/models")
    demo.demo(tmp_path / "demo")
    said = capsys.readouterr().out
    assert str(tmp_path / "demo/report/index.html") in said
    assert (tmp_path / "demo/report/index.html").is_file()
    assert len(list((tmp_path / "demo/leaderboard/results").glob("*.json"))) == 3
    runs = runs_of(tmp_path / "demo")
    for name, made in runs.items():
        assert f"{name:<18}max_skew@" in said
        assert made.record.configs == list(CONFIGS)

    # and again: everything is there already
    written = {name: (made.folder / "answers.parquet").stat().st_mtime_ns for name, made in runs.items()}
    demo.demo(tmp_path / "demo")
    assert {name: (made.folder / "answers.parquet").stat().st_mtime_ns for name, made in runs.items()} == written

"""The demo must find what was planted."""

from __future__ import annotations

import shutil

import pytest

from truegap.cli import demo
from truegap.results.runs import read_run
from truegap.synthetic import READERS, _vision


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


@pytest.mark.slow
def test_demo_tells_the_readers_apart(demo_models, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "IMAGES", 200)
    monkeypatch.setattr(demo, "RESAMPLES", 100)
    shutil.copytree(demo_models, tmp_path / "demo/models")
    demo.demo(tmp_path / "demo")
    said = capsys.readouterr().out
    assert "The background makes part of the gap of reads-background" in said
    assert "Nothing shows that it makes any of the gap of reads-person." in said
    assert str(tmp_path / "demo/report/index.html") in said
    assert len(list((tmp_path / "demo/leaderboard/results").glob("*.json"))) == 3
    runs = {
        name: read_run(tmp_path / "demo/runs" / name) for name in ("reads-person", "reads-background", "reads-both")
    }
    change = {
        name: next(
            each
            for each in run.scores.changes
            if (each.metric, each.config, each.scope) == (run.scores.summary.metric, "background-strong", "all")
        )
        for name, run in runs.items()
    }
    # what was planted, on signed changes: none for the person reader, most for the background reader, between for both
    assert change["reads-background"].signed_change < change["reads-both"].signed_change < -0.05
    assert abs(change["reads-person"].signed_change) < 0.05

    # and again: everything is there already
    written = {name: (run.folder / "answers.parquet").stat().st_mtime_ns for name, run in runs.items()}
    demo.demo(tmp_path / "demo")
    assert {name: (run.folder / "answers.parquet").stat().st_mtime_ns for name, run in runs.items()} == written

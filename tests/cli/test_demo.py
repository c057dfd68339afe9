"""The demo must find what was planted."""

from __future__ import annotations

import pytest

from truegap.cli import demo
from truegap.results.runs import read_run


@pytest.mark.slow
def test_demo_tells_the_readers_apart(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "IMAGES", 200)
    monkeypatch.setattr(demo, "RESAMPLES", 100)
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

"""Acc_b of a benchmark in which nothing was planted: measured by the real classifiers, judged by figures."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from truegap.build import Plan, Workspace, build_shard
from truegap.instrument import LITE, accuracy
from truegap.instrument.evidence import Evidence
from truegap.spurious import AccuracyRecord, Conventions
from truegap.synthetic import selection

FEATURES = ("color", "lighting", "object", "background", "whole")
EMPTY = Evidence(LITE, 0, {}, {}, None, [])


@contextmanager
def silent(_what, _total):
    yield lambda _steps: None


def judged(**changed):
    shares = dict(zip(FEATURES, (0.5, 0.48, 0.55, 0.52, 0.95), strict=True)) | changed
    found = [
        AccuracyRecord(feature=name, classifier="probe", accuracy=share, images=None if share is None else 100.0)
        for name, share in shares.items()
    ]
    return accuracy.nothing(replace(EMPTY, accuracies=found))


@pytest.mark.parametrize(
    ("changed", "holds"),
    [
        ({}, True),
        ({"object": 0.61}, True),
        ({"object": 0.7}, False),
        ({"background": 0.3}, False),
        ({"whole": 0.55}, False),
        ({"color": None}, False),
    ],
)
def test_a_feature_that_tells_or_a_blind_classifier_does_not_hold(changed, holds):
    line = judged(**changed)
    assert line.holds is holds
    assert [row["feature"] for row in line.rows if row["as_it_must"] == "no"] == ([] if holds else list(changed))


def test_without_torch_nothing_is_measured_and_nothing_is_claimed(tmp_path, monkeypatch):
    monkeypatch.setattr(accuracy, "find_spec", lambda _: None)
    there = SimpleNamespace(manifest=SimpleNamespace(splits={"test": SimpleNamespace(woman=60, man=60)}))
    monkeypatch.setattr(accuracy, "open_benchmark", lambda *_: there)
    accuracy.look(tmp_path, tmp_path / "accuracy", silent)
    line = accuracy.nothing(replace(EMPTY, accuracies=accuracy.seen(tmp_path / "accuracy")))
    assert line.holds is None
    assert line.found == "Not measured: install truegap[models]."
    assert [row["feature"] for row in line.rows] == list(FEATURES)


def test_the_real_classifiers_are_asked_once(tmp_path, monkeypatch):
    pytest.importorskip("timm")
    monkeypatch.setattr(accuracy, "LEAST", 10)
    monkeypatch.setattr(accuracy, "Conventions", partial(Conventions, seeds=1, epochs=1))
    monkeypatch.setenv("TRUEGAP_CACHE", str(tmp_path / "cache"))
    workspace = Workspace(Plan("synthetic", "1.0.0", selection(20, rho=0.0), ("original",)), tmp_path / "b")
    with workspace.opened():
        for task in workspace.tasks():
            build_shard(task)
        workspace.finish()
    accuracy.look(tmp_path / "b", tmp_path / "accuracy", silent)
    found = accuracy.seen(tmp_path / "accuracy")
    assert [each.feature for each in found] == list(FEATURES)
    assert all(each.accuracy is not None for each in found)
    before = (tmp_path / "accuracy/spurious.json").stat().st_mtime_ns
    accuracy.look(tmp_path / "b", tmp_path / "accuracy", silent)
    assert (tmp_path / "accuracy/spurious.json").stat().st_mtime_ns == before

"""What is missing is named with the command that mends it."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError

import pytest
from typer.testing import CliRunner

from truegap.cli import doctor
from truegap.cli.app import app
from truegap.cli.doctor import examined, surroundings

NEEDS = [
    "numpy>=2.0",
    "tomli>=2; python_version < '3'",
    "torch>=2.6; extra == 'models'",
    "gradio>=6; extra == 'space'",
    "ruff; extra == 'dev'",
]
EXTRAS = ["dev", "models", "space"]


def installed(**versions):
    def version_of(name):
        if name not in versions:
            raise PackageNotFoundError(name)
        return versions[name]

    return version_of


def test_what_lacks_is_told_from_what_is_complete():
    # given an old torch and no gradio
    base, models, space = examined(NEEDS, EXTRAS, installed(numpy="2.4.6", torch="2.5.1"))

    # then the requirement of another Python and the developers' tools are nobody's lack
    assert (base.found, base.lacking, base.remedy) == ({"numpy": "2.4.6"}, {}, "")
    assert (models.lacking, models.remedy) == ({"torch": "2.5.1, needs >=2.6"}, "pip install 'truegap[models]'")
    assert (space.lacking, space.remedy) == ({"gradio": "missing"}, "pip install 'truegap[space]'")


def test_a_version_before_its_release_counts():
    base, *_ = examined(["numpy>=2.0"], [], installed(numpy="2.5.0rc1"))
    assert not base.lacking


def test_everything_is_there_where_the_tests_run():
    told = CliRunner().invoke(app, ["doctor", "--json"], catch_exceptions=False)
    found = json.loads(told.stdout)
    parts = {each["name"]: each for each in found["parts"]}
    assert told.exit_code == 0
    assert not parts["truegap"]["lacking"]
    assert not parts["models"]["lacking"]
    assert parts["truegap"]["found"]["numpy"].startswith("2.")
    assert found["surroundings"]["hub"].startswith("offline")


def test_a_lack_of_truegaps_own_is_an_error_and_that_of_an_extra_is_not(monkeypatch):
    monkeypatch.setattr(doctor, "metadata", lambda _: _Metadata())
    monkeypatch.setattr(doctor, "requires", lambda _: ["a-thing-of-nobody>=1; extra == 'space'"])
    told = CliRunner().invoke(app, ["doctor"], catch_exceptions=False)
    assert (told.exit_code, "lacks a-thing-of-nobody (missing)" in told.stdout) == (0, True)
    monkeypatch.setattr(doctor, "requires", lambda _: ["a-thing-of-nobody>=1"])
    assert CliRunner().invoke(app, ["doctor"], catch_exceptions=False).exit_code == 1


class _Metadata:
    def get_all(self, _):
        return ["space"]


@pytest.mark.parametrize("there", [True, False])
def test_a_cache_that_lacks_room_or_rights_is_named(tmp_path, monkeypatch, there):
    monkeypatch.setenv("TRUEGAP_CACHE", str(tmp_path / "cache"))
    if there:
        monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 10**9}))
    else:
        monkeypatch.setattr(doctor.os, "access", lambda *_: False)
    said = surroundings()["cache"]
    assert ("larger disk" if there else "cannot be written") in said
    assert "TRUEGAP_CACHE" in said

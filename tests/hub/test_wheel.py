"""The wheel of truegap that a Space installs."""

import os

import pytest

from truegap.errors import UserError
from truegap.hub import wheel
from truegap.hub.wheel import Wheel, build_wheel, checkout

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "truegap"
version = "1.0"
"""


@pytest.fixture
def project(tmp_path):
    """A small project of that name."""
    (tmp_path / "truegap").mkdir()
    (tmp_path / "truegap" / "__init__.py").write_text("")
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    return tmp_path


def test_the_same_code_is_the_same_wheel(project, monkeypatch):
    first = build_wheel(project)
    module = project / "truegap" / "__init__.py"
    os.utime(module, (0, 1_000_000_000))
    module.chmod(0o600)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert build_wheel(project) == first
    module.write_text("changed = True")
    assert build_wheel(project).content != first.content


def test_a_requirement_names_extras_place_and_content():
    found = Wheel("truegap-1.0-py3-none-any.whl", b"x").requirement("[space]", "https://hub/resolve/v1.0.0")
    place = "https://hub/resolve/v1.0.0/truegap-1.0-py3-none-any.whl"
    digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    assert found == f"truegap[space] @ {place}#sha256={digest}"


def test_what_nobody_should_see_is_not_packed(project):
    (project / "truegap" / "notes.txt").write_text("hf_" + "a" * 34)
    with pytest.raises(UserError, match=r"notes\.txt: holds what looks like a token"):
        build_wheel(project)


@pytest.mark.parametrize(
    ("backend", "why"),
    [
        ("import hatchling_of_nobody", "pip install hatchling"),
        ("raise SystemExit('odd')", "no wheel can be built of it: odd"),
    ],
)
def test_without_a_backend_one_line_says_what_to_do(project, monkeypatch, backend, why):
    monkeypatch.setattr(wheel, "_BUILD", backend)
    with pytest.raises(UserError) as refused:
        build_wheel(project)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_only_a_checkout_of_truegap_is_one(root, tmp_path, monkeypatch):
    assert checkout() == root
    for place in ("site-packages/truegap", "builder/truegap"):
        monkeypatch.setattr(wheel.truegap, "__file__", str(tmp_path / place / "__init__.py"))
        assert checkout() is None
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'other'")
    assert checkout() is None
    (tmp_path / "pyproject.toml").write_text("[project")
    assert checkout() is None

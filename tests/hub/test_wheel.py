"""The wheel of truegap that a Space installs."""

import os
import subprocess

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

[tool.hatch.build.targets.wheel]
packages = ["builder/truegap"]

[tool.hatch.build.targets.wheel.force-include]
"datasets" = "truegap/_house/datasets"
"""


@pytest.fixture
def project(tmp_path):
    """A small project of that name, and built as it is."""
    top = tmp_path / "project"
    for path, text in {
        "pyproject.toml": PROJECT,
        "builder/truegap/__init__.py": "",
        "datasets/own/benchmark.yaml": "name: own",
    }.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text)
    return top


def test_the_same_code_is_the_same_wheel(project, monkeypatch):
    first = build_wheel(project)
    module = project / "builder" / "truegap" / "__init__.py"
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
    (project / "builder" / "truegap" / "notes.txt").write_text("hf_" + "a" * 34)
    with pytest.raises(UserError, match=r"notes\.txt: holds what looks like a token"):
        build_wheel(project)


@pytest.mark.parametrize("stray", ["builder/truegap/key.pem", "datasets/own/labels.csv"])
def test_what_git_does_not_know_is_not_packed(project, stray):
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=project, check=True)
    expected = build_wheel(project)
    # what cannot be packed is nobody's business, and changes are part of the code as it lies there
    (project / "notes.txt").write_text("of one's own")
    (project / "builder" / "truegap" / "__init__.py").write_text("changed = True")
    assert build_wheel(project) != expected
    (project / stray).write_text("of one's own")
    with pytest.raises(UserError, match=f"{stray}: would go out with truegap's wheel, and git does not know it"):
        build_wheel(project)
    subprocess.run(["git", "add", stray], cwd=project, check=True)
    build_wheel(project)


@pytest.mark.parametrize("place", ["builder/truegap/link.txt", "datasets/own/raw"])
def test_what_a_link_leads_to_is_not_packed(project, tmp_path, place):
    other = tmp_path / "other"
    other.mkdir()
    (other / "labels.csv").write_text("of one's own")
    (project / place).symlink_to(other if place.endswith("raw") else other / "labels.csv")
    with pytest.raises(UserError, match=f"{place}.*: is a link"):
        build_wheel(project)


def test_a_checkout_of_which_git_says_nothing_is_one_line(project):
    (project / ".git").write_text("gitdir: nowhere")
    with pytest.raises(UserError, match="git does not say what belongs to it: fatal: not a git repository") as refused:
        build_wheel(project)
    assert "\n" not in str(refused.value)


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

"""Metrics and Spaces as they are published: their folder as it is, and what it needs to run alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from truegap import __version__
from truegap.errors import UserError
from truegap.hub.difference import File
from truegap.hub.folder_check import check_content, plain_files
from truegap.hub.publish import Publication, check_tag, repository_of

_CARD, _REQUIREMENTS = "README.md", "requirements.txt"
_OWNER = re.compile(r"\bORG/")
_REVISION = re.compile(r'(revision=")v\d+\.\d+\.\d+(")')
_TRUEGAP = re.compile(r"truegap(\[[\w,\s-]+\])?\s*", re.IGNORECASE)
"""A requirement of truegap without a version."""
_RUNS = {"gradio": "app.py", "docker": "Dockerfile", "static": "index.html"}
"""What can run a Space, and the file that it runs."""


def metric_publication(folder: Path, namespace: str, *, name: str | None = None, tag: str | None = None) -> Publication:
    """A folder of `metrics/` as an `evaluate` module on the Hub, with the NumPy core beside it.

    Its card names the repository and the version in place of `ORG` and of the version it was written for.

    Args:
        folder: It holds `<name>.py`.
        namespace: User or organization.
        name: Of the repository, which `evaluate` needs to be that of the module.
        tag: The version; truegap's own by default.

    Raises:
        UserError: The folder is no metric, or holds what is not published.
    """
    from truegap.scores.portable import portable_files

    folder = folder.resolve()
    files = plain_files(folder)
    check_content(files)
    if name is not None and name != folder.name:
        raise UserError(f"--name {name}: `evaluate` looks for {name}.py, so the folder must have this name too")
    if nested := next((path for path in files if "/" in path), None):
        raise UserError(f"{folder}: {nested} is in a subfolder, where `evaluate` does not look: move it")
    try:
        whole = portable_files(folder)
    except ValueError as error:
        raise UserError(str(error)) from None
    content: dict[str, File] = {path: data for path, data in whole.items() if path in files or path.endswith(".py")}
    front = _front_matter(folder, files)
    repository, version = repository_of(namespace, folder.name), check_tag(tag or f"v{__version__}")
    card = _OWNER.sub(f"{namespace}/", files[_CARD].read_text(encoding="utf-8"))
    content[_CARD] = _REVISION.sub(rf"\g<1>{version}\g<2>", card).encode()
    core = len(content) - len(files)
    return Publication(
        "space",
        repository,
        version,
        content,
        (f"{folder.name}.py",),
        f"metric, with {core} files of the NumPy core",
        sdk=front["sdk"],
    )


def space_publication(folder: Path, namespace: str, *, name: str | None = None, tag: str | None = None) -> Publication:
    """A folder of `spaces/` as a Space: as it is, with this version of truegap in its requirements.

    Args:
        folder: It holds the app and a card that says what runs it.
        namespace: User or organization.
        name: Of the Space; the folder's by default.
        tag: The version; truegap's own by default.

    Raises:
        UserError: The folder is no Space, or holds what is not published.
    """
    folder = folder.resolve()
    files = plain_files(folder)
    check_content(files)
    front = _front_matter(folder, files)
    app = str(front.get("app_file", _RUNS[front["sdk"]]))
    if app not in files:
        raise UserError(f"{folder}: {app} is missing, which {_CARD} names as the app")
    content: dict[str, File] = {**files}
    written = files[_REQUIREMENTS].read_text(encoding="utf-8") if _REQUIREMENTS in files else ""
    content[_REQUIREMENTS] = pinned(written).encode()
    return Publication(
        "space",
        repository_of(namespace, name or folder.name),
        check_tag(tag or f"v{__version__}"),
        content,
        (app,),
        f"Space ({front['sdk']})",
        sdk=front["sdk"],
    )


def pinned(requirements: str) -> str:
    r"""Requirements in which truegap has this version; a version that they name stays.

    >>> pinned("truegap[space]\n").startswith("truegap[space]==")
    True
    >>> pinned("truegap==0.0.1\n")
    'truegap==0.0.1\n'
    """
    lines, named = [], False
    for line in requirements.splitlines():
        bare = line.split("#")[0].strip()
        named |= re.match(r"truegap\b(?!-)", bare, re.IGNORECASE) is not None
        lines.append(f"{bare}=={__version__}" if _TRUEGAP.fullmatch(bare) else line)
    if not named:
        lines.insert(0, f"truegap=={__version__}")
    return "\n".join(lines) + "\n"


def _front_matter(folder: Path, files: Mapping[str, Path]) -> dict[str, Any]:
    import yaml

    if _CARD not in files:
        raise UserError(f"{folder}: {_CARD} is missing, which tells the Hub what runs the app")
    try:
        front = yaml.safe_load(files[_CARD].read_text(encoding="utf-8").split("---\n")[1])
    except (yaml.YAMLError, UnicodeDecodeError, IndexError):
        front = None
    if not isinstance(front, dict) or front.get("sdk") not in _RUNS:
        raise UserError(f"{folder / _CARD}: must begin with YAML between --- lines, with `sdk:` {' or '.join(_RUNS)}")
    return front

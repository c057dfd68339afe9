"""Metrics and Spaces as they are published: their folder as it is, and what it needs to run alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from truegap import __version__
from truegap.errors import UserError
from truegap.hub.difference import File
from truegap.hub.folder_check import check_content, plain_files
from truegap.hub.publish import Publication, check_tag, repository_of
from truegap.hub.wheel import build_wheel, checkout

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


def space_publication(
    folder: Path, namespace: str, *, name: str | None = None, tag: str | None = None, private: bool = False
) -> Publication:
    """A folder of `spaces/` as a Space: as it is, with the truegap that publishes it in its requirements.

    Where that runs from a checkout, no index need have it: a wheel of it goes along, and the requirement is the address
    of that file in the Space's repository at its tag. The Space's builder has only `requirements.txt` when it installs
    what that names, so a path beside it would lead nowhere.

    Args:
        folder: It holds the app and a card that says what runs it.
        namespace: User or organization.
        name: Of the Space; the folder's by default.
        tag: The version; truegap's own by default.
        private: Whether it must not be seen.

    Raises:
        UserError: The folder is no Space, holds what is not published, or is to be private and needs a wheel.
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
    repository, version = repository_of(namespace, name or folder.name), check_tag(tag or f"v{__version__}")
    form, remark = f"Space ({front['sdk']})", ""
    top = checkout() if _leaves_open(written) else None
    if top is None:
        content[_REQUIREMENTS] = pinned(written).encode()
    elif private:
        raise UserError(
            "--private: nobody can fetch a wheel of truegap from a private Space, its builder neither; publish "
            f"spaces/leaderboard for all to see, and write its line for truegap into the {_REQUIREMENTS} of {folder}"
        )
    else:
        wheel, address = build_wheel(top), f"{_endpoint()}/spaces/{repository}/resolve/{version}"
        content[wheel.name] = wheel.content
        content[_REQUIREMENTS] = pinned(written, lambda extras: wheel.requirement(extras, address)).encode()
        form += " with a wheel of truegap"
        remark = f"{wheel.name} is of the code in {top}; the Space's builder fetches it, so the Space must be public"
    remarks = (remark,) if remark else ()
    return Publication("space", repository, version, content, (app,), form, remarks, sdk=front["sdk"])


def _released(extras: str) -> str:
    return f"truegap{extras}=={__version__}"


def pinned(requirements: str, ours: Callable[[str], str] = _released) -> str:
    r"""Requirements in which truegap is the one that publishes them; a version or a source that they name stays.

    >>> pinned("truegap[space]\n").startswith("truegap[space]==")
    True
    >>> pinned("truegap==0.0.1\n")
    'truegap==0.0.1\n'

    Args:
        requirements: As they are written.
        ours: The line for truegap with these extras, in brackets or empty; by default this version from an index.
    """
    lines = requirements.splitlines()
    if not any(map(_names_it, lines)):
        lines.insert(0, "truegap")
    found = [(line, _TRUEGAP.fullmatch(_bare(line))) for line in lines]
    return "".join(f"{ours(open_[1] or '') if open_ else line}\n" for line, open_ in found)


def _leaves_open(requirements: str) -> bool:
    """Whether requirements do not say which truegap it is to be."""
    named = [_bare(line) for line in requirements.splitlines() if _names_it(line)]
    return not named or any(map(_TRUEGAP.fullmatch, named))


def _names_it(line: str) -> bool:
    return re.match(r"truegap\b(?!-)", _bare(line), re.IGNORECASE) is not None


def _bare(line: str) -> str:
    """A requirement without its comment."""
    return line.partition("#")[0].strip()


def _endpoint() -> str:
    from huggingface_hub import constants

    return str(constants.ENDPOINT)


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

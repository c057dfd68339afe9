"""A model's files, in a folder or on the Hub, and which of its weight files may be loaded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from truegap.errors import UserError
from truegap.hub import snapshots
from truegap.hub.snapshots import Files

SAFE = (".safetensors",)
PICKLED = (".bin", ".pt", ".pth", ".ckpt")
SIDE_FILES = ("*.json", "*.txt", "*.model", "*.jinja")
"""Configurations, vocabularies and chat templates; never Python files."""


def split_revision(identifier: str, revision: str | None) -> tuple[str, str | None]:
    """`org/name@revision` apart; an explicit `revision` must agree with it.

    Raises:
        UserError: Two different revisions are asked for.
    """
    if Path(identifier).expanduser().is_dir() or "@" not in identifier:
        return identifier, revision
    name, written = snapshots.split_revision(identifier)
    if revision is not None and revision != written:
        raise UserError(f"model {identifier}: revision {revision} is asked for too; give one of the two")
    return name, written


def short_name(identifier: str) -> str:
    """What a model is called: the last part of its folder, also where that is written as `.`, or of its Hub name."""
    return Path(identifier).expanduser().resolve().name


def locate(identifier: str, revision: str | None, weights: Sequence[str], *, subfolders: bool = False) -> Files:
    """The folder itself, or a snapshot of the Hub repository with its small files and these weight files.

    Args:
        identifier: Folder, or `org/name`.
        revision: Branch, tag or commit on the Hub.
        weights: Patterns of weight files at the top of the repository.
        subfolders: Whether small files below subfolders are wanted too, such as a second tokenizer.

    Raises:
        UserError: No such folder or repository, no access, or offline and not in the cache.
    """
    folder = Path(identifier).expanduser()
    if folder.is_dir():
        if revision is not None:
            raise UserError(f"model {identifier}: a folder has no revision {revision}; leave it out")
        return Files(folder)
    if not snapshots.is_repository(identifier):
        raise UserError(f"model {identifier}: no such folder, and not a Hub id of the form org/name")
    return snapshots.snapshot(identifier, revision, [*SIDE_FILES, *weights], kind="model", subfolders=subfolders)


def find_weights(spec: str, folder: Path, patterns: Sequence[str], *, unsafe: bool) -> Path:
    """The first weight file that one of the patterns matches, safetensors before pickled files.

    Raises:
        UserError: There is none, or only pickled ones and these are not allowed.
    """
    found = [path for pattern in patterns for path in sorted(folder.glob(pattern)) if path.is_file()]
    for suffixes in (SAFE, PICKLED):
        for path in found:
            if path.suffix in suffixes:
                require_safe(spec, path, unsafe=unsafe)
                return path
    raise UserError(
        f"model {spec}: no weights (*.safetensors) in {folder}"
        + ("" if unsafe else "; pickled ones are looked for only with unsafe weights allowed (unsafe_weights=True)")
    )


def require_safe(spec: str, path: Path, *, unsafe: bool) -> None:
    """Refuse a weight file that loading could turn into running code.

    Raises:
        UserError: A pickled file without the user's word, or no weight file at all.
    """
    if path.suffix in PICKLED and not unsafe:
        raise UserError(
            f"model {spec}: {path.name} is pickled, and pickle can run code; convert it to safetensors, "
            "or allow unsafe weights (unsafe_weights=True) if you trust its author"
        )
    if path.suffix not in SAFE + PICKLED:
        raise UserError(f"model {spec}: {path.name} is not a weight file; .safetensors is needed")

"""Where a model's files are: a folder, or a snapshot of a Hub repository fetched into the usual cache."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from truegap.errors import UserError

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
SAFE = (".safetensors",)
PICKLED = (".bin", ".pt", ".pth", ".ckpt")
SIDE_FILES = ("*.json", "*.txt", "*.model")
"""Configurations and vocabularies; never Python files."""


@dataclass(frozen=True, slots=True)
class Files:
    """A folder with a model's files and, where they came from the Hub, the commit."""

    folder: Path
    commit: str | None = None


def split_revision(identifier: str, revision: str | None) -> tuple[str, str | None]:
    """`org/name@revision` apart; an explicit `revision` must agree with it.

    Raises:
        UserError: Two different revisions are asked for.
    """
    if Path(identifier).expanduser().is_dir() or "@" not in identifier:
        return identifier, revision
    name, _, written = identifier.rpartition("@")
    if revision is not None and revision != written:
        raise UserError(f"model {identifier}: revision {revision} is asked for too; give one of the two")
    return name, written


def locate(identifier: str, revision: str | None, weights: Sequence[str]) -> Files:
    """The folder itself, or a snapshot of the Hub repository with its small files and these weight files.

    Args:
        identifier: Folder, or `org/name`.
        revision: Branch, tag or commit on the Hub.
        weights: Patterns of weight files at the top of the repository.

    Raises:
        UserError: No such folder or repository, no access, or offline and not in the cache.
    """
    folder = Path(identifier).expanduser()
    if folder.is_dir():
        if revision is not None:
            raise UserError(f"model {identifier}: a folder has no revision {revision}; leave it out")
        return Files(folder)
    if not HUB_ID.fullmatch(identifier):
        raise UserError(f"model {identifier}: no such folder, and not a Hub id of the form org/name")
    return _snapshot(identifier, revision, [*SIDE_FILES, *weights])


def _snapshot(repository: str, revision: str | None, patterns: list[str]) -> Files:
    from huggingface_hub import errors as hub
    from huggingface_hub import snapshot_download

    at = f"{repository}@{revision}" if revision else repository
    try:
        folder = Path(snapshot_download(repository, revision=revision, allow_patterns=patterns, ignore_patterns="*/*"))
    except hub.GatedRepoError as error:
        raise UserError(
            f"model {at}: its authors grant access on its Hub page; ask there, then `hf auth login`"
        ) from error
    except hub.RepositoryNotFoundError as error:
        raise UserError(f"model {at}: no such model on the Hub, or it is private (then `hf auth login`)") from error
    except hub.RevisionNotFoundError as error:
        raise UserError(
            f"model {at}: the Hub knows the model, not this revision; see its list of branches and tags"
        ) from error
    except hub.LocalEntryNotFoundError as error:
        raise UserError(
            f"model {at}: not in the local cache, and the Hub cannot be reached; `hf download {repository}` where "
            "there is a network, or give a folder"
        ) from error
    except (hub.HfHubHTTPError, hub.HFValidationError, OSError) as error:
        raise UserError(f"model {at}: {first_line(error)}") from error
    return Files(folder, folder.name)


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


def first_line(error: BaseException) -> str:
    """An error's first line that says something, without control characters and cut to a readable length."""
    lines = ["".join(filter(str.isprintable, line)).strip() for line in str(error).splitlines()]
    lines = [line for line in lines if line]
    return (lines[0] if lines else type(error).__name__)[:300]

"""Files of Hub repositories, brought into the usual cache: the one place that asks the Hub for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from truegap.errors import UserError, first_line

Kind = Literal["dataset", "model"]

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+", re.ASCII)
_REVISION = re.compile(r"\w[\w.+-]*(/\w[\w.+-]*)*", re.ASCII)
"""A branch, tag or commit; it leads to nowhere else in the cache."""
_SECRETS = re.compile(r"(?i:(?<=bearer )[^\s'\"]+)|hf_\w+|(?<=://)[^/@\s]+(?=@)")
"""A token, and the name and password of a proxy."""
_UNAUTHORIZED = 401


@dataclass(frozen=True, slots=True)
class Files:
    """A folder with the files that were asked for and, where they came from the Hub, the commit."""

    folder: Path
    commit: str | None = None


def is_repository(name: str) -> bool:
    """Whether a text has the form of a Hub repository, `ORG/NAME`."""
    return _REPOSITORY.fullmatch(name) is not None


def split_revision(spec: str) -> tuple[str, str | None]:
    """`ORG/NAME[@REVISION]` apart; nothing is said of whether either part has its form."""
    name, _, revision = spec.partition("@")
    return name, revision or None


def folder_at(name: str) -> Path | None:
    """The folder of a name that somebody typed; None where there is none, or no folder can be called so.

    >>> folder_at("~nobody-of-this-name/x"), folder_at("")
    (None, None)
    """
    try:
        folder = Path(name).expanduser()
        return folder if name and folder.is_dir() else None
    except (OSError, RuntimeError, ValueError):
        return None


def locate(spec: str, files: Sequence[str], what: str) -> Files:
    """A folder as it is, or files of a dataset on the Hub.

    Args:
        spec: A folder, or `ORG/NAME[@REVISION]`.
        files: Patterns of the files, such as `data/original/*`; of a folder, nothing is left out.
        what: What the user should have given, for the message.

    Raises:
        UserError: It is neither, or the files cannot be had.
    """
    if folder := folder_at(spec):
        return Files(folder)
    repository, revision = split_revision(spec)
    if not is_repository(repository):
        raise UserError(f"{spec} is neither a folder nor ORG/NAME[@REVISION] on the Hub: give {what}")
    return snapshot(repository, revision, files)


def snapshot(
    repository: str,
    revision: str | None,
    files: Sequence[str],
    *,
    kind: Kind = "dataset",
    subfolders: bool = True,
) -> Files:
    """Files of a repository at one commit; what an earlier call brought is not fetched again.

    Args:
        repository: `ORG/NAME`.
        revision: Branch, tag or commit; None for the main branch.
        files: Their patterns; `*` matches `/` too.
        kind: Of the repository.
        subfolders: Whether files below subfolders are wanted.

    Raises:
        UserError: There is no such repository, revision or file, no access to it, or no way to the Hub and nothing in
            the cache; one line with the remedy.
    """
    import httpx2
    from huggingface_hub import snapshot_download

    if revision is not None and not _REVISION.fullmatch(revision):
        raise UserError(f"{kind} {repository}: {revision!r} is no branch, tag or commit")
    at = f"{kind} {repository}@{revision}" if revision else f"{kind} {repository}"
    try:
        folder = Path(
            snapshot_download(
                repository,
                repo_type=kind,
                revision=revision,
                allow_patterns=list(files),
                ignore_patterns=None if subfolders else "*/*",
            )
        )
    except (httpx2.HTTPError, OSError, ValueError) as error:
        # Neither here nor in a chained traceback may a token be seen.
        raise UserError(f"{at}: {reason_of(error, repository, kind)}") from None
    if not folder.is_dir():
        raise UserError(f"{at}: holds none of the files {', '.join(files)}")
    return Files(folder, folder.name)


def reason_of(error: Exception, repository: str, kind: Kind) -> str:
    """What went wrong with a repository and what to do, on one line and without secrets."""
    from huggingface_hub import errors as hub

    match error:
        case hub.GatedRepoError():
            return "its authors grant access on its Hub page; ask there, then `hf auth login`"
        case hub.RepositoryNotFoundError():
            return f"no such {kind} on the Hub, or it is private (then `hf auth login`)"
        case hub.RevisionNotFoundError():
            return f"the Hub knows the {kind}, not this revision; see its list of branches and tags"
        case hub.HfHubHTTPError() if error.response.status_code == _UNAUTHORIZED:
            return "the Hub does not accept your token; `hf auth login` with another"
        case hub.LocalEntryNotFoundError():
            option = "" if kind == "model" else f" --repo-type {kind}"
            return (
                f"not in the local cache, and {_obstacle(error.__cause__)}; `hf download {repository}{option}` where "
                "there is a network, or give a folder"
            )
        case _:
            return _secret_free(error)


def _obstacle(cause: BaseException | None) -> str:
    """What keeps the Hub away."""
    from huggingface_hub import errors as hub

    match cause:
        case hub.OfflineModeIsEnabled():
            return "HF_HUB_OFFLINE keeps the Hub away"
        case hub.HfHubHTTPError() | hub.FileMetadataError():
            return f"the Hub gives no answer of use ({_secret_free(cause)})"
        case _:
            return "the Hub cannot be reached"


def _secret_free(error: BaseException) -> str:
    """The first line of an error; some libraries quote the header that holds the token."""
    return without_secrets(first_line(error))


def without_secrets(text: str) -> str:
    """A text without this user's token, what looks like one, and names and passwords of proxies."""
    from huggingface_hub import get_token

    if token := get_token():
        text = text.replace(token, "…")
    return _SECRETS.sub("…", text)

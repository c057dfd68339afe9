"""What a repository on the Hub holds, file by file, without bringing any of it here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Held:
    """A file of a repository, as the Hub lists it.

    Attributes:
        size: In bytes.
        git_id: What git calls the content, wherever it stands; of a large file, of the pointer that stands for it.
        sha256: Of the content of a large file; None for the others.
    """

    size: int
    git_id: str
    sha256: str | None = None


def tree(repository: str, kind: str, commit: str | None, token: bool | None = None) -> dict[str, Held]:
    """Every file of a commit, by its path.

    Args:
        repository: `ORG/NAME`.
        kind: dataset, model or space.
        commit: None for the newest of the main branch.
        token: As huggingface_hub takes it: None for the user's own, False for none at all.

    Raises:
        Exception: What huggingface_hub raises, for the caller to word.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    entries = HfApi().list_repo_tree(repository, recursive=True, revision=commit, repo_type=kind, token=token)
    return {
        each.path: Held(each.size, each.blob_id, each.lfs.sha256 if each.lfs else None)
        for each in entries
        if isinstance(each, RepoFile)
    }

"""A model on the Hub, looked at without bringing its weights here, and without showing it a token."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from truegap.errors import UserError
from truegap.hub.commit import AbsentError, Repository
from truegap.hub.snapshots import is_repository, reason_of

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_REVISION = re.compile(r"(?!.*\.\.)\w[\w.+-]*(/\w[\w.+-]*)*", re.ASCII)
_NAME = 96
"""Characters of each half of a repository's name, as the Hub has it."""


class UnknownRevisionError(UserError):
    """The model is there, this revision is not."""


@dataclass(frozen=True, slots=True)
class HubModel:
    """A public model at one commit.

    Attributes:
        model: `ORG/NAME` as the Hub spells it.
        revision: The commit.
        files: Bytes of every file, by path.
    """

    model: str
    revision: str
    files: Mapping[str, int]

    def read(self, path: str, limit: int, start: int = 0) -> bytes | None:
        """At most `limit` bytes of a file from `start` on; None if it is not there.

        Raises:
            UserError: The Hub cannot be asked.
        """
        return _repository(self.model).read(path, self.revision, limit=limit, start=start)


def look_at_model(model: str, revision: str | None = None) -> HubModel:
    """A public model: its name, the commit that a revision stands for now, and its files.

    Args:
        model: `ORG/NAME`.
        revision: Branch, tag or commit; the main branch by default.

    Raises:
        AbsentError: There is no such public model, or its authors grant access one by one.
        UnknownRevisionError: It has no such revision, or only a pull request has it: anybody could have written that.
        UserError: The Hub cannot be asked.
    """
    import httpx2
    from huggingface_hub import HfApi, errors

    if not is_repository(model) or ".." in model or any(len(part) > _NAME for part in model.split("/")):
        raise AbsentError(f"model {model[:200]!r}: not of the form ORG/NAME")
    wanted = revision or "main"
    if len(wanted) > _NAME or not _REVISION.fullmatch(wanted) or wanted.startswith("refs/"):
        raise UnknownRevisionError(f"model {model}: {wanted[:100]!r} is no branch, tag or commit")
    api = HfApi()
    try:
        info = api.model_info(model, revision=wanted, token=False)
        commit = str(info.sha)
        if info.private or info.gated or info.disabled:
            raise AbsentError(f"model {model}: its authors grant access one by one, or it is not public")
        if not _in_history(api, info.id, wanted, commit):
            raise UnknownRevisionError(
                f"model {model}: commit {commit[:12]} is in no branch or tag; what is only in a pull request anybody "
                "could have written"
            )
    except errors.RevisionNotFoundError:
        raise UnknownRevisionError(f"model {model}: the Hub knows the model, not revision {wanted}") from None
    except errors.RepositoryNotFoundError:
        raise AbsentError(f"model {model}: no such public model on the Hub") from None
    except (httpx2.HTTPError, OSError, ValueError) as error:
        raise UserError(f"model {model}: {reason_of(error, model, 'model')}") from None
    files = _repository(info.id).files(commit)
    return HubModel(info.id, commit, {path: file.size for path, file in files.items()})


def _in_history(api: HfApi, model: str, wanted: str, commit: str) -> bool:
    """Whether a revision is a branch or tag, or a commit that one of them has."""
    refs = api.list_repo_refs(model, token=False)
    named = [*refs.branches, *refs.tags]
    if any(wanted == each.name or commit == each.target_commit for each in named):
        return True
    return any(
        commit == each.commit_id
        for branch in refs.branches
        for each in api.list_repo_commits(model, revision=branch.name, token=False)
    )


def _repository(model: str) -> Repository:
    return Repository(model, "model", token=False)

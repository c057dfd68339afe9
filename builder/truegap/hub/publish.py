"""Publishing on the Hub: one commit per version, under a tag that never moves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from truegap.errors import UserError
from truegap.hub.difference import KEPT, Difference, File, difference
from truegap.hub.refusals import hub_errors
from truegap.hub.snapshots import is_repository
from truegap.hub.tree import Held, tree

if TYPE_CHECKING:
    from huggingface_hub import HfApi

Kind = Literal["dataset", "space"]
State = Literal["new", "changed", "to tag", "published", "same"]
Progress = Callable[[str, int], AbstractContextManager[Callable[[int], object]]]

_TAG = re.compile(r"v\d+\.\d+\.\d+", re.ASCII)
_TOGETHER = 16
"""Files that are sent before the next line of progress."""
_STARTED_WITH = (*KEPT, "README.md")
"""All that a repository holds that somebody has made and not filled."""


@dataclass(frozen=True, slots=True)
class Publication:
    """What is to be published, and where.

    Attributes:
        kind: Of the repository.
        repository: `ORG/NAME`.
        tag: The version, `vX.Y.Z`.
        files: Everything that the version holds, by path.
        signature: A repository that holds any of these files is one of ours; another is never overwritten.
        form: In a few words, such as `recipe`.
        remarks: What the user must know, such as why it is a recipe.
        sdk: What runs a Space.
    """

    kind: Kind
    repository: str
    tag: str
    files: Mapping[str, File]
    signature: tuple[str, ...]
    form: str
    remarks: tuple[str, ...] = ()
    sdk: str | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """How a publication stands to what is on the Hub.

    Attributes:
        state: `new`, no such repository; `changed`, it holds something else on its main branch; `to tag`, it holds the
            same without the tag; `same`, the tag is there with the same content; `published`, it has just been.
        difference: Against what it is compared with.
        url: Of the version's page.
        commit: The newest on the main branch, or that of the tag; None in a new repository.
    """

    state: State
    difference: Difference
    url: str
    commit: str | None = None


def repository_of(namespace: str, name: str) -> str:
    """`ORG/NAME` of its two parts.

    Raises:
        UserError: The Hub knows no such names.
    """
    repository = f"{namespace}/{name}"
    if not is_repository(repository) or "--" in name or ".." in name:
        raise UserError(f"{repository!r} is no ORG/NAME on the Hub: give --namespace and --name as the Hub writes them")
    return repository


def check_tag(tag: str) -> str:
    """The tag, if it has the form `vX.Y.Z`.

    Raises:
        UserError: It has another.
    """
    if not _TAG.fullmatch(tag):
        raise UserError(f"--tag {tag}: versions are written vX.Y.Z, such as v1.0.0")
    return tag


def check_login() -> None:
    """That there is a token and the Hub knows it, before anything long begins.

    Raises:
        UserError: There is none, it is not accepted, or the Hub cannot be reached.
    """
    from huggingface_hub import HfApi, get_token

    if get_token() is None:
        raise UserError("publishing needs a token of yours that may write: `hf auth login`, or set HF_TOKEN")
    with hub_errors("the Hub"):
        HfApi().whoami()


def standing(publication: Publication, *, private: bool = False) -> Standing:
    """Compares a publication with what is on the Hub; changes nothing.

    Args:
        publication: What is to be published.
        private: Whether it must not be seen.

    Raises:
        UserError: The tag is there with other content, the repository holds something else or is public where it must
            not be, or the Hub cannot be asked.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError

    api = HfApi()
    repository, kind, tag = publication.repository, publication.kind, publication.tag
    url = _url(api, publication)
    with hub_errors(f"{kind} {repository}"):
        try:
            refs = api.list_repo_refs(repository, repo_type=kind)
            is_private = api.repo_info(repository, repo_type=kind).private
        except RepositoryNotFoundError:
            return Standing("new", difference(publication.files, {}), url)
        if private and not is_private:
            raise UserError(f"{kind} {repository} is public: make it private on its page, or leave out --private")
        if held := next((each.target_commit for each in refs.tags if each.name == tag), None):
            found = difference(publication.files, _tree(publication, held))
            if not found.is_empty:
                other = _next(tag, [each.name for each in refs.tags])
                raise UserError(
                    f"{kind} {repository} has the tag {tag} with other content ({_examples(found)}): a tag never "
                    f"moves, so publish under another, such as --tag {other}"
                )
            return Standing("same", found, url, held)
        head = next((each.target_commit for each in refs.branches if each.name == "main"), None)
        there = _tree(publication, head) if head else {}
    others = [path for path in there if path not in _STARTED_WITH]
    if others and not set(others) & set(publication.signature):
        raise UserError(
            f"{kind} {repository} holds something else, such as {others[0]}: choose another --name, or remove it there"
        )
    found = difference(publication.files, there)
    return Standing("to tag" if found.is_empty else "changed", found, url, head)


def publish(publication: Publication, progress: Progress, *, private: bool = False) -> Standing:
    """Publishes: sends the files, makes one commit of them, and tags it; whatever is there already is not sent again.

    Until the commit nothing is seen of it, and an interrupted publication goes on where it was.

    Args:
        publication: What is to be published.
        progress: Opens a display with a title and the number of files, and gives what to call with those just sent.
        private: Whether a new repository is one that only its owners see.

    Returns:
        `published`, or `same` where there was nothing to do.

    Raises:
        UserError: See `standing`; or the Hub does not let this user write.
    """
    from huggingface_hub import HfApi

    api = HfApi()
    repository, kind = publication.repository, publication.kind
    found = standing(publication, private=private)
    if found.state == "same":
        return found
    commit = found.commit
    with hub_errors(f"{kind} {repository}"):
        if found.state == "new":
            api.create_repo(repository, repo_type=kind, private=private or None, space_sdk=publication.sdk)
            commit = api.repo_info(repository, repo_type=kind).sha
            # What the Hub puts into a new repository gives way to what is published.
            found = Standing("new", difference(publication.files, _tree(publication, commit)), found.url)
        if not found.difference.is_empty:
            commit = _commit(api, publication, found.difference, commit, progress)
        api.create_tag(repository, tag=publication.tag, revision=commit, repo_type=kind)
    return Standing("published", found.difference, found.url, commit)


def _commit(
    api: HfApi, publication: Publication, found: Difference, parent: str | None, progress: Progress
) -> str | None:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    repository, kind = publication.repository, publication.kind
    paths = [*found.added, *found.changed]
    additions = [CommitOperationAdd(path, publication.files[path]) for path in paths]
    with _no_bars(), progress(f"sending {repository}", len(additions)) as advance:
        for first in range(0, len(additions), _TOGETHER):
            some = additions[first : first + _TOGETHER]
            api.preupload_lfs_files(repository, some, repo_type=kind, free_memory=False)
            advance(len(some))
        made = api.create_commit(
            repository,
            [*additions, *(CommitOperationDelete(path) for path in found.removed)],
            commit_message=f"Version {publication.tag.removeprefix('v')}",
            repo_type=kind,
            parent_commit=parent,
        )
    return str(made.oid)


@contextmanager
def _no_bars() -> Iterator[None]:
    """Keeps the library's own bars off the screen."""
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    if are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


def _tree(publication: Publication, commit: str | None) -> dict[str, Held]:
    return tree(publication.repository, publication.kind, commit)


def _url(api: HfApi, publication: Publication) -> str:
    return f"{api.endpoint}/{publication.kind}s/{publication.repository}/tree/{publication.tag}"


def _examples(found: Difference) -> str:
    """What differs, with the first name of each kind."""
    kinds = {"added": found.added, "changed": found.changed, "removed": found.removed}
    return "; ".join(f"{len(paths)} {kind}: {next(iter(paths))}" for kind, paths in kinds.items() if paths)


def _next(tag: str, taken: list[str]) -> str:
    """The first free version after a tag."""
    major, minor, patch = (int(part) for part in tag.removeprefix("v").split("."))
    while (candidate := f"v{major}.{minor}.{patch + 1}") in taken:
        patch += 1
    return candidate

"""Numbers as the Hub shows them on a model's page: `.eval_results/*.yaml`, offered as a pull request."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from truegap.errors import UserError
from truegap.hub.built_check import CARD
from truegap.hub.commit import Repository, whose_token
from truegap.hub.evaluation import SAMPLES
from truegap.hub.publish_dataset import card_hashes
from truegap.hub.refusals import hub_errors
from truegap.hub.result_entries import LARGEST, Results, entries_of, merged, read_entries, says_so
from truegap.hub.snapshots import is_repository, snapshot, split_revision
from truegap.results.show import plain

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry, HfApi

_FOLDER = ".eval_results"
_OPEN = ("open", "draft")


@dataclass(frozen=True, slots=True)
class Offer:
    """What is offered to a model's repository.

    Attributes:
        model: `ORG/MODEL`.
        path: Of the file there.
        content: The file.
        tasks: Value by task id.
        dataset: `ORG/NAME` of the benchmark.
        commit: Of the model's main branch, on which the offer is made.
        there: Where the same numbers are already: the page of the model or of an open pull request; None if nowhere.
    """

    model: str
    path: str
    content: bytes
    tasks: dict[str, float]
    dataset: str
    commit: str | None
    there: str | None = None


def results_offer(results: Results, model: str, dataset: str | None = None) -> Offer:
    """The entries of some results, merged with those that the model's repository has; changes nothing.

    Args:
        results: Over the whole benchmark, or over one of its frozen samples.
        model: `ORG/MODEL`, the repository of the model.
        dataset: `ORG/NAME[@TAG]` of the benchmark; by default where the run took it from.

    Raises:
        UserError: They are of another model, of any part of the benchmark, or of another build than the one published;
            or the Hub cannot be asked.
    """
    from huggingface_hub import HfApi

    _check(results, model)
    name, commit = _published(results, dataset)
    entries = entries_of(results, name, commit)
    path = f"{_FOLDER}/{name.replace('/', '--')}.yaml"
    api = HfApi()
    with hub_errors(f"model {model}"):
        head = str(api.repo_info(model, repo_type="model").sha)
    held = read_entries(_file(model, path, head), f"{path} in {model}")
    there = f"{api.endpoint}/{model}" if says_so(held, entries) else _open_offer(api, model, name, path, entries)
    tasks = {each.task_id: each.value for each in entries}
    return Offer(model, path, merged(held, entries), tasks, name, head, there)


def send_offer(offer: Offer) -> str:
    """Opens the pull request.

    Returns:
        Its address; where the same is there already, the address of that.

    Raises:
        UserError: The Hub does not let this user open one.
    """
    from huggingface_hub import CommitOperationAdd, HfApi

    if offer.there:
        return offer.there
    with hub_errors(f"model {offer.model}"):
        made = HfApi().create_commit(
            offer.model,
            [CommitOperationAdd(offer.path, offer.content)],
            commit_message=_title(offer.dataset),
            commit_description="Computed by `truegap evaluate`; one number per task.",
            repo_type="model",
            parent_commit=offer.commit,
            create_pr=True,
        )
    return str(made.pr_url)


def _title(dataset: str) -> str:
    return f"Add results on {dataset}"


def _check(results: Results, model: str) -> None:
    """That something is said of this model, and of all of the benchmark or of a sample that has a name."""
    if not is_repository(model):
        raise UserError(f"--model-repo {model}: give ORG/MODEL on the Hub")
    if results.model.kind in {"baseline", "endpoint"}:
        raise UserError(f"{results.name}: the run is of a model of kind {results.model.kind}, which has no repository")
    asked = split_revision(results.model.spec.removeprefix("hf-hub:"))[0]
    if not Path(asked).exists() and is_repository(asked) and asked != model:
        raise UserError(f"{results.name}: the run is of {plain(asked, 80)}, not of {model}")
    if results.options.get("limit") is not None or results.profile not in ("full", *SAMPLES):
        raise UserError(
            f"{results.name}: the run asked a sample of the benchmark that has no name, whose number is another: "
            "evaluate it with --profile full or lite and without --limit"
        )


def _published(results: Results, dataset: str | None) -> tuple[str, str]:
    """Repository and commit of the benchmark, which must be the same to the row."""
    benchmark = results.benchmark
    name, revision = split_revision(dataset or benchmark.spec)
    if not is_repository(name) or (dataset is None and Path(benchmark.spec).exists()):
        raise UserError(
            f"{results.name}: the run took its benchmark from {plain(benchmark.spec, 80)}: say with --dataset "
            "ORG/NAME@TAG where it is published"
        )
    files = snapshot(name, revision or (None if dataset else benchmark.revision), [CARD])
    hashes = card_hashes((files.folder / CARD).read_bytes())
    lines = "".join(f"{config} {hashes[config]}\n" for config in sorted(hashes))
    if hashlib.sha256(lines.encode()).hexdigest() != benchmark.content:
        raise UserError(f"{results.name}: the run is of another build than dataset {name}: evaluate on that one")
    return name, str(files.commit)


def _file(model: str, path: str, revision: str) -> bytes | None:
    return Repository(model, "model").read(path, revision, limit=LARGEST + 1)


def _open_offer(api: HfApi, model: str, dataset: str, path: str, entries: list[EvalResultEntry]) -> str | None:
    """The page of an open pull request with the same numbers, of this user where there is one."""
    from huggingface_hub import get_token

    # Anybody may open one like ours, with more in it; a look without a token sees the offers of all.
    mine = whose_token() if get_token() else None
    with hub_errors(f"model {model}"):
        found = list(api.get_repo_discussions(model, discussion_type="pull_request", author=mine))
    for each in found:
        if each.title != _title(dataset) or each.status not in _OPEN:
            continue
        held = _file(model, path, str(each.git_reference))
        with suppress(UserError):
            if says_so(read_entries(held, path), entries):
                return str(each.url)
    return None

"""A run's numbers as the Hub shows them on a model's page: `.eval_results/*.yaml`, offered as a pull request."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truegap.errors import UserError
from truegap.hub.built_check import CARD
from truegap.hub.evaluation import task_id
from truegap.hub.publish_dataset import card_hashes
from truegap.hub.refusals import hub_errors
from truegap.hub.snapshots import is_repository, snapshot, split_revision
from truegap.results.runs import Run
from truegap.results.show import interval, number, plain
from truegap.schema import CONFIGS

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry, HfApi

_FOLDER = ".eval_results"
_DIGITS = 6


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
        there: Where the same is already: the page of the model or of an open pull request; None if it is nowhere.
    """

    model: str
    path: str
    content: bytes
    tasks: dict[str, float]
    dataset: str
    commit: str | None
    there: str | None = None


def results_offer(run: Run, model: str, dataset: str | None = None) -> Offer:
    """The entries of a run, merged with those that the model's repository has; changes nothing.

    Args:
        run: A finished run over the whole benchmark.
        model: `ORG/MODEL`, the repository of the run's model.
        dataset: `ORG/NAME[@TAG]` of the benchmark; by default where the run took it from.

    Raises:
        UserError: The run is of another model, of a part of the benchmark, or of another build than the one published;
            or the Hub cannot be asked.
    """
    from huggingface_hub import HfApi

    _check_run(run, model)
    name, commit = _published(run, dataset)
    entries = _entries(run, name, commit)
    path = f"{_FOLDER}/{name.replace('/', '--')}.yaml"
    api = HfApi()
    with hub_errors(f"model {model}"):
        head = api.repo_info(model, repo_type="model").sha
        held = _file(api, model, path, head)
        content = _merged(held, entries, f"{path} in {model}")
        there = f"{api.endpoint}/{model}" if held == content else _open_offer(api, model, name, path, content)
    tasks = {each.task_id: each.value for each in entries}
    return Offer(model, path, content, tasks, name, head, there)


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


def _check_run(run: Run, model: str) -> None:
    """That the run says something about this model, and about all of the benchmark."""
    record = run.record
    if not is_repository(model):
        raise UserError(f"--model-repo {model}: give ORG/MODEL on the Hub")
    if record.model.kind in {"baseline", "endpoint"}:
        raise UserError(f"{run.folder}: the run is of a model of kind {record.model.kind}, which has no repository")
    asked = split_revision(record.model.spec.removeprefix("hf-hub:"))[0]
    if not Path(asked).exists() and is_repository(asked) and asked != model:
        raise UserError(f"{run.folder}: the run is of {plain(asked, 80)}, not of {model}")
    options = record.options
    if options.get("limit") is not None or options.get("profile", "full") != "full":
        raise UserError(
            f"{run.folder}: the run asked a sample of the benchmark, whose number is another: evaluate it with "
            "--profile full and without --limit"
        )


def _published(run: Run, dataset: str | None) -> tuple[str, str]:
    """Repository and commit of the benchmark of a run, which must be the same to the row."""
    benchmark = run.record.benchmark
    name, revision = split_revision(dataset or benchmark.spec)
    if not is_repository(name) or (dataset is None and Path(benchmark.spec).exists()):
        raise UserError(
            f"{run.folder}: the run took its benchmark from {plain(benchmark.spec, 80)}: say with --dataset "
            "ORG/NAME@TAG where it is published"
        )
    files = snapshot(name, revision or (None if dataset else benchmark.revision), [CARD])
    hashes = card_hashes((files.folder / CARD).read_bytes())
    lines = "".join(f"{config} {hashes[config]}\n" for config in sorted(hashes))
    if hashlib.sha256(lines.encode()).hexdigest() != benchmark.content:
        raise UserError(f"{run.folder}: the run is of another build than dataset {name}: evaluate on that one")
    return name, str(files.commit)


def _entries(run: Run, dataset: str, commit: str) -> list[EvalResultEntry]:
    """One entry per number: the bias, and how far the perturbations move it."""
    from huggingface_hub import EvalResultEntry

    record, summary = run.record, run.scores.summary
    low, high = summary.bias_low, summary.bias_high
    null = "" if summary.null is None else f"; {number(summary.null)} for a model that knows nothing of gender"
    # The same in all of them: what is needed to do it again.
    how = f"truegap {record.environment.truegap}, model {_weights(run)}, run {record.run_id}"
    floors = f"{number(summary.floor)} and {number(summary.floor_hsv)}"
    moved = interval(summary.mean_delta_low, summary.mean_delta_high)
    # A mean over other configs is another number.
    mean_delta = summary.mean_delta if set(CONFIGS) <= set(record.configs) else None
    numbers = {
        "bias": (summary.bias, f"{summary.metric} {interval(low, high)}{null}"),
        "mean_delta": (mean_delta, f"percent of {summary.metric} {moved}; noise floor {floors}"),
    }
    entries = [
        EvalResultEntry(
            dataset_id=dataset,
            task_id=task_id(record.protocol, name),
            value=round(value, _DIGITS),
            dataset_revision=commit,
            date=record.created,
            notes=plain(f"{said}; 0 is best; {how}", 500),
        )
        for name, (value, said) in numbers.items()
        if value is not None
    ]
    if not entries:
        raise UserError(f"{run.folder}: the run has no number to publish: its scores say why")
    return entries


def _weights(run: Run) -> str:
    model = run.record.model
    return f"commit {model.revision}" if model.revision else f"SHA-256 {model.content[:16]}"


def _file(api: HfApi, model: str, path: str, revision: str | None) -> bytes | None:
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    try:
        return Path(api.hf_hub_download(model, path, repo_type="model", revision=revision)).read_bytes()
    except LocalEntryNotFoundError:
        raise
    except EntryNotFoundError:
        return None


def _merged(held: bytes | None, entries: list[EvalResultEntry], where: str) -> bytes:
    """The file with these entries in place of those of the same task, and all others as they were."""
    import yaml
    from huggingface_hub import eval_result_entries_to_yaml

    new: list[dict[str, Any]] = eval_result_entries_to_yaml(entries)
    replaced = {_task(each) for each in new}
    try:
        old = yaml.safe_load(held) if held else []
        kept = [each for each in old or [] if _task(each) not in replaced]
    except (yaml.YAMLError, UnicodeDecodeError, TypeError, KeyError):
        raise UserError(f"{where} is no list of results: mend or remove it there first") from None
    return yaml.safe_dump([*kept, *new], sort_keys=False, allow_unicode=True).encode()


def _task(entry: dict[str, Any]) -> tuple[str, str]:
    return str(entry["dataset"]["id"]), str(entry["dataset"]["task_id"])


def _open_offer(api: HfApi, model: str, dataset: str, path: str, content: bytes) -> str | None:
    """The page of an open pull request with the same file."""
    for each in api.get_repo_discussions(model, discussion_type="pull_request", discussion_status="open"):
        with suppress(ValueError):
            if each.title == _title(dataset) and _file(api, model, path, each.git_reference) == content:
                return str(each.url)
    return None

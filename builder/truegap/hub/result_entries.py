"""Numbers of a model as entries of `.eval_results/*.yaml`: what is said, and what a file holds already."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from truegap.errors import UserError
from truegap.hub.evaluation import task_id
from truegap.results.show import interval, number, plain
from truegap.schema import CONFIGS

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry

    from truegap.results.records import BenchmarkRecord, ModelRecord, Summary
    from truegap.results.runs import Run

LARGEST = 256 * 1024
"""Bytes of a file of entries; who owns the repository may have put anything there."""
_DEPTH = 20
_DIGITS = 6
_VERSION = re.compile(r"\d[\w.+-]{0,59}", re.ASCII)
_WORD = re.compile(r"[a-z][\w@-]{0,59}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Results:
    """Numbers, and of what they are.

    Attributes:
        name: How a message names them: the run's folder, or the row.
        model: The model.
        benchmark: The benchmark, with the images that were asked.
        protocol: How it was asked.
        options: Of the run.
        configs: Which were asked.
        summary: The numbers.
        run_id: Of the run.
        truegap: The version that computed them.
        date: ISO 8601.
        source: Where more is to be seen; None where it is nowhere.
    """

    name: str
    model: ModelRecord
    benchmark: BenchmarkRecord
    protocol: str
    options: dict[str, Any]
    configs: list[str]
    summary: Summary
    run_id: str
    truegap: str
    date: str
    source: str | None = None

    @property
    def profile(self) -> str:
        """How much was asked: `full`, or the version of a frozen sample such as `lite-1`."""
        return str(self.options.get("profile", "full"))


def results_of_run(run: Run) -> Results:
    """What a run says."""
    record = run.record
    return Results(
        name=str(run.folder),
        model=record.model,
        benchmark=record.benchmark,
        protocol=record.protocol,
        options=record.options,
        configs=record.configs,
        summary=run.scores.summary,
        run_id=record.run_id,
        truegap=record.environment.truegap,
        date=record.created,
    )


def entries_of(results: Results, dataset: str, commit: str) -> list[EvalResultEntry]:
    """One entry per number: the bias, and how far the perturbations move it.

    Args:
        results: The numbers.
        dataset: `ORG/NAME` of the benchmark.
        commit: Of the benchmark.

    Raises:
        UserError: There is no number.
    """
    from huggingface_hub import EvalResultEntry

    summary, metric = results.summary, _as(_WORD, results.summary.metric)
    null = "" if summary.null is None else f"; {number(summary.null)} for a model that knows nothing of gender"
    floors = f"{number(summary.floor)} and {number(summary.floor_hsv)}"
    moved = interval(summary.mean_delta_low, summary.mean_delta_high)
    # A mean over other configs is another number.
    mean_delta = summary.mean_delta if set(CONFIGS) <= set(results.configs) else None
    numbers = {
        "bias": (summary.bias, f"{metric} {interval(summary.bias_low, summary.bias_high)}{null}"),
        "mean_delta": (mean_delta, f"percent of {metric} {moved}; noise floor {floors}"),
    }
    entries = [
        EvalResultEntry(
            dataset_id=dataset,
            task_id=task_id(results.protocol, name, results.profile),
            value=round(value, _DIGITS),
            dataset_revision=commit,
            date=results.date,
            source_url=results.source,
            source_name="truegap leaderboard" if results.source else None,
            notes=plain(f"{said}; 0 is best; {_how(results)}", 500),
        )
        for name, (value, said) in numbers.items()
        if value is not None
    ]
    if not entries:
        raise UserError(f"{results.name}: there is no number to publish: the scores say why")
    return entries


def _how(results: Results) -> str:
    """What is needed to do it again, the same in all entries."""
    model, asked = results.model, results.benchmark
    weights = f"commit {_as(_HASH, model.revision)}" if model.revision else f"SHA-256 {_as(_HASH, model.content[:16])}"
    sample = ""
    if results.profile != "full":
        sample = f"profile {results.profile}: a frozen sample of {asked.women} women and {asked.men} men; "
    return f"{sample}truegap {_as(_VERSION, results.truegap)}, model {weights}, run {_as(_HASH, results.run_id)}"


def _as(pattern: re.Pattern[str], text: str) -> str:
    """A word of a record, which an evaluation of somebody's model wrote: nothing that a page could take for a link."""
    return text if pattern.fullmatch(text) else "unknown"


def read_entries(held: bytes | None, where: str) -> list[dict[str, Any]]:
    """The entries of a file, as they are.

    Raises:
        UserError: It is too large, or no such file.
    """
    import yaml

    if held is None:
        return []
    try:
        _check_shape(held)
        found = list(yaml.safe_load(held) or [])
        for each in found:
            _task(each)
        # Numbers can be read that are too long to be written again.
        yaml.safe_dump(found)
    except (yaml.YAMLError, ValueError, TypeError, KeyError, OverflowError):
        raise UserError(f"{where} is no list of results: mend or remove it there first") from None
    return found


def _check_shape(held: bytes) -> None:
    """Refuses what would keep a reader busy: length, lists within lists, and aliases, which make a short file long."""
    import yaml

    depth = 0
    if len(held) > LARGEST:
        raise ValueError
    for event in yaml.parse(held):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEPTH or isinstance(event, yaml.AliasEvent):
            raise ValueError


def merged(held: list[dict[str, Any]], entries: list[EvalResultEntry]) -> bytes:
    """The file with these entries in place of those of the same task, and all others as they were."""
    import yaml
    from huggingface_hub import eval_result_entries_to_yaml

    new: list[dict[str, Any]] = eval_result_entries_to_yaml(entries)
    replaced = {_task(each) for each in new}
    kept = [each for each in held if _task(each) not in replaced]
    return yaml.safe_dump([*kept, *new], sort_keys=False, allow_unicode=True).encode()


def says_so(held: list[dict[str, Any]], entries: list[EvalResultEntry]) -> bool:
    """Whether a file gives these numbers already, on the same commit of the benchmark."""
    told = {(*_task(each), str(each["dataset"].get("revision")), str(each.get("value"))) for each in held}
    return all((each.dataset_id, each.task_id, str(each.dataset_revision), str(each.value)) in told for each in entries)


def _task(entry: dict[str, Any]) -> tuple[str, str]:
    return str(entry["dataset"]["id"]), str(entry["dataset"]["task_id"])

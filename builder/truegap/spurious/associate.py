"""Acc_b against Δ: are scores moved by the features that give gender away?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby

import numpy as np

from truegap.errors import UserError
from truegap.results.runs import Run
from truegap.schema import Feature, Strength
from truegap.spurious.records import (
    AccuracyRecord,
    AssociationRecord,
    AssociationsRecord,
    CellRecord,
    PearsonRecord,
    SpuriousRecord,
)
from truegap.spurious.statistics import correlation

OWN = "each model's own features"
NO_ACCURACY = "no Acc_b of the feature"
NO_DELTA = "no delta"


@dataclass(slots=True)
class _Group:
    """The cells of one metric and one kind of reader."""

    cells: list[CellRecord] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def associate(results: Sequence[SpuriousRecord], runs: Sequence[Run]) -> AssociationsRecord:
    """Pearson's r of Acc_b and Δ over models, benchmarks, features and strengths (Hirota et al. 2025, section 5).

    A result of a backbone goes with every run on the same benchmark; one of an evaluated model with that model's.

    Args:
        results: Of `truegap spurious`, at most one per benchmark and reader.
        runs: Of `truegap evaluate`.

    A run without a result on its benchmark is left out, and named.

    Returns:
        An association per metric and reader.

    Raises:
        UserError: No run has a result on its benchmark, or two results say the same of one benchmark.
    """
    groups: dict[tuple[str, str], _Group] = {}
    fitting: list[Run] = []
    foreign: list[Run] = []
    for run in runs:
        matching = _matching(results, run)
        (fitting if matching else foreign).append(run)
        for reader, result in matching.items():
            metric = run.scores.summary.metric.partition("@")[0]
            group = groups.setdefault((metric, reader), _Group())
            for found in _cells(result, run):
                if isinstance(found, str):
                    group.left_out[found] += 1
                else:
                    group.cells.append(found)
    if not fitting:
        known = ", ".join(dict.fromkeys(f"{each.benchmark.name} {each.benchmark.version}" for each in results))
        raise UserError(
            f"none of {len(runs)} runs goes with a result of `truegap spurious`: they must be on the same build of "
            f"{known}, and where a model was probed, of that model"
        )
    return AssociationsRecord(
        spurious_ids=[each.spurious_id for each in results],
        run_ids=[each.record.run_id for each in fitting],
        foreign_run_ids=[each.record.run_id for each in foreign],
        associations=[_association(*key, group) for key, group in groups.items()],
    )


def _matching(results: Sequence[SpuriousRecord], run: Run) -> dict[str, SpuriousRecord]:
    """By reader, the results that say something of a run's features."""
    found: dict[str, SpuriousRecord] = {}
    for each in results:
        own = each.reader.kind == "model"
        if each.benchmark.content != run.record.benchmark.content:
            continue
        if own and each.reader.content != run.record.model.content:
            continue
        name = OWN if own else f"{each.reader.name}, {each.options['training']}"
        if name in found:
            raise UserError(
                f"results {found[name].spurious_id} and {each.spurious_id} are both of {name} on "
                f"{each.benchmark.name}: give one of them"
            )
        found[name] = each
    return found


def _cells(result: SpuriousRecord, run: Run) -> Iterator[CellRecord | str]:
    """The cells of a run that was perturbed, each with its numbers or the reason why it has none."""
    accuracies: dict[str, AccuracyRecord] = {each.feature: each for each in result.accuracies}
    main = run.scores.summary.metric
    changes = {each.config: each for each in run.scores.changes if (each.metric, each.scope) == (main, "all")}
    for feature in Feature:
        for strength in Strength:
            change = changes.get(f"{feature}-{strength}")
            if change is None:
                continue
            known = accuracies.get(feature)
            if known is None or known.accuracy is None:
                yield NO_ACCURACY
            elif change.delta is None:
                yield change.reason or NO_DELTA
            else:
                yield CellRecord(
                    model=run.record.model.name,
                    benchmark=run.record.benchmark.name,
                    feature=feature,
                    strength=strength,
                    accuracy=known.accuracy,
                    delta=change.delta,
                )


def _association(metric: str, reader: str, group: _Group) -> AssociationRecord:
    def of(cell: CellRecord) -> tuple[str, str, str]:
        return cell.benchmark, cell.model, cell.feature

    means = []
    for _, some in groupby(sorted(group.cells, key=of), key=of):
        cells = list(some)
        means.append((cells[0].accuracy, float(np.mean([cell.delta for cell in cells]))))
    return AssociationRecord(
        metric=metric,
        reader=reader,
        over_cells=_pearson([(cell.accuracy, cell.delta) for cell in group.cells]),
        over_features=_pearson(means),
        left_out=dict(group.left_out),
        cells=group.cells,
    )


def _pearson(pairs: Sequence[tuple[float, float]]) -> PearsonRecord:
    return PearsonRecord(**asdict(correlation([x for x, _ in pairs], [y for _, y in pairs])))

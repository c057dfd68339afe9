"""The benchmarks of a check, built as any other, and what the rendering predicts of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from truegap.build import Plan, Workspace, build_shard
from truegap.build.rows import perturbation_of
from truegap.files.atomic import write_bytes
from truegap.hub.benchmark import Benchmark, open_benchmark
from truegap.instrument.plan import Profile, configs
from truegap.instrument.predict import predicted
from truegap.schema import Selection
from truegap.sources import load_benchmark
from truegap.synthetic.readings import NAMES
from truegap.synthetic.selection import selection

PREDICTED = "predicted.json"

Readings = dict[str, dict[str, list[float]]]
"""By config and name, a reading per image in the order of the images' ids."""


@dataclass(frozen=True, slots=True)
class BenchmarkTask:
    """One benchmark to be built; every feature is as strongly correlated with the label.

    Attributes:
        folder: Where it goes.
        rho: Correlation of each of the four features.
        profile: How many images and configs.
        seed: Of the generator and of the perturbations.
    """

    folder: Path
    rho: float
    profile: Profile
    seed: int

    @property
    def selection(self) -> Selection:
        """The planted images."""
        return selection(self.profile.images, seed=self.seed, rho=self.rho)


def make(task: BenchmarkTask) -> float:
    """Builds the benchmark, and beside it what the rendering predicts, unless they are there; gives its rho."""
    chosen = task.selection
    version = load_benchmark("synthetic").version
    workspace = Workspace(Plan("synthetic", version, chosen, configs(task.profile, task.rho), task.seed), task.folder)
    if not workspace.finished:
        with workspace.opened():
            for shard in workspace.tasks():
                build_shard(shard)
            workspace.finish()
    found = _prediction_file(task)
    if not found.exists():
        benchmark = open_benchmark(str(task.folder))
        write_bytes(found, json.dumps(_predict(benchmark, chosen, configs(task.profile, task.rho))).encode())
    return task.rho


def prediction(task: BenchmarkTask) -> Readings:
    """What the rendering predicts, as `make` wrote it."""
    found: Readings = json.loads(_prediction_file(task).read_bytes())
    return found


def _prediction_file(task: BenchmarkTask) -> Path:
    return task.folder.with_name(f"{task.folder.name}.{PREDICTED}")


def _predict(benchmark: Benchmark, chosen: Selection, names: Sequence[str]) -> Readings:
    ids = benchmark.image_ids()
    drawn = {name: dict(zip(ids, benchmark.column(name, "perturbation"), strict=True)) for name in names}
    images = {example.image_id: example for example in chosen.examples}
    found = [
        predicted(example, {name: perturbation_of(drawn[name][image]) for name in names}, images)
        for image, example in images.items()
    ]
    return {name: {what: [round(each[name][what], 6) for each in found] for what in NAMES} for name in names}

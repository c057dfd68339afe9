"""What a report shows of each run, worked out once for every format."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from markupsafe import Markup

from truegap.figures import charts
from truegap.figures.findings import (
    Finding,
    bias_sentence,
    clears,
    findings,
    headline,
    main_changes,
    main_contrasts,
    noise_floor,
)
from truegap.figures.labels import metric_label
from truegap.report.controls import ControlFinding, control_findings
from truegap.report.pictures import Picture, read_pictures
from truegap.results.compare import question, size_interval
from truegap.results.records import ChangeRecord, ContrastRecord, ScoreRecord
from truegap.results.runs import Run
from truegap.results.show import plain
from truegap.schema import CONTROL_OF, Feature, Strength

ORIGINAL = "original"
NOT_RUN = "this config was not run"


@dataclass(frozen=True, slots=True)
class Cell:
    """One Δ of the heat table.

    Attributes:
        change: The change, or None where its config was not run.
        reason: Why there is no number.
        heat: 0 to 1, the share of the largest Δ of the report.
        clear: Whether it goes clearly beyond its control, and its placebo where there is one.
    """

    change: ChangeRecord | None
    reason: str
    heat: float
    clear: bool


@dataclass(frozen=True)
class ModelView:
    """One run.

    Attributes:
        run: The run.
        place: Its number in the report, from 1.
        hottest: The largest Δ of the report, in percent: full heat.
    """

    run: Run
    place: int
    hottest: float

    @cached_property
    def changes(self) -> dict[str, ChangeRecord]:
        """Changes of the main metric over all prompts, by config."""
        return main_changes(self.run.scores)

    @cached_property
    def contrasts(self) -> list[ContrastRecord]:
        """Comparisons in pairs of the main metric over all prompts."""
        return main_contrasts(self.run.scores)

    @cached_property
    def findings(self) -> list[Finding]:
        """One per feature."""
        return findings(self.run.scores)

    @cached_property
    def control_findings(self) -> list[ControlFinding]:
        """What the controls on request say; empty where none was run."""
        return control_findings(self.run.scores)

    @property
    def headline(self) -> str:
        """One sentence over all features."""
        return headline(self.findings)

    @property
    def bias_sentence(self) -> str:
        """The bias and what it would be by chance."""
        return bias_sentence(self.run.scores.summary)

    @property
    def heat(self) -> list[tuple[str, list[Cell], Cell]]:
        """Per feature: its name, a cell per strength, and the cell of its control."""
        return [
            (
                feature.value,
                [self._cell(f"{feature}-{strength}") for strength in Strength],
                self._cell(CONTROL_OF[feature]),
            )
            for feature in Feature
        ]

    def _cell(self, config: str) -> Cell:
        change = self.changes.get(config)
        if change is None or change.delta is None:
            reason = NOT_RUN if change is None else plain(change.reason or "no reason was given")
            return Cell(change, reason, 0.0, clear=False)
        heat = min(change.delta / self.hottest, 1.0) if self.hottest else 0.0
        return Cell(change, "", heat, clear=clears(config, self.contrasts))

    @property
    def chart(self) -> Markup:
        """Every Δ with its interval over its noise floor."""
        lines = []
        for feature in Feature:
            control = self.changes.get(CONTROL_OF[feature])
            floor = noise_floor(control) if control else None
            for strength in Strength:
                change = self.changes.get(f"{feature}-{strength}")
                if change is not None and change.delta is not None:
                    clear = clears(change.config, self.contrasts)
                    label = f"{feature}, {strength}"
                    lines.append(
                        charts.Change(label, change.delta, change.delta_low, change.delta_high, floor, clear=clear)
                    )
        return charts.change_chart(lines, "Change of the bias under each perturbation, with intervals and noise floor")

    @property
    def exclusions(self) -> list[tuple[str, str]]:
        """What has no number, and why; single prompts are left to `scores.json`."""
        scores, changes = self.run.scores.scores, self.run.scores.changes
        found = [
            (f"{metric_label(each.metric)}, {each.config}, {each.scope}", each.reason or "no reason was given")
            for each in scores
            if each.value is None and not _is_detail(each.scope)
        ]
        found += [
            (f"Δ of {metric_label(each.metric)}, {each.config}, {each.scope}", each.reason or "no reason was given")
            for each in changes
            if each.delta is None and not _is_detail(each.scope)
        ]
        return found

    @property
    def scores(self) -> list[ScoreRecord]:
        """Every score on the original images, over all prompts and each set."""
        return [each for each in self.run.scores.scores if each.config == ORIGINAL and not _is_detail(each.scope)]

    @property
    def counts(self) -> dict[str, int]:
        """What was counted for the main score."""
        main = self.run.scores.summary.metric
        found = next((each for each in self.scores if (each.metric, each.scope) == (main, "all")), None)
        return found.counts if found else {}

    @property
    def options(self) -> list[tuple[str, str]]:
        """Every convention and its value."""
        return [(name.replace("_", " "), _shown(value)) for name, value in self.run.record.options.items()]

    @property
    def command(self) -> str:
        """What to type to do it again; empty where it is not known."""
        return shlex.join(plain(each, 2000) for each in self.run.record.command)

    @property
    def ran_on(self) -> str:
        """Device and type of numbers."""
        ran = self.run.record.compute
        return f"{ran.device} ({ran.device_name}), {ran.dtype}" if ran else "not recorded"

    @property
    def versions(self) -> list[tuple[str, str]]:
        """What it ran on."""
        ran = self.run.record.environment
        commit = [("commit", f"{ran.commit}{' with uncommitted changes' if ran.dirty else ''}")] if ran.commit else []
        python = [("python", ran.python), ("platform", ran.platform)]
        return [("truegap", ran.truegap), *commit, *python, *ran.packages.items()]


@dataclass(frozen=True)
class ReportView:
    """All of a report.

    Attributes:
        models: One view per run.
        pictures: Per benchmark, the first run's example: name, version and pictures.
        without_pictures: Benchmarks of which no run has pictures.
    """

    models: list[ModelView]
    pictures: list[tuple[str, list[Picture]]] = field(default_factory=list)
    without_pictures: list[str] = field(default_factory=list)

    @property
    def comparable(self) -> bool:
        """Whether all runs answered the same question."""
        return len({_question(model.run) for model in self.models}) == 1

    @property
    def plane(self) -> Markup:
        """Bias against sensitivity, where there are several models that can be compared."""
        if len(self.models) == 1 or not self.comparable:
            return Markup()
        points = []
        for model in self.models:
            summary = model.run.scores.summary
            if summary.bias is None or summary.mean_delta is None:
                continue
            bias_low, bias_high = size_interval(summary.bias_low, summary.bias_high)
            points.append(
                charts.Point(
                    key=str(model.place),
                    label=plain(model.run.record.model.name),
                    bias=abs(summary.bias),
                    bias_low=bias_low,
                    bias_high=bias_high,
                    delta=summary.mean_delta,
                    delta_low=summary.mean_delta_low,
                    delta_high=summary.mean_delta_high,
                )
            )
        return charts.plane(points, "Bias against sensitivity of each model", self.models[0].run.scores.summary.null)


def view(runs: Sequence[Run]) -> ReportView:
    """Everything that a report of these runs shows."""
    hottest = max((each.delta for run in runs for each in main_changes(run.scores).values() if each.delta), default=0.0)
    models = [ModelView(run, place, hottest) for place, run in enumerate(runs, 1)]
    shown: dict[str, tuple[str, list[Picture]]] = {}
    for run in runs:
        benchmark = run.record.benchmark
        if not shown.get(benchmark.content, ("", []))[1]:
            name = f"{plain(benchmark.name)} {plain(benchmark.version)}"
            shown[benchmark.content] = (name, read_pictures(run.pictures))
    with_pictures = [each for each in shown.values() if each[1]]
    return ReportView(models, with_pictures, [name for name, pictures in shown.values() if not pictures])


def _question(run: Run) -> str:
    record = run.record
    return question(record.benchmark.content, record.protocol, record.options, record.configs)


def _is_detail(scope: str) -> bool:
    """Single prompts, occupations and pairs are too many for a page."""
    return ":" in scope and not scope.startswith(("topic:", "polarity:", "sector:"))


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_shown(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(_shown(each) for each in value)
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return plain(value)

"""The reference models, run on the benchmarks through the same adapters and protocols as any model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from truegap.hub.benchmark import open_benchmark
from truegap.instrument.plan import PROMPTS, QUESTIONS, Profile, asked, spec
from truegap.models import EmbeddingCache, GenerativeModel, load_model
from truegap.models.answer_cache import AnswerCache
from truegap.protocols.base import Protocol
from truegap.protocols.retrieval import Retrieval
from truegap.protocols.run import run_protocol
from truegap.protocols.vqa import Vqa
from truegap.results.answers import read_answers
from truegap.results.records import ChangeRecord, ContextRecord, ContrastRecord, ScoreRecord
from truegap.results.runs import Run, read_run

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RunTask:
    """One reader on one benchmark.

    Attributes:
        benchmark: The benchmark's folder.
        folder: Where the run goes.
        rho: Of the benchmark.
        kind: One of `truegap.instrument.plan.KINDS`.
        reader: One of `truegap.instrument.plan.READERS`.
        profile: How many resamples, which configs.
        seed: Of the resamples.
    """

    benchmark: Path
    folder: Path
    rho: float
    kind: str
    reader: str
    profile: Profile
    seed: int

    @property
    def key(self) -> tuple[float, str, str]:
        """Correlation, kind and reader."""
        return self.rho, self.kind, self.reader


def evaluate(task: RunTask) -> tuple[float, str, str]:
    """Runs it, unless it is finished; gives the task's key."""
    model = load_model(spec(task.kind, task.reader))
    drawn, seed = task.profile.n_resamples, task.seed
    protocol: Protocol = (
        Vqa(QUESTIONS, n_resamples=drawn, n_permutations=200, seed=seed)
        if isinstance(model, GenerativeModel)
        else Retrieval((PROMPTS,), k=(task.profile.images // 4,), draws=1, seed=seed, n_resamples=drawn)
    )
    task.folder.parent.mkdir(parents=True, exist_ok=True)
    kind = AnswerCache if isinstance(model, GenerativeModel) else EmbeddingCache
    with kind(task.folder.with_name(f"{task.folder.name}.sqlite")) as cache:
        run_protocol(
            open_benchmark(str(task.benchmark)),
            model,
            protocol,
            folder=task.folder,
            configs=asked(task.profile, task.rho, task.kind, task.reader),
            progress=_silent,
            cache=cache,
            command=["truegap", "check-instrument"],
        )
    return task.key


@contextmanager
def _silent(_what: str, _total: int) -> Iterator[Callable[[int], None]]:
    yield lambda _: None


@dataclass(frozen=True, slots=True)
class Measured:
    """What a finished run says of all questions or prompts together."""

    run: Run

    @classmethod
    def of(cls, task: RunTask) -> Measured:
        """What the task's run says."""
        return cls(read_run(task.folder))

    @property
    def metric(self) -> str:
        """Its main metric: `ygap`, or MaxSkew at the first k."""
        return self.run.scores.summary.metric

    def score(self, config: str = "original") -> ScoreRecord:
        """The main metric on a config."""
        return next(
            each
            for each in self.run.scores.scores
            if (each.metric, each.scope, each.config) == (self.metric, "all", config)
        )

    def bias(self, config: str = "original") -> float:
        """The main metric on a config, beyond what a blind ranking gets."""
        found = self.score(config)
        assert found.value is not None
        return found.value - (found.null or 0.0)

    def change(self, config: str) -> ChangeRecord:
        """How far a config moves it."""
        return next(
            each
            for each in self.run.scores.changes
            if (each.metric, each.scope, each.config) == (self.metric, "all", config)
        )

    def contrast(self, config: str) -> ContrastRecord:
        """A config against its control, in pairs; of a background swap, against one of the same gender."""
        return next(
            each
            for each in self.run.scores.contrasts
            if (each.metric, each.scope, each.config) == (self.metric, "all", config)
        )

    def context(self) -> ContextRecord:
        """What of it stays with the person removed."""
        return next(each for each in self.run.scores.contexts if (each.metric, each.scope) == (self.metric, "all"))

    def swap(self) -> ContrastRecord:
        """A background of the other gender against one of the same."""
        return self.contrast("background-swap-cross")

    def yes(self, config: str) -> tuple[Floats, NDArray[np.bool_]]:
        """p(Yes) of an answerer, `(questions, images)`, and which images show a man."""
        table = read_answers(self.run.folder, config=config)
        chosen = table.filter(table.column("option").to_numpy(zero_copy_only=False) == "Yes")
        count = len(set(chosen.column("prompt_id").to_pylist()))
        yes = np.asarray(chosen.column("probability").to_numpy(), np.float64).reshape(count, -1)
        genders = chosen.column("gender").to_pylist()[: yes.shape[1]]
        return yes, np.array([gender == "man" for gender in genders])

"""Everything that the lines of a check are drawn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from truegap.instrument.benchmarks import Readings
from truegap.instrument.plan import QUESTIONS, READERS, Profile
from truegap.instrument.runs import Measured
from truegap.instrument.worlds import World
from truegap.spurious import AccuracyRecord
from truegap.synthetic.reference import SPAN, lean_of_question

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Evidence:
    """What was run and what was predicted.

    Attributes:
        profile: How much.
        seed: Of everything that is drawn.
        runs: By rho, kind and reader.
        predicted: By rho, what the rendering predicts.
        men: Per image, whether it shows a man; the same at every rho.
        worlds: Fresh benchmarks without any correlation.
        accuracies: Acc_b of the benchmark at rho 0; empty where it was not measured.
    """

    profile: Profile
    seed: int
    runs: Mapping[tuple[float, str, str], Measured]
    predicted: Mapping[float, Readings]
    men: NDArray[np.bool_]
    worlds: Sequence[World]
    accuracies: Sequence[AccuracyRecord] = ()

    @property
    def strongest(self) -> float:
        """The largest correlation."""
        return self.profile.rhos[-1]

    def answers(self, reader: str, rho: float | None = None) -> Measured:
        """The answerer's run; at the largest correlation where none is named."""
        return self.runs[self.strongest if rho is None else rho, "answers", reader]

    def gap(self, reader: str, config: str, rho: float | None = None) -> float:
        """The YGap that the rendering predicts."""
        readings = self.predicted[self.strongest if rho is None else rho][config]
        read = np.sum([share * np.array(readings[name]) for name, share in READERS[reader].items()], axis=0)
        return self.per_reading * float(read[self.men].mean() - read[~self.men].mean())

    def change(self, reader: str, config: str, rho: float | None = None) -> float:
        """The change of YGap that the rendering predicts, signed."""
        return self.gap(reader, config, rho) - self.gap(reader, "original", rho)

    @cached_property
    def per_reading(self) -> float:
        """How far p(Yes) moves per unit of the reading, over all questions."""
        return SPAN * float(np.mean([lean_of_question(each.text) for each in QUESTIONS.questions]))

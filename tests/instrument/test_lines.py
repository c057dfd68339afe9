"""A line that cannot fail shows nothing: each is held against evidence in which its claim is wrong."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from truegap.instrument import chance, context, growth, matrix, retrieval, sampling
from truegap.instrument.check import gathered
from truegap.instrument.plan import CONTEXT, SINGLE, STRONG
from truegap.instrument.runs import Measured
from truegap.instrument.worlds import World


@pytest.fixture(scope="module")
def evidence(finished):
    folder, _, profile = finished
    return gathered(folder, profile, 0)


def with_readers(evidence, **as_if):
    """The same runs, under the names of other readers."""
    runs = {key: evidence.runs[(*key[:2], as_if.get(key[2], key[2]))] for key in evidence.runs}
    return replace(evidence, runs=runs)


def test_a_bias_that_was_not_planted_does_not_hold(evidence):
    assert growth.bias(evidence).holds
    assert not growth.bias(with_readers(evidence, color="person")).holds


def test_a_person_reader_that_sees_the_background_does_not_hold(evidence):
    assert growth.untouched(evidence).holds
    assert not growth.untouched(with_readers(evidence, person="background")).holds


def test_a_change_that_does_not_grow_does_not_hold(evidence):
    assert not growth.change(with_readers(evidence, background="person")).holds


class Halved(Measured):
    """A run in which perturbations take half of what they take elsewhere."""

    __slots__ = ()

    def change(self, config):
        found = Measured.change(self, config)
        return found.model_copy(update={"abs_change": found.abs_change / 2, "delta": found.delta / 2})


def test_a_ratio_that_does_not_stay_does_not_hold(evidence):
    def with_middle(kind):
        middle = {(0.5, *key[1:]): kind(run.run) for key, run in evidence.runs.items() if key[0] == 0.9}
        return replace(
            evidence,
            profile=replace(evidence.profile, rhos=(0.0, 0.5, 0.9)),
            runs={**evidence.runs, **middle},
            predicted={**evidence.predicted, 0.5: evidence.predicted[0.9]},
        )

    assert growth.change(evidence).holds
    assert growth.change(with_middle(Measured)).holds
    line = growth.change(with_middle(Halved))
    assert not line.holds
    changes = {(row["reader"], row["rho"]): row["abs_change"] for row in line.rows}
    assert all(changes[reader, 0.0] < changes[reader, 0.5] < changes[reader, 0.9] for reader in ("background", "color"))


def test_a_leak_larger_than_its_interval_allows_does_not_hold(evidence):
    predicted = {name: dict(found) for name, found in evidence.predicted[0.9].items()}
    men = evidence.men
    read = np.array(predicted["object-strong"]["lighting"]) + np.where(men, 0.02 / evidence.per_reading, 0)
    predicted["object-strong"]["lighting"] = read.tolist()
    line = matrix.prediction(replace(evidence, predicted={**evidence.predicted, 0.9: predicted}))
    assert not line.holds
    assert "(lighting under object-strong)" in line.found


class Ranking:
    """A dual encoder's figures, as they would be where MaxSkew saw what it should."""

    def __init__(self, reader, changes, interval):
        self.reader, self.changes, self.interval = reader, changes, interval

    def score(self, config="original"):
        return SimpleNamespace(value=0.6 - self.changes.get(config, 0.0), null=0.1)

    def change(self, config):
        return SimpleNamespace(abs_change=self.changes.get(config, 0.0))

    def contrast(self, config):
        low, high = self.interval if config == f"{self.reader}-strong" else (0.0, 0.0)
        return SimpleNamespace(difference_low=low, difference_high=high)


@pytest.mark.parametrize(
    ("color", "interval", "holds"),
    [
        ({}, (-0.4, -0.1), True),
        ({}, (-0.4, 0.1), False),
        ({"control-hsv": 0.3}, (-0.4, -0.1), False),
        ({"background-strong": 0.1}, (-0.4, -0.1), False),
    ],
)
def test_a_ranking_that_does_not_move_or_leaks_does_not_hold(evidence, color, interval, holds):
    runs = {
        (0.9, "reads", reader): Ranking(
            reader,
            {f"{reader}-strong": 0.3, **(color if reader == "color" else {})},
            interval if reader == "color" else (-0.4, -0.1),
        )
        for reader in SINGLE
    }
    line = retrieval.moves(replace(evidence, runs=runs))
    assert line.holds is holds
    assert len(line.rows) == len(SINGLE) * len(STRONG)
    assert all(f"0.600 to 0.300 ({reader})" in line.found for reader in CONTEXT)


def test_a_change_that_was_not_predicted_does_not_hold(evidence):
    assert matrix.prediction(evidence).holds
    assert not matrix.prediction(with_readers(evidence, lighting="color")).holds


def test_shares_that_were_not_planted_do_not_hold(evidence):
    wrong = with_readers(evidence, **{"half person, half background": "background"})
    assert context.share(evidence).holds
    assert not context.share(wrong).holds
    assert context.swap(evidence).holds
    assert not context.swap(wrong).holds


def world(p_value: float, *, outside: bool, max_skew: float) -> World:
    return World(
        p_value=dict.fromkeys(SINGLE, p_value),
        outside=dict.fromkeys(SINGLE, outside),
        max_skew=dict.fromkeys(SINGLE, max_skew),
        null=0.2,
    )


@pytest.mark.parametrize(("every", "holds"), [(20, True), (16, True), (13, False), (3, False), (1000, False)])
def test_false_alarms_are_counted(evidence, every, holds):
    worlds = [world(0.01 if n % every == 0 else 0.5, outside=n % every == 0, max_skew=0.2) for n in range(200)]
    if every == 1000:
        worlds[0] = worlds[1]
    line = chance.alarms(replace(evidence, worlds=worlds))
    assert line.holds is holds
    assert line.rows[-1]["tests"] == 1000


@pytest.mark.parametrize(("mean", "holds"), [(0.2, True), (0.3, False)])
def test_max_skew_is_held_against_its_null(evidence, mean, holds):
    draws = np.random.default_rng(0).normal(mean, 0.1, 100)
    worlds = [world(0.5, outside=False, max_skew=max(float(draw), 0)) for draw in draws]
    assert chance.max_skew(replace(evidence, worlds=worlds)).holds is holds


def test_intervals_that_miss_do_not_hold(evidence, monkeypatch):
    row = {"coverage": 0.8, "low": 0.7, "high": 0.88}
    assert not sampling._near(row, "coverage", 0.95, 0.03)
    assert sampling._near(row | {"coverage": 0.93}, "coverage", 0.95, 0.03)
    assert sampling._near(row | {"high": 0.96}, "coverage", 0.95, 0.03)
    monkeypatch.setattr(sampling, "_held", lambda *_: (True, False))
    line = sampling.coverage(evidence)
    assert not line.holds
    assert "100.0% for gaps, 0.0% for changes" in line.found


def test_power_knows_the_spread_of_a_mixture():
    cells = np.array([0.2, 0.4]), np.array([0.7])
    mixed = np.array([0.2] * 3 + [0.4] * 3 + [0.7] * 6)
    assert sampling._spread(cells, 0.5) == pytest.approx(mixed.std())
    assert sampling._seen((np.zeros(2), np.ones(2)), 0.9, 50, np.random.default_rng(0), 50)
    assert not sampling._seen((np.zeros(2), np.ones(2)), 0.5, 50, np.random.default_rng(1), 50)

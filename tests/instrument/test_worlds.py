"""Worlds without correlations: drawn anew, and the same on every machine that draws them."""

from __future__ import annotations

from truegap.instrument import LITE
from truegap.instrument.plan import SINGLE
from truegap.instrument.worlds import RHO, tasks, world
from truegap.scores import expected_max_skew

TINY = LITE.__class__("lite", 8, (0.0, 0.9), 20, 10, 4, 2, 30)


def test_nothing_goes_with_the_label():
    assert set(RHO.values()) == {0.0}
    assert "presentation" in RHO


def test_a_world_is_its_number_and_seed():
    first = world(3, TINY, 0)
    assert first == world(3, TINY, 0)
    assert first != world(4, TINY, 0)
    assert first != world(3, TINY, 1)
    assert set(first.p_value) == set(first.outside) == set(first.max_skew) == set(SINGLE)
    assert first.null == expected_max_skew([5, 5], 2, [0.5, 0.5])


def test_every_world_is_in_one_task(tmp_path):
    numbers = [number for task in tasks(tmp_path, TINY, 0) for number in task.numbers]
    assert numbers == list(range(20))

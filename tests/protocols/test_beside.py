"""Work beside the making of its items: order, overlap, and whose error ends what."""

from __future__ import annotations

import threading

import pytest

from truegap.protocols.beside import beside

LONG = 60
"""Seconds after which a wait that should end at once has failed."""


def numbers(count, closed=None):
    try:
        yield from range(count)
    finally:
        if closed is not None:
            closed.set()


def test_items_are_made_here_in_order_and_worked_on_elsewhere():
    threads = {"made": set(), "work": set()}

    def items():
        for number in range(5):
            threads["made"].add(threading.current_thread())
            yield number

    def work(given):
        threads["work"].add(threading.current_thread())
        return [10 * number for number in given]

    assert beside(work, items()) == [0, 10, 20, 30, 40]
    assert threads["made"] == {threading.current_thread()}
    assert not threads["made"] & threads["work"]


def test_the_next_item_is_made_while_the_last_is_worked_on():
    second = threading.Event()

    def items():
        yield 0
        second.set()
        yield 1

    def work(given):
        assert next(given) == 0
        overlapped = second.wait(LONG)
        return overlapped, list(given)

    assert beside(work, items()) == (True, [1])


def test_slow_work_holds_the_making_up():
    made, taken, most = [], [], []

    def items():
        for number in range(20):
            made.append(number)
            yield number

    def work(given):
        for number in given:
            taken.append(number)
            most.append(len(made) - len(taken))

    beside(work, items())
    # one that waits, and one that waits to wait
    assert taken == list(range(20))
    assert max(most) <= 2


def test_an_error_of_the_work_ends_the_making_and_is_raised_here():
    closed = threading.Event()
    made = []

    def items():
        for number in numbers(1000, closed):
            made.append(number)
            yield number

    def work(given):
        next(given)
        raise ValueError("the scores of item 0")

    with pytest.raises(ValueError, match="the scores of item 0"):
        beside(work, items())
    assert closed.is_set()
    assert len(made) <= 3


@pytest.mark.parametrize("error", [ValueError("item 2"), KeyboardInterrupt()])
def test_an_error_of_the_making_ends_the_work_and_is_raised_here(error):
    ended, finished = threading.Event(), []

    def items():
        yield from range(2)
        raise error

    def work(given):
        try:
            finished.append(list(given))
        finally:
            ended.set()

    with pytest.raises(type(error)):
        beside(work, items())
    assert ended.wait(LONG)
    assert not finished


def test_who_interrupts_does_not_wait_for_slow_work():
    # given work on the first item that takes its time, and a second item that waits for it
    started, over = threading.Event(), threading.Event()
    waited = threading.Timer(LONG / 6, over.set)

    def items():
        yield 0
        started.wait(LONG)
        yield 1
        raise KeyboardInterrupt

    def work(given):
        next(given)
        started.set()
        over.wait(LONG)
        return list(given)

    waited.start()
    with pytest.raises(KeyboardInterrupt):
        beside(work, items())
    assert not over.is_set()
    waited.cancel()
    over.set()


def test_work_may_leave_the_rest():
    assert beside(next, numbers(1000)) == 0
    assert beside(list, numbers(0)) == []

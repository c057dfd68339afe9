from __future__ import annotations

import os

import pytest

from truegap.engine import cores, run_tasks
from truegap.errors import UserError


def square(n: int) -> int:
    return n * n


def die(n: int) -> int:
    if n == 3:
        os._exit(9)
    return n


def fail(n: int) -> int:
    if n == 2:
        raise UserError("task 2 cannot be done")
    return n


@pytest.mark.parametrize("workers", [1, 2])
def test_every_result_comes_once(workers):
    assert sorted(run_tasks(square, range(7), workers=workers)) == [n * n for n in range(7)]


def test_no_tasks_no_results():
    assert list(run_tasks(square, [], workers=4)) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_errors_of_a_task_come_out(workers):
    with pytest.raises(UserError, match="task 2 cannot be done"):
        list(run_tasks(fail, range(4), workers=workers))


def test_a_dead_worker_is_one_line():
    with pytest.raises(UserError, match=r"a worker process died.*fewer --workers"):
        list(run_tasks(die, range(6), workers=2))


def test_workers_must_be_positive():
    with pytest.raises(UserError, match="--workers 0"):
        list(run_tasks(square, [1], workers=0))


def test_cores_are_counted():
    assert 1 <= cores() <= os.cpu_count()

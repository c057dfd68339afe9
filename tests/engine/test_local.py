from __future__ import annotations

import os
import subprocess
import sys

import pytest

from truegap.cores import cores
from truegap.engine import run_tasks
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


def run_script(folder, *lines):
    path = folder / "script.py"
    path.write_text("\n".join(lines), encoding="utf-8")
    return subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)


def test_a_script_without_a_guard_runs_once(tmp_path):
    done = run_script(
        tmp_path,
        "from math import sqrt",
        "from truegap.engine import run_tasks",
        "print('begun')",
        "print(sorted(run_tasks(sqrt, [1, 4, 9], workers=2)), __name__)",
    )
    assert done.stdout.splitlines() == ["begun", "[1.0, 2.0, 3.0] __main__"], done.stderr


def test_a_function_of_the_script_itself_reaches_the_workers(tmp_path):
    done = run_script(
        tmp_path,
        "from truegap.engine import run_tasks",
        "def square(n): return n * n",
        "if __name__ == '__main__':",
        "    print(sorted(run_tasks(square, [1, 2, 3], workers=2)))",
    )
    assert done.stdout.splitlines() == ["[1, 4, 9]"], done.stderr


def test_workers_must_be_positive():
    with pytest.raises(UserError, match="--workers 0"):
        list(run_tasks(square, [1], workers=0))


def test_cores_are_counted():
    assert 1 <= cores() <= os.cpu_count()

"""Loops over pixels as machine code."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from truegap.perturbations.compiled import compiled

LOOP = """
def double(numbers):
    for i in range(numbers.size):
        numbers[i] *= 2
"""


def defined_in(file: str):
    names: dict[str, object] = {}
    exec(compile(LOOP, file, "exec"), names)  # noqa: S102  # a function of a file that the test chooses
    return names["double"]


def test_code_is_kept_for_the_next_process(tmp_path):
    # given a module on disk
    file = tmp_path / "loops.py"
    file.write_text(LOOP)
    numbers = np.arange(3)
    # when its loop runs
    compiled(defined_in(str(file)))(numbers)
    # then it did its work, and its machine code lies beside it
    assert numbers.tolist() == [0, 2, 4]
    assert list((tmp_path / "__pycache__").glob("loops.double*.nbc"))


def test_it_runs_also_where_no_code_can_be_kept():
    # given a function of no file, for which numba finds no folder, as on a machine where nothing may be written
    function = defined_in("<nowhere>")
    from numba import njit

    with pytest.raises(RuntimeError, match="cannot cache"):
        njit(function, cache=True)
    # when it is compiled all the same; then it works
    numbers = np.arange(3)
    compiled(function)(numbers)
    assert numbers.tolist() == [0, 2, 4]


def test_who_perturbs_nothing_does_not_wait_for_the_compiler():
    code = "import sys, truegap.perturbations; print('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"

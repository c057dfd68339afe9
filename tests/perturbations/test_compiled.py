"""Loops over pixels as machine code."""

from __future__ import annotations

import subprocess
import sys

import numba
import numpy as np
import pytest

from truegap.perturbations.compiled import compiled

LOOP = """
def double(numbers):
    for i in range(numbers.size):
        numbers[i] *= 2
"""


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The folder where code is kept, whatever the environment says."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)
    return tmp_path / "kept"


@pytest.fixture
def double(tmp_path, kept):
    file = tmp_path / "loops.py"
    file.write_text(LOOP)
    return lambda: defined_in(str(file))


def defined_in(file: str):
    names: dict[str, object] = {}
    exec(compile(LOOP, file, "exec"), names)  # noqa: S102  # a function of a file that the test chooses
    return names["double"]


def doubled(function):
    numbers = np.arange(3)
    function(numbers)
    return numbers.tolist()


def test_code_is_kept_for_the_next_process(double, kept):
    # given a loop that ran
    assert doubled(compiled(double())) == [0, 2, 4]
    # when numba meets it again; then it takes what lies on disk
    again = numba.njit(double(), cache=True, nogil=True, error_model="numpy")
    assert doubled(again) == [0, 2, 4]
    assert sum(again.stats.cache_hits.values()) == 1


@pytest.mark.parametrize("what", ["*.nbi", "*.nbc"])
@pytest.mark.parametrize("left", [0, 20])
def test_damaged_code_is_not_needed(double, kept, what, left):
    compiled(double())(np.arange(3))
    (file,) = kept.rglob(what)
    file.write_bytes(file.read_bytes()[:left])
    function = compiled(double())
    assert doubled(function) == doubled(function) == [0, 2, 4]


def test_it_runs_also_where_no_code_can_be_kept(monkeypatch):
    # given a function of no file, for which numba finds no folder, as on a machine where nothing may be written
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    function = defined_in("<nowhere>")
    with pytest.raises(RuntimeError, match="cannot cache"):
        numba.njit(function, cache=True)
    assert doubled(compiled(function)) == [0, 2, 4]


def test_what_is_wrong_with_the_arguments_is_said(double):
    with pytest.raises(numba.TypingError):
        compiled(double())("text")


PROGRAM = """
import sys, numpy, truegap
for count in range(int(sys.argv[1])):
    truegap.perturb(numpy.zeros((1000, 4000, 3), numpy.uint8), "color", "weak")
print("numba" in sys.modules)
"""


@pytest.mark.parametrize(("pictures", "loaded"), [(0, False), (2, False), (3, True)])
def test_few_pictures_do_not_wait_for_the_compiler(pictures, loaded):
    # given pictures of four megapixels, each converted to and fro
    command = [sys.executable, "-c", PROGRAM, str(pictures)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == f"{loaded}\n"

"""Loops over pixels as machine code, once there are pixels enough."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec

Arguments = ParamSpec("Arguments")

WORTHWHILE = 20_000_000
"""Pixels for which Pillow takes as much longer than machine code as the compiler takes to load: a second."""

_done = {"pixels": 0}


def pays_by_now(pixels: int) -> bool:
    """Counts pixels that are to be changed; says whether this process has come by so many that machine code pays.

    Until then Pillow does the work, whose levels are the same: one picture has not to wait for the compiler, and
    thousands take at most a second longer than if they had waited for it at once.
    """
    _done["pixels"] += pixels
    return _done["pixels"] > WORTHWHILE


def compiled(loop: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Has numba compile a function over NumPy arrays; it runs without the interpreter's lock.

    Nothing is compiled, and numba is not loaded, before the function first runs: what perturbs nothing does not wait
    for it. Compiled code is kept on disk for the next process, where that is possible. Arithmetic is done as written,
    without the liberties of "fast math", so that every processor gives the same bits.

    Args:
        loop: Writes its results to arrays that it is given; what else it names must be constants of the same file, by
            whose time and size numba knows whether the kept code is that of today.

    Returns:
        The same function.
    """

    @cache
    def machine_code(*, kept: bool) -> Callable[Arguments, None]:
        from numba import njit

        code: Callable[Arguments, None] = njit(loop, cache=kept, nogil=True, error_model="numpy")
        return code

    keeps = True

    @wraps(loop)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        nonlocal keeps
        if keeps:
            try:
                machine_code(kept=True)(*args, **kwargs)
            except Exception:  # noqa: BLE001  # a damaged file of code can raise anything
                # No folder to keep code in, a full disk, a damaged file: this process compiles for itself. What is
                # wrong with the loop or its arguments comes up again.
                keeps = False
            else:
                return
        machine_code(kept=False)(*args, **kwargs)

    return run

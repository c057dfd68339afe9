"""Loops over pixels as machine code."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec

Arguments = ParamSpec("Arguments")


def compiled(loop: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Has numba compile a function over NumPy arrays; it runs without the interpreter's lock.

    Nothing is compiled, and numba is not loaded, before the function first runs: what perturbs nothing does not wait
    for it. Compiled code is kept on disk for the next process. Arithmetic is done as written, without the liberties of
    "fast math", so that every processor gives the same bits.

    Args:
        loop: Writes its results to arrays that it is given; what else of its module it names must be constants.

    Returns:
        The same function.
    """

    @cache
    def machine_code() -> Callable[Arguments, None]:
        from numba import njit

        try:
            code: Callable[Arguments, None] = njit(loop, cache=True, nogil=True, error_model="numpy")
        except RuntimeError:
            # Neither the package's folder nor the user's can be written to: each process compiles for itself.
            code = njit(loop, nogil=True, error_model="numpy")
        return code

    @wraps(loop)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        machine_code()(*args, **kwargs)

    return run

"""Memory that is kept for the next picture."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

_TRIM, _MMAP = -1, -3
"""Names of glibc's parameters, see `man mallopt`."""
_LARGEST = 32 << 20
"""Bytes of a piece of memory that is taken from what is kept: the most that glibc allows."""
_KEPT = 256 << 20
"""Bytes that are kept at most at the end of what was taken."""


@cache
def keep_memory() -> bool:
    """Tells the allocator of this process to keep what is freed, for processes whose work is one picture after another.

    By default memory of a picture's size goes back to the system when it is freed, and is found anew, page by page, for
    the next picture: that costs as much as decoding it.

    Returns:
        Whether the allocator was told; only glibc's (Linux) can be.
    """
    if not sys.platform.startswith("linux"):
        return False
    tell = getattr(ctypes.CDLL(None), "mallopt", None)
    return bool(tell and tell(_MMAP, _LARGEST) and tell(_TRIM, _KEPT))

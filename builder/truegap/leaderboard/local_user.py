"""Who asks on a machine of one's own."""

from __future__ import annotations

import getpass
import re

_LONGEST = 96


def local_user() -> str:
    """The name of this machine's user, as a request takes it; `local` where the machine knows none."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        # Such as in a container that runs under a number.
        name = ""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", name).lstrip("-_.")[:_LONGEST] or "local"

"""Where files are: those of the house, in a checkout or carried inside the installed package, and what is kept."""

from __future__ import annotations

import os
from pathlib import Path

from truegap.errors import UserError

_PACKAGE = Path(__file__).resolve().parent


def house(*parts: str) -> Path:
    """The path of a file or folder of the house, such as `house("datasets", "coco-gender", "benchmark.yaml")`.

    An installed package carries `datasets/`, `spaces/leaderboard/` and `spaces/recognition/`; in a checkout they are at
    its top level.

    Raises:
        UserError: There is no such file or folder.
    """
    carried = _PACKAGE / "_house"
    top = (carried if carried.is_dir() else _PACKAGE.parents[1]).resolve()
    path = top.joinpath(*parts).resolve()
    if not path.is_relative_to(top) or not path.exists():
        raise UserError(f"there is no {'/'.join(parts)} in {top}")
    return path


def cache_folder() -> Path:
    """`$TRUEGAP_CACHE`, else `truegap` in `$XDG_CACHE_HOME`, else `~/.cache/truegap`."""
    own = os.environ.get("TRUEGAP_CACHE")
    if own:
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "truegap"

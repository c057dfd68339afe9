"""From the address of a store to the store: a folder, or repositories on the Hub."""

from __future__ import annotations

import os
from pathlib import Path

from truegap.leaderboard.hub_store import HubStore
from truegap.leaderboard.local_store import LocalStore
from truegap.leaderboard.store import HUB, Store


def default_store() -> Path:
    """`$TRUEGAP_STORE`, else `truegap/leaderboard` in the user's data folder (`$XDG_DATA_HOME`)."""
    if chosen := os.environ.get("TRUEGAP_STORE"):
        return Path(chosen).expanduser()
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data).expanduser() / "truegap" / "leaderboard"


def open_store(where: str | Path | None = None) -> Store:
    """A store by its address; nothing is read or made yet.

    Args:
        where: A folder, or `hf://ORG` for the dataset repositories `ORG/requests` and `ORG/results` on the Hub. None
            for `$TRUEGAP_STORE`, else a folder in the user's data folder.

    Raises:
        UserError: `hf://` is followed by no name of a user or organisation.
    """
    chosen = str(where) if where is not None else os.environ.get("TRUEGAP_STORE") or str(default_store())
    if not chosen.startswith(HUB):
        return LocalStore(Path(chosen).expanduser())
    return HubStore(chosen.removeprefix(HUB).rstrip("/"))

"""Files that are there whole or not at all, and the record of what was done in a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from truegap.errors import UserError
from truegap.files import atomic

RECORD = "counterfactual.json"
_VERSION = 1


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file aside, then renames it.

    Raises:
        UserError: It cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_bytes(path, content)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None


def write_text(path: Path, content: str) -> None:
    """As `write_bytes`, in UTF-8."""
    write_bytes(path, content.encode())


def read_record(folder: Path) -> dict[str, Any]:
    """What was done in a folder, by step; empty where nothing was.

    Raises:
        UserError: The record cannot be read, or is of another version.
    """
    path = folder / RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        raise UserError(f"{path}: cannot be read as JSON; delete it and run the steps again") from None
    if not isinstance(record, dict) or record.get("version") != _VERSION:
        raise UserError(f"{path}: not a record of version {_VERSION}; delete it and run the steps again")
    return {step: content for step, content in record.items() if step != "version"}


def note(folder: Path, step: str, content: Mapping[str, Any] | None) -> None:
    """Writes down what a step did, in place of what it did before; None forgets it."""
    record = {**read_record(folder), step: content}
    kept = {"version": _VERSION} | {name: each for name, each in record.items() if each is not None}
    write_text(folder / RECORD, json.dumps(kept, indent=1, ensure_ascii=False) + "\n")

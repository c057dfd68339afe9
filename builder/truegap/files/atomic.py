"""Files that are whole or not there: written aside, then renamed."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """Gives a fresh name beside `path` to write to, and renames that file to `path` when all went well.

    A reader sees the old file or the new one, never half of one, and any number of writers may write at once: the last
    one stands. After an error nothing is left and an old file stays; a killed process leaves `.<name>.<random>`.

    Args:
        path: What the file is to be called; its folder exists.

    Yields:
        The path to write to; it is in the same folder, so that renaming moves no data.

    Raises:
        OSError: The file cannot be written.
    """
    aside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        yield aside
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def write_bytes(path: Path, data: bytes) -> None:
    """Writes a file aside, then renames it.

    Raises:
        OSError: The file cannot be written.
    """
    with written_aside(path) as aside:
        aside.write_bytes(data)

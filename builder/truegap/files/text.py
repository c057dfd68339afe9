"""Text files of an archive, opened with suspicion."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from truegap.errors import UserError

_PICKLE = b"\x80"
"""First byte of every pickle since protocol 2; no text in UTF-8 starts with it."""


@contextmanager
def opened(path: Path, what: str, newline: str | None = None) -> Iterator[TextIO]:
    """A text file in UTF-8, with or without a byte order mark.

    Args:
        path: The file.
        what: What it should be, such as `valid JSON`, for the message.
        newline: As `open` takes it.

    Raises:
        UserError: It is absent, cannot be read, is not UTF-8, or is a pickle, which could run anything.
    """
    try:
        with path.open("rb") as binary:
            if binary.read(1) == _PICKLE:
                raise UserError(f"{path}: not {what} but a Python pickle, which is never opened; export it as text")
        with path.open(encoding="utf-8-sig", newline=newline) as file:
            yield file
    except UnicodeDecodeError:
        raise UserError(f"{path}: not {what}: the text is not UTF-8; save it again as UTF-8") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None

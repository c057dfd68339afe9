"""Pickled lists of dictionaries, as some old label files are, read without running anything.

A pickle is a program. Its instructions are looked at first, and only those are let through that build lists,
dictionaries, text and integers: none that imports, calls, or refers to a number of objects that the file cannot hold.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from pathlib import Path
from typing import Any

from truegap.errors import UserError

_LARGEST = 256_000_000
_ALLOWED = {
    *("MARK", "STOP", "PUT", "GET", "LIST", "DICT", "APPEND", "SETITEM"),
    *("UNICODE", "STRING", "INT", "LONG", "NONE"),
}
"""Of protocol 0, the only one in which such files are published."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def read_pickled_list(path: Path) -> list[Any]:
    """The list in a pickle of protocol 0 that holds nothing but lists, dictionaries, text and integers.

    Args:
        path: The file; of up to 256 MB.

    Raises:
        UserError: It is absent, anything else, or damaged.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(data) > _LARGEST:
        raise UserError(f"{path}: larger than {_LARGEST // 1_000_000} MB; is it a file of labels?")
    try:
        for count, (instruction, argument, _) in enumerate(pickletools.genops(data)):
            if instruction.name not in _ALLOWED:
                more = f"more than lists, text and numbers ({instruction.name})"
                raise UserError(f"{path}: a pickle of {more}; it is not read")
            if instruction.name in {"PUT", "GET"} and not 0 <= int(str(argument)) <= count:
                raise UserError(f"{path}: a damaged pickle; it is not read")
        value = _Unpickler(io.BytesIO(data), encoding="latin1").load()
    # Damaged pickles raise nearly anything.
    except (pickle.UnpicklingError, ValueError, EOFError, IndexError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: not a pickle of labels: {' '.join(str(error).split())[:120]}") from None
    if not isinstance(value, list):
        raise UserError(f"{path}: holds a {type(value).__name__} where a list of labels belongs")
    return value

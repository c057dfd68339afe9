"""JSON files of other people's code, entry by entry, with the entry's name in every error."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from truegap.errors import UserError
from truegap.files.values import gender
from truegap.results.show import plain


def read_json(path: Path) -> Any:
    """Reads a JSON file.

    Raises:
        UserError: It is absent, not UTF-8, not JSON, or names a key twice in one object.
    """
    try:
        return json.loads(path.read_bytes(), object_pairs_hook=_object)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    except _TwiceError as error:
        raise UserError(f"{path}: the key {plain(error, 60)!r} stands twice in one object; keep one of them") from None
    except RecursionError:
        raise UserError(
            f"{path}: not the JSON of a result: it is nested too deep; give the file as it was written"
        ) from None
    except ValueError as error:
        said = plain(error, 120) if isinstance(error, json.JSONDecodeError) else "the text is not UTF-8 JSON"
        raise UserError(f"{path}: not JSON: {said}; give the file as it was written") from None


class _TwiceError(Exception):
    """A key stands twice: the last would win without a word."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _TwiceError(next(name for place, name in enumerate(names) if name in names[:place]))
    return found


class Entry:
    """One entry of such a file, whose fields are checked when they are asked for.

    Attributes:
        id: Its name in the file.
    """

    def __init__(self, path: Path, name: object, fields: Any) -> None:
        self.path = path
        self.id = plain(name, 60)
        if not isinstance(fields, dict):
            raise UserError(f"{path}: {self.id} is no object; give the file as it was written")
        self._fields: dict[str, Any] = fields

    def __contains__(self, name: str) -> bool:
        return name in self._fields

    def refuse(self, said: str) -> UserError:
        """An error that names the file and the entry."""
        return UserError(f"{self.path}: {self.id}: {said}")

    def get(self, name: str) -> Any:
        """A field.

        Raises:
            UserError: It is absent.
        """
        if name not in self._fields:
            raise self.refuse(f"lacks {name}; give the file as it was written, or leave the entry out")
        return self._fields[name]

    def text(self, name: str) -> str:
        """A field of text."""
        value = self.get(name)
        if not isinstance(value, str) or not value:
            raise self.refuse(f"{name} is {plain(value, 40)!r}, not text")
        return value

    def gender(self, name: str) -> str:
        """A field with a label, as `woman` or `man`."""
        value = self.get(name)
        found = gender(value) if isinstance(value, str) else None
        if found is None:
            raise self.refuse(f"{name} is {plain(value, 40)!r}; use woman or man, and leave out other entries")
        return found

    def number(self, name: str) -> float:
        """A field with a finite number."""
        return self.finite(self.get(name), name)

    def finite(self, value: Any, name: str) -> float:
        """A value of this entry that must be a finite number.

        Raises:
            UserError: It is not.
        """
        try:
            finite = not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value)
        except OverflowError:  # a whole number of more digits than a float can hold
            finite = False
        if not finite:
            raise self.refuse(
                f"{name} is {plain(value, 40)}, not a finite number; leave the entry out, or score it again"
            )
        return float(value)

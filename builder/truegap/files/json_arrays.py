"""Large JSON files, one element at a time: COCO's instances of a training split take 450 MB.

The standard decoder does the work, on a window of the text. A streaming parser (ijson) was measured and not taken: it
needs a pass per array (2.4 times the time), refuses a whole file for one `NaN` or long integer, and takes gigabytes
for a few thousand opening brackets.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from truegap.errors import UserError
from truegap.files.text import opened

_CHUNK = 1 << 20
_LARGEST = 1 << 26
"""Characters that one element of an array, or one other value, may take."""

_decode = json.JSONDecoder().raw_decode

Handlers = Mapping[str, Callable[[Any], None]]
Where = tuple[str, ...]


class _Malformed(Exception):  # noqa: N818  # a signal inside this module
    pass


def read_arrays(path: Path, handlers: Handlers, optional: Handlers | None = None) -> None:
    """Pass every element of the named top-level arrays of a JSON object to its handler, in the file's order.

    Args:
        path: A JSON file (UTF-8).
        handlers: For each array that the file must have, what takes its elements.
        optional: The same for arrays that it may have; everything else is read and left.

    Raises:
        UserError: The file is absent, is not JSON, is not an object, or lacks one of the arrays.
    """
    seen: set[str] = set()

    def take(window: _Window, key: str) -> None:
        if window.peek() == "[":
            seen.add(key)
            window.elements(key, handlers.get(key) or (optional or {}).get(key))
        else:
            window.value()
            if key in handlers or key in (optional or {}):
                raise _Malformed(f"{key!r} is not a list")

    _read(path, lambda window: window.members(take))
    if missing := [name for name in handlers if name not in seen]:
        raise UserError(f"{path}: has no {' and no '.join(repr(name) for name in missing)}; is it the right file?")


def read_members(path: Path, handle: Callable[[str, Any], None]) -> None:
    """Pass every member of a JSON object to `handle` as key and value, in the file's order; a key may come twice.

    Args:
        path: A JSON file (UTF-8).
        handle: What takes the members.

    Raises:
        UserError: The file is absent, is not JSON, or is not an object.
    """
    _read(path, lambda window: window.members(lambda inner, key: handle(key, inner.value())))


def read_object(
    path: Path, shrink: Callable[[Where, Any], Any], inside: Collection[Where], largest: int | None = None
) -> dict[str, Any]:
    """A JSON object whose largest values become something smaller as soon as each is read.

    Args:
        path: A JSON file (UTF-8).
        shrink: Given where a value stands, by the keys that lead to it, and the value: what to keep of it.
        inside: Objects whose members are read one at a time, by the keys that lead to them; all others are one value.
        largest: Characters that a value may take, if that is more than an archive's may.

    Raises:
        UserError: The file is absent, is not JSON, or is not an object.
    """

    def member(content: dict[str, Any], above: Where, window: _Window, key: str) -> None:
        where = (*above, key)
        if where in inside and window.peek() == "{":
            window.at += 1
            content[key] = {}
            window.pairs(partial(member, content[key], where))
        else:
            content[key] = shrink(where, window.value())

    whole: dict[str, Any] = {}
    _read(path, lambda window: window.members(partial(member, whole, ())), largest)
    return whole


def read_list(path: Path, handle: Callable[[Any], None]) -> None:
    """Pass every element of a JSON list to `handle`, in the file's order.

    Args:
        path: A JSON file (UTF-8).
        handle: What takes the elements.

    Raises:
        UserError: The file is absent, is not JSON, or is not a list.
    """
    _read(path, lambda window: window.whole_list(handle))


def parse(text: str) -> Any:
    """The value of a cell that holds JSON, or the same with single quotation marks, as Python prints it.

    Raises:
        ValueError: It is neither.
    """
    for attempt in (text, text.replace("'", '"')):
        try:
            value, end = _decode(attempt.strip())
        except (ValueError, RecursionError):
            continue
        if end == len(attempt.strip()):
            return value
    raise ValueError("not JSON")


def _read(path: Path, use: Callable[[_Window], None], largest: int | None = None) -> None:
    try:
        with opened(path, "valid JSON") as file:
            use(_Window(file, largest or _LARGEST))
    except _Malformed as problem:
        raise UserError(f"{path}: {problem}") from None


class _Window:
    """The part of the text that has been read and not used yet."""

    def __init__(self, file: TextIO, largest: int) -> None:
        self.file = file
        self.largest = largest
        self.text = ""
        self.at = 0
        self.ended = False
        self.where = "the start"

    def members(self, take: Callable[[_Window, str], None]) -> None:
        self.open("{", "object")
        self.pairs(take)
        self.close("object")

    def pairs(self, take: Callable[[_Window, str], None]) -> None:
        """The keys of an object and what `take` makes of their values, from behind its bracket to its end."""
        if self.peek() == "}":
            self.at += 1
            return
        while True:
            key = self.value()
            if not isinstance(key, str):
                raise _Malformed(f"not valid JSON near {self.where}: a key is not a string")
            self.where = key[:80] if key.isprintable() else repr(key[:80])
            self.expect(":")
            take(self, key)
            if self.expect(",}") == "}":
                return

    def whole_list(self, handle: Callable[[Any], None]) -> None:
        self.open("[", "list")
        self.at -= 1
        self.elements("", handle)
        self.close("list")

    def open(self, bracket: str, what: str) -> None:
        if not self.peek():
            raise _Malformed("the file is empty")
        if self.peek() != bracket:
            raise _Malformed(f"holds no JSON {what} at its top level")
        self.at += 1

    def close(self, what: str) -> None:
        if self.peek():
            raise _Malformed(f"not valid JSON: {self.peek()!r} after the end of the {what}")

    def elements(self, key: str, handle: Callable[[Any], None] | None) -> None:
        self.at += 1
        if self.peek() == "]":
            self.at += 1
            return
        count = 0
        while True:
            self.where = f"{key}[{count}]"
            value = self.value()
            if handle is not None:
                handle(value)
            count += 1
            if self.expect(",]") == "]":
                return

    def value(self) -> Any:
        self.peek()
        while True:
            try:
                value, end = _decode(self.text, self.at)
            except json.JSONDecodeError as error:
                if self.ended or not self.at_edge(error):
                    raise _Malformed(f"not valid JSON near {self.where}: {error.msg}") from None
            except (RecursionError, ValueError) as error:
                raise _Malformed(f"not usable near {self.where}: {str(error).split(';')[0]}") from None
            else:
                # At the edge of the window a number may go on: `1` may be the start of `1e+5`.
                if end + 2 < len(self.text) or self.ended:
                    self.at = end
                    return value
            self.more()

    def at_edge(self, error: json.JSONDecodeError) -> bool:
        """Whether more text may mend it: a string that does not end, or something wrong at the very end."""
        return error.msg.startswith("Unterminated") or error.pos > len(self.text) - 16

    def expect(self, characters: str) -> str:
        found = self.peek()
        if not found or found not in characters:
            what = repr(found) if found else "the end of the file"
            raise _Malformed(f"not valid JSON near {self.where}: {what} where one of {characters!r} belongs")
        self.at += 1
        return found

    def peek(self) -> str:
        """The next character that is not white space; empty at the end."""
        while True:
            while self.at < len(self.text) and self.text[self.at] in " \t\n\r":
                self.at += 1
            if self.at < len(self.text):
                return self.text[self.at]
            if self.ended:
                return ""
            self.more()

    def more(self) -> None:
        rest = self.text[self.at :]
        if len(rest) > self.largest:
            raise _Malformed(
                f"not usable near {self.where}: a value of more than {self.largest >> 20} million characters"
            )
        # As much again as is left over: a long value is tried a few times only.
        chunk = self.file.read(max(_CHUNK, len(rest)))
        self.text = rest + chunk
        self.at = 0
        self.ended = not chunk

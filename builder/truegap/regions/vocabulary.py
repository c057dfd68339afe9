"""What open-vocabulary detectors look for, and what the numbers of a detections file mean."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truegap.errors import UserError

LARGEST = 5_000
"""Names of a vocabulary; LVIS has 1,203."""
_LONGEST = 60
_LARGEST_FILE = 200_000_000
"""Bytes; the annotations of LVIS, whose table of categories may be given as it is, take less."""

BUILT_IN = ("everyday", "coco")
"""`everyday`: some 430 common things (ours); `coco`: the 80 classes of COCO with their numbers from 1 to 90."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Names of things, by number.

    Attributes:
        name: `everyday`, `coco`, or the file's name.
        by_number: Name by category id.
    """

    name: str
    by_number: Mapping[int, str]

    @property
    def names(self) -> tuple[str, ...]:
        """Every name once, in the order of the numbers."""
        return tuple(dict.fromkeys(self.by_number[number] for number in sorted(self.by_number)))

    def record(self) -> dict[str, Any]:
        """What a manifest keeps."""
        content = json.dumps(sorted(self.by_number.items()))
        return {"name": self.name, "size": len(self.names), "sha256": hashlib.sha256(content.encode()).hexdigest()}


def read_vocabulary(what: str | Path) -> Vocabulary:
    """A built-in vocabulary, or a user's file.

    Args:
        what: One of `BUILT_IN`, or a file: text with one name per line (line n is category n; an empty line is a number
            without a name), or JSON: a list of `{"id", "name"}`, or anything with such a list under `categories`, as
            the annotation files of COCO and LVIS have it.

    Raises:
        UserError: There is no such file, or it is no vocabulary.
    """
    own = what in BUILT_IN
    path = Path(__file__).parent / "vocabularies" / f"{what}.txt" if own else Path(what)
    if not own and not path.is_file():
        raise UserError(f"vocabulary {what}: no such file, and not one of {', '.join(BUILT_IN)}")
    text = _text(path)
    numbered = _json(path, text) if text.lstrip()[:1] in {"{", "["} else list(enumerate(text.splitlines(), start=1))
    by_number: dict[int, str] = {}
    for number, written in numbered:
        # LVIS writes `bottle_cap` and `ice_cream`; models read `bottle cap`.
        name = " ".join(written.replace("_", " ").split())
        if len(name) > _LONGEST or not name.isprintable():
            raise UserError(f"vocabulary {path}: entry {number} is not a name of at most {_LONGEST} characters")
        if name and by_number.setdefault(number, name) != name:
            raise UserError(f"vocabulary {path}: number {number} stands for two names")
    if not by_number:
        raise UserError(f"vocabulary {path}: holds no name; write one per line")
    if len(by_number) > LARGEST:
        raise UserError(f"vocabulary {path}: more than {LARGEST} names")
    return Vocabulary(str(what) if own else path.name, by_number)


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise UserError(f"vocabulary {path}: too large for a list of names")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"vocabulary {path}: not UTF-8; save it again as UTF-8") from None
    except OSError as error:
        raise UserError(f"vocabulary {path}: cannot be read: {error.strerror}") from None


def _json(path: Path, text: str) -> list[tuple[int, str]]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise UserError(f"vocabulary {path}: begins like JSON and is none") from None
    entries = content.get("categories") if isinstance(content, dict) else content
    if not isinstance(entries, list):
        raise UserError(f"vocabulary {path}: has no list 'categories'")
    return [_entry(path, place, entry) for place, entry in enumerate(entries)]


def _entry(path: Path, place: int, entry: Any) -> tuple[int, str]:
    number, name = (entry.get("id"), entry.get("name")) if isinstance(entry, dict) else (None, None)
    if type(number) is not int or not isinstance(name, str):
        raise UserError(f"vocabulary {path}: category {place} lacks a whole-number 'id' and a 'name'")
    return number, name

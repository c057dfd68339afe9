"""What a model's files say of it, without loading anything: the same for a folder and for the Hub."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Protocol

from truegap.errors import UserError
from truegap.hub.snapshots import folder_at
from truegap.leaderboard.request import Library
from truegap.models.files import SIDE_FILES
from truegap.results.show import plain

CONFIG = "config.json"
OPEN_CLIP = "open_clip_config.json"
CARD = "README.md"
WEIGHTS: dict[Library, tuple[str, ...]] = {
    "transformers": ("model*.safetensors",),
    "open_clip": ("open_clip_*.safetensors",),
}
"""Weight files at the top of a model, by the library that reads them."""

_LARGEST_CONFIG = 4 * 1024 * 1024
_LARGEST_CARD = 1024 * 1024
_LICENCE = 60
_NO_WORD = ("", *"[{&*!|>%@`~")
"""How a value begins that is none, or more than a word."""
_LENGTH = 8
_MOST_FILES = 256
_MOST_DIMENSIONS = 16
_MOST_PER_BYTE = 8
"""Numbers in a byte: none takes less than a bit."""


class Source(Protocol):
    """Where a model's files are."""

    @property
    def model(self) -> str:
        """`ORG/NAME`, or a folder."""

    @property
    def revision(self) -> str:
        """What pins it."""

    @property
    def files(self) -> Mapping[str, int]:
        """Bytes of every file, by path."""

    def read(self, path: str, limit: int, start: int = 0) -> bytes | None:
        """At most `limit` bytes of a file from `start` on; None if it is not there."""


@dataclass(frozen=True, slots=True)
class FolderModel:
    """A model in a folder of this machine; its files are its revision."""

    model: str
    revision: str
    files: Mapping[str, int]

    def read(self, path: str, limit: int, start: int = 0) -> bytes | None:
        """At most `limit` bytes of a file from `start` on; None if it is not there."""
        if path not in self.files:
            return None
        with (Path(self.model) / path).open("rb") as file:
            file.seek(start)
            return file.read(limit)


def look_at_folder(folder: str) -> FolderModel:
    """A model in a folder: what would be loaded of it, and a SHA-256 over that.

    Raises:
        UserError: There is no such folder.
    """
    found = folder_at(folder)
    if found is None:
        raise UserError(f"model {plain(folder)}: no such folder, and not ORG/NAME on the Hub")
    place = found.resolve()
    digest, files = hashlib.sha256(), {}
    for path in sorted(each for each in place.rglob("*") if each.is_file() and each.resolve().is_relative_to(place)):
        name = path.relative_to(place).as_posix()
        files[name] = path.stat().st_size
        if name == CARD or any(fnmatch(name, pattern) for pattern in (*SIDE_FILES, "*.safetensors")):
            with path.open("rb") as file:
                digest.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\0".encode())
    return FolderModel(str(place), f"sha256:{digest.hexdigest()}", files)


def library_of(source: Source) -> Library:
    """Which library a model's files are for."""
    return "open_clip" if OPEN_CLIP in source.files and CONFIG not in source.files else "transformers"


def needed(source: Source, library: Library) -> dict[str, int]:
    """Bytes of the files that an evaluation reads, by path: small files and safetensors."""
    patterns = [*SIDE_FILES, *WEIGHTS[library]]
    return {path: size for path, size in source.files.items() if any(fnmatch(path, each) for each in patterns)}


def weights(source: Source, library: Library) -> dict[str, int]:
    """Bytes of the weight files at the top of the model, by path."""
    return {
        path: size
        for path, size in source.files.items()
        if "/" not in path and any(fnmatch(path, pattern) for pattern in WEIGHTS[library])
    }


def read_json(source: Source, path: str) -> dict[str, Any]:
    """A small JSON object of a model.

    Raises:
        UserError: It is absent, too large, or something else.
    """
    data = source.read(path, _LARGEST_CONFIG + 1)
    if data is None:
        raise UserError(f"it has no {path}; save it with save_pretrained")
    try:
        content = json.loads(data) if len(data) <= _LARGEST_CONFIG else None
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise UserError(f"its {path} is not a JSON object of at most {_LARGEST_CONFIG} bytes; save it again")
    return content


def licence_of(source: Source) -> str | None:
    """The licence that a model's card names, in one short line; None where there is no card, or none in it."""
    data = source.read(CARD, _LARGEST_CARD)
    if data is None:
        return None
    # Line by line: a parser of YAML takes minutes for a few thousand brackets that somebody puts there.
    opening, *lines = data.decode(errors="replace").lstrip("\ufeff").splitlines() or [""]
    fields: dict[str, str] = {}
    for line in lines if opening.strip() == "---" else ():
        if line.strip() == "---":
            break
        name, _, value = line.partition(":")
        fields.setdefault(name, plain(value.partition(" #")[0].strip().strip("'\""), _LICENCE))
    found = fields.get("license", "")
    if found == "other":
        found = fields.get("license_name") or found
    return None if found[:1] in _NO_WORD else found


def count_parameters(source: Source, files: Mapping[str, int], largest_headers: int) -> int:
    """Numbers in the tensors of weight files, by the files' headers alone.

    Args:
        source: Where the files are.
        files: Bytes of each, by path.
        largest_headers: Bytes of all headers together, at most: they are read before anybody is counted.

    Raises:
        UserError: There are too many files, their headers are larger than allowed, one is not of safetensors, or it
            promises more than its file holds.
    """
    if len(files) > _MOST_FILES:
        raise UserError(f"its weights are in {len(files):,} files, and {_MOST_FILES} are read at most; save it again")
    total, left = 0, largest_headers
    for path, size in sorted(files.items()):
        count, length = _count(source, path, size, left)
        total, left = total + count, left - length
    return total


def _count(source: Source, path: str, size: int, largest: int) -> tuple[int, int]:
    """Numbers in the tensors of one file, and bytes of its header."""
    start = source.read(path, _LENGTH) or b""
    length = int.from_bytes(start, "little")
    if len(start) < _LENGTH or length > size - _LENGTH:
        raise UserError(f"{path} is no safetensors file; save the model again")
    if length > largest:
        raise UserError(f"the header of {path} has {length:,} bytes, and {largest:,} are read at most")
    try:
        header = json.loads(source.read(path, length, _LENGTH) or b"")
        tensors = [each for name, each in header.items() if name != "__metadata__"]
        total, end = 0, 0
        for each in tensors:
            total += _product(each["shape"])
            end = max(end, _whole(each["data_offsets"][1]))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        raise UserError(f"the header of {path} is not one of safetensors; save the model again") from None
    held = size - _LENGTH - length
    if end > held or total > held * _MOST_PER_BYTE:
        raise UserError(f"the header of {path} promises more than the file holds; upload it again")
    return total, length


def _product(shape: Any) -> int:
    """Numbers in a tensor; few and small factors, since a long product takes hours."""
    if not isinstance(shape, list) or len(shape) > _MOST_DIMENSIONS:
        raise ValueError(len(shape))
    return math.prod(map(_whole, shape))


def _whole(value: Any) -> int:
    if not isinstance(value, int) or not 0 <= value < 1 << 50:
        raise ValueError(value)
    return value

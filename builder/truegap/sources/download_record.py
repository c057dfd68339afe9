"""`downloads.jsonl`: what came of every address, a line each, so that nothing is fetched twice.

Anybody could have written the file: what is not as it should be counts for nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from truegap.files.atomic import write_bytes
from truegap.files.values import is_plain

MANIFEST = "downloads.jsonl"

_UNUSUAL = re.compile(r"[^\w (),.-]")
"""What no reason of ours has."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one address, as `downloads.jsonl` holds it.

    Attributes:
        id: Of the image.
        url: As published.
        file: Name of the stored file; empty if there is none.
        sha256: Of the stored file.
        n_bytes: Its size.
        width: In pixels.
        height: In pixels.
        reason: Why there is no image.
        lasting: Another run would find the same: the address is dead.
    """

    id: str
    url: str
    file: str = ""
    sha256: str = ""
    n_bytes: int = 0
    width: int = 0
    height: int = 0
    reason: str = ""
    lasting: bool = False


def read_manifest(folder: Path) -> dict[str, Outcome]:
    """What earlier runs recorded, by image id; of several lines the last counts, and a torn line counts for nothing."""
    found = {}
    path = folder / MANIFEST
    if path.is_file():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                outcome = Outcome(**json.loads(line))
            except (ValueError, TypeError, RecursionError):
                continue
            if is_plain(outcome.id) and (outcome.file == "" or is_plain(outcome.file)):
                found[outcome.id] = outcome
    return found


def verified(folder: Path) -> dict[str, str]:
    """A reason by image id for every file that is no longer what was downloaded; without a manifest there is none."""
    return {
        image: "image file differs from what was downloaded"
        for image, outcome in read_manifest(folder).items()
        if outcome.file and (folder / outcome.file).is_file() and not intact(folder, outcome)
    }


def refused(folder: Path) -> dict[str, str]:
    """The recorded reason by image id for every image that could not be downloaded."""
    return {
        image: _UNUSUAL.sub("", str(outcome.reason))[:80] or "no reason"
        for image, outcome in read_manifest(folder).items()
        if not outcome.file
    }


class Journal:
    """Lines added to the manifest as they come, from several threads."""

    def __init__(self, path: Path) -> None:
        """Opens the manifest to add to it."""
        self._lock = threading.Lock()
        self._file = path.open("ab")
        if self._file.tell():
            # A line that a kill tore apart must not run into the next one.
            self._file.write(b"\n")

    def write(self, outcome: Outcome) -> None:
        """Adds a line, which is in the file when this returns."""
        with self._lock:
            self._file.write(_line(outcome).encode())
            self._file.flush()

    def close(self) -> None:
        """No more comes."""
        self._file.close()


def write_manifest(folder: Path, outcomes: Mapping[str, Outcome]) -> None:
    """Writes the whole manifest, a line per image, sorted by id."""
    write_bytes(folder / MANIFEST, "".join(_line(outcomes[image]) for image in sorted(outcomes)).encode())


def _line(outcome: Outcome) -> str:
    fields: dict[str, Any] = asdict(outcome)
    return json.dumps(fields, ensure_ascii=True) + "\n"


def intact(folder: Path, outcome: Outcome) -> bool:
    """Whether the file that was stored is there as it was stored."""
    try:
        return hashlib.sha256((folder / outcome.file).read_bytes()).hexdigest() == outcome.sha256
    except OSError:
        return False

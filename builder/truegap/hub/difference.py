"""What is to be published against what is there: compared by content, without downloading anything."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from truegap.hub.tree import Held

File = Path | bytes
"""A file to be published: on this disk, or made here."""

KEPT = (".gitattributes",)
"""What the Hub itself puts into a repository; it is neither compared nor removed."""

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Difference:
    """Sizes in bytes by path; of what is removed, those that are there.

    Attributes:
        added: Files that are not there.
        changed: Files that are there with other content.
        removed: Files that are there and not to be published.
        same: How many files are there already.
    """

    added: Mapping[str, int]
    changed: Mapping[str, int]
    removed: Mapping[str, int]
    same: int

    @property
    def is_empty(self) -> bool:
        """Whether everything is there, and nothing else."""
        return not (self.added or self.changed or self.removed)

    @property
    def to_send(self) -> int:
        """Bytes of what is added or changed."""
        return sum(self.added.values()) + sum(self.changed.values())

    def counts(self) -> str:
        """In a few words, such as `2 added, 1 changed, 0 removed`."""
        return f"{len(self.added)} added, {len(self.changed)} changed, {len(self.removed)} removed"


def difference(files: Mapping[str, File], there: Mapping[str, Held]) -> Difference:
    """Compares files with those of a repository.

    Args:
        files: What is to be published, by path.
        there: What the repository holds, by path.

    Raises:
        OSError: A file cannot be read.
    """
    added, changed, same = {}, {}, 0
    for path, file in sorted(files.items()):
        held = there.get(path)
        if path in KEPT:
            continue
        if held is None:
            added[path] = size(file)
        elif is_same(file, held):
            same += 1
        else:
            changed[path] = size(file)
    removed = {path: held.size for path, held in sorted(there.items()) if path not in files and path not in KEPT}
    return Difference(added, changed, removed, same)


def size(file: File) -> int:
    """Of a file, in bytes."""
    return len(file) if isinstance(file, bytes) else file.stat().st_size


def is_same(file: File, held: Held) -> bool:
    """Whether a file has the content of one in a repository."""
    if size(file) != held.size:
        return False
    if held.sha256 is not None:
        return _digest(file, hashlib.sha256()) == held.sha256
    git = hashlib.sha1(b"blob %d\0" % held.size, usedforsecurity=False)
    return _digest(file, git) == held.git_id


def _digest(file: File, digest: hashlib._Hash) -> str:
    if isinstance(file, bytes):
        digest.update(file)
    else:
        with file.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    return digest.hexdigest()

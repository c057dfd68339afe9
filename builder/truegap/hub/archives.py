"""An archive of a source that is on the Hub: its files in a folder of this disk, what is packed unpacked."""

from __future__ import annotations

import os
import shutil
import tarfile
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from filelock import FileLock

from truegap.errors import UserError, first_line
from truegap.files.values import is_plain_path
from truegap.hub.snapshots import Files, locate, split_revision

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], object]]]

PACKED = (".tar.gz", ".tgz", ".tar")
FILES = ("*.json", "*.csv", "*.tsv", "*.png", "*.jpg", "*.jpeg", "*.webp", *(f"*{ending}" for ending in PACKED))
"""What archives of images and tables consist of; never code."""

_LARGEST_RATIO = 100
"""Unpacked to packed: images pack hardly at all, tables ten times or so."""
_ALWAYS_FINE = 10_000_000


def bring(spec: str, cache: Path, progress: Progress) -> Files:
    """The folder of an archive: as it is, or brought from the Hub and unpacked.

    Files that are packed come to lie in a folder of their name: what `images.tar.gz` holds in `images/`. An archive
    that was brought before is not brought again, and one that was interrupted goes on.

    Args:
        spec: A folder, or `ORG/NAME[@REVISION]` of a dataset on the Hub.
        cache: Where unpacked archives are kept, one folder for each commit.
        progress: Opens a display with a title and the number of files, and gives what to call with those just done.

    Raises:
        UserError: It is neither, or the files cannot be had or unpacked.
    """
    found = locate(spec, FILES, "the folder of an archive as it unpacks")
    if found.commit is None:
        return found
    out = cache / split_revision(spec)[0].replace("/", "--") / found.commit
    out.mkdir(parents=True, exist_ok=True)
    files = sorted(path for path in found.folder.rglob("*") if path.is_file())
    with FileLock(out / ".lock"), progress(f"unpacking {spec}", len(files)) as advance:
        for path in files:
            _place(path, found.folder, out)
            advance(1)
    return Files(out, found.commit)


def _place(path: Path, folder: Path, out: Path) -> None:
    """A file of the snapshot at its place; what is there was put there whole."""
    ending = next((each for each in PACKED if path.name.endswith(each)), "")
    name = path.relative_to(folder).as_posix().removesuffix(ending)
    target = out / name
    if ending and any((folder / f"{name}{each}").exists() for each in ("", *PACKED) if each != ending):
        raise UserError(f"the dataset holds both {name}{ending} and another {name}: give a folder with one of them")
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{target.name}.part")
    if ending:
        shutil.rmtree(aside, ignore_errors=True)
        unpack(path, aside)
    else:
        shutil.copyfile(path, aside)
    aside.replace(target)


def unpack(path: Path, folder: Path) -> None:
    """The files of a tar in a folder; nothing but files, and nothing outside of it.

    Args:
        path: The tar, compressed or not.
        folder: Made if absent.

    Raises:
        UserError: It is damaged, unpacks to far more than its size, or holds a link, a device or a path that leads
            elsewhere; the message names the first such member.
    """
    left = _ALWAYS_FINE + _LARGEST_RATIO * path.stat().st_size
    try:
        with tarfile.open(path, "r|*") as members:
            folder.mkdir(parents=True, exist_ok=True)
            for member in members:
                name = os.path.normpath(member.name) if member.name.startswith("./") else member.name
                if member.isdir():
                    continue
                if not member.isreg() or not is_plain_path(name):
                    kind = "is no file" if not member.isreg() else "leads out of its folder"
                    raise UserError(f"{path.name}: the member {member.name[:80]!r} {kind}: it is not unpacked")
                left -= member.size
                if left < 0:
                    raise UserError(f"{path.name}: unpacks to more than {_LARGEST_RATIO} times its size: not unpacked")
                _write(members, member, folder / name)
    except (tarfile.TarError, zlib.error, EOFError, ValueError) as error:
        raise UserError(
            f"{path.name}: cannot be unpacked ({first_line(error)}): remove {path} to fetch it again"
        ) from None


def _write(members: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    content = members.extractfile(member)
    if content is None:
        raise tarfile.ReadError(f"{member.name[:80]!r} has no content")
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        shutil.copyfileobj(content, file)

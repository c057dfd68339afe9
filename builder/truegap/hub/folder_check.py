"""What a folder must not hold before it is published: links, foreign files, pickles, secrets."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from truegap.errors import UserError
from truegap.files.values import is_plain_path

_IGNORED_FOLDERS = {"__pycache__", ".pytest_cache", ".ruff_cache", ".mypy_cache", ".ipynb_checkpoints"}
"""What tools leave behind; it is neither published nor complained about."""
_MAY_HIDE = {".gitattributes", ".gitignore"}
_PICKLES = {".pkl", ".pickle", ".pt", ".pth", ".joblib", ".dill", ".npy", ".npz", ".ckpt", ".h5"}
_PICKLE = b"\x80"
"""First byte of every pickle since protocol 2."""
_TOKEN = re.compile(rb"\bhf_[A-Za-z0-9]{30,}\b")


def plain_files(folder: Path) -> dict[str, Path]:
    """Every file below a folder by its path there; none of them is read.

    Raises:
        UserError: There is no such folder, or something in it is a link or a special file, is hidden, or has a name
            that leads elsewhere.
    """
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}")
    return {path.relative_to(folder).as_posix(): path for path in sorted(_walk(folder, folder))}


def _walk(folder: Path, top: Path) -> Iterator[Path]:
    for entry in os.scandir(folder):
        path = Path(entry.path)
        where = path.relative_to(top).as_posix()
        if entry.is_symlink():
            raise UserError(f"{path}: is a link, which is not published: put the file itself there")
        if entry.is_dir():
            if entry.name in _IGNORED_FOLDERS:
                continue
            _check_name(where, path)
            yield from _walk(path, top)
        elif not entry.is_file():
            raise UserError(f"{path}: is no plain file: remove it")
        else:
            _check_name(where, path)
            yield path


def _check_name(where: str, path: Path) -> None:
    if not is_plain_path(where):
        raise UserError(f"{str(path)!r}: the name does not fit a repository: rename it")
    if path.name.startswith(".") and path.name not in _MAY_HIDE:
        raise UserError(f"{path}: is hidden, and may hold what nobody should see: remove it")


def check_content(files: Mapping[str, Path]) -> None:
    """That code and text to be published are neither pickles nor hold a token of the Hub, wherever in them.

    Raises:
        UserError: One of them is or does.
    """
    for path in files.values():
        begins, has_token = _looked_through(path)
        if path.suffix.lower() in _PICKLES or begins == _PICKLE:
            raise UserError(f"{path}: is a pickle or may hold one, which could run anything: remove it")
        if has_token:
            raise UserError(f"{path}: holds what looks like a token of the Hub: remove it, and revoke it on the Hub")


def _looked_through(path: Path) -> tuple[bytes, bool]:
    """The first byte of a file, and whether a token is in it; the file may be larger than the memory."""
    if not path.stat().st_size:
        return b"", False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content[:1], _TOKEN.search(content) is not None

"""truegap itself as a wheel: a Space installs the very code that it was published from, which no index has to hold."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import truegap
from truegap.errors import UserError
from truegap.hub.folder_check import check_content, plain_files

_EPOCH = "1580601600"
"""2 February 2020: every file of a wheel has this date, so that the same code is the same wheel."""
_PACKAGE, _CARRIED = "builder/truegap/", "truegap/_house/"
"""Where the package is in a checkout, and where a wheel has what is beside it there."""
_BUILD = "import sys, hatchling.build; hatchling.build.build_wheel(sys.argv[1])"


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel.

    Attributes:
        name: Of its file, which says what is in it.
        content: Its bytes.
    """

    name: str
    content: bytes

    def requirement(self, extras: str, address: str) -> str:
        """The line of a requirements file that installs it, checked against its content.

        Args:
            extras: In brackets, or nothing.
            address: Of the folder that it can be had from.
        """
        return f"truegap{extras} @ {address}/{self.name}#sha256={sha256(self.content).hexdigest()}"


def checkout() -> Path | None:
    """The checkout that this truegap runs from; None where it is installed."""
    package = Path(truegap.__file__).resolve().parent
    top = package.parents[1]
    try:
        project = tomllib.loads((top / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return top if project.get("project", {}).get("name") == "truegap" and package == top / _PACKAGE else None


def build_wheel(top: Path) -> Wheel:
    """The wheel of a checkout as it lies there, by the project's own build backend; the same files give the same bytes.

    Raises:
        UserError: The backend is not installed or cannot build it, or something in the package is not published, is a
            link, or is not known to git where that keeps the checkout.
    """
    with tempfile.TemporaryDirectory(prefix="truegap-wheel-") as folder:
        # Our own interpreter, in a process of its own: a backend is told by the working folder what to build.
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", _BUILD, folder],
            cwd=top,
            env={**os.environ, "SOURCE_DATE_EPOCH": _EPOCH},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            if "No module named 'hatchling" in done.stderr:
                raise UserError("a Space gets a wheel of this checkout, which needs hatchling: pip install hatchling")
            reason = done.stderr.strip().rpartition("\n")[2][:300]
            raise UserError(f"{top}: no wheel can be built of it: {reason}")
        (file,) = Path(folder).glob("*.whl")
        inside = Path(folder) / "truegap wheel"
        with zipfile.ZipFile(file) as archive:
            archive.extractall(inside)
        # Whatever lies in the package goes out with it, for all to see.
        packed = plain_files(inside)
        _check_origins(top.resolve(), packed)
        check_content(packed)
        return Wheel(file.name, file.read_bytes())


def _check_origins(top: Path, packed: Iterable[str]) -> None:
    """That everything packed is a file of the checkout itself and belongs to it: a note or a label file does not."""
    known = _known_to_git(top)
    for name in packed:
        if not name.startswith("truegap/"):
            continue  # what the backend writes
        carried = name.startswith(_CARRIED)
        source = name.removeprefix(_CARRIED) if carried else _PACKAGE + name.removeprefix("truegap/")
        if known is not None and source not in known:
            raise UserError(
                f"{top / source}: would go out with truegap's wheel, and git does not know it: move it out of the "
                "checkout, or `git add` it"
            )
        if (top / source).resolve() != top / source:
            raise UserError(f"{top / source}: is a link, which is not published: put the file itself there")


def _known_to_git(top: Path) -> set[str] | None:
    """Every file of a checkout that git keeps or is about to; None for a checkout that it does not keep."""
    if not (top / ".git").exists():
        return None
    try:
        # Whoever owns the checkout: its code is run just the same.
        done = subprocess.run(
            ["git", "-c", "safe.directory=*", "ls-files", "-z"],  # noqa: S607  # the user's own git
            cwd=top,
            capture_output=True,
            check=False,
        )
    except OSError:
        raise UserError(f"{top}: what belongs to it is what git knows, and there is no git: install it") from None
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().partition("\n")[0][:300]
        raise UserError(f"{top}: git does not say what belongs to it: {reason}")
    return set(done.stdout.decode(errors="surrogateescape").split("\0"))

"""truegap itself as a wheel: a Space installs the very code that it was published from, which no index has to hold."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import truegap
from truegap.errors import UserError
from truegap.hub.folder_check import check_content, plain_files

_EPOCH = "1580601600"
"""2 February 2020: every file of a wheel has this date, so that the same code is the same wheel."""
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
    return top if project.get("project", {}).get("name") == "truegap" and package == top / "builder/truegap" else None


def build_wheel(top: Path) -> Wheel:
    """The wheel of a checkout as it lies there, by the project's own build backend; the same files give the same bytes.

    Raises:
        UserError: The backend is not installed or cannot build it, or what is not published lies in the package.
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
        # Whatever lies in the package goes out with it.
        check_content(plain_files(inside))
        return Wheel(file.name, file.read_bytes())

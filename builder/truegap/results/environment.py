"""What ran: package versions and the state of the code, for the run record."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from truegap import __version__
from truegap.results.records import Environment

PACKAGES = ("numpy", "pillow", "opencv-python-headless", "datasets", "torch", "transformers", "open_clip_torch", "timm")


def environment() -> Environment:
    """The environment of this process."""
    packages = {}
    for name in PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    commit = _git("rev-parse", "HEAD")
    return Environment(
        truegap=__version__,
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        packages=packages,
        commit=commit or None,
        dirty=bool(_git("status", "--porcelain", "--untracked-files=no")) if commit else None,
    )


def _git(*arguments: str) -> str:
    """What git says of the checkout that this package runs from; nothing where it is installed."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return ""
    try:
        done = subprocess.run(  # noqa: S603  a fixed command
            ["git", "-C", str(root), *arguments],  # noqa: S607
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()

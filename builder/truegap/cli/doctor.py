"""`truegap doctor`: what is installed, what is missing, and which command mends it."""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import Annotated

import typer
from packaging.requirements import Requirement

from truegap import __version__

_HELP = """Say what is installed, what is missing for which task, and which command mends it.

Nothing is downloaded and nothing is changed. Exits with 1 where truegap itself lacks something.

Examples:

  truegap doctor

  truegap doctor --json
"""

_PURPOSES = {
    "models": "evaluating models, detectors, spurious features",
    "quantized": "weights in 4 or 8 bits",
    "space": "the pages: leaderboard and recognition",
    "ray": "--engine ray",
    "counterfactual": "generating and editing pictures",
}
_LEAST_FREE = 2 * 1024**3
"""Bytes below which a cache soon has no room for a model."""

VersionOf = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Part:
    """What truegap, or one of its extras, needs.

    Attributes:
        name: Of the extra; `truegap` for what everything needs.
        purpose: What it is for.
        found: Version by package.
        lacking: By package what is wrong: it is missing, or too old.
        remedy: The command that mends it; empty where nothing is lacking.
    """

    name: str
    purpose: str
    found: dict[str, str]
    lacking: dict[str, str]
    remedy: str


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("doctor", help=_HELP)(doctor)


def doctor(as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """See `_HELP`."""
    parts = examined(requires("truegap") or [], metadata("truegap").get_all("Provides-Extra") or [])
    place = surroundings()
    if as_json:
        told = {"truegap": __version__, "parts": [asdict(each) for each in parts], "surroundings": place}
        typer.echo(json.dumps(told, indent=1))
    else:
        typer.echo("\n".join([f"truegap {__version__}", *map(_line, parts), ""]))
        typer.echo("\n".join(f"{name:<16}{said}" for name, said in place.items()))
    if any(each.lacking for each in parts if each.name == "truegap"):
        raise typer.Exit(1)


def examined(required: Iterable[str], extras: Iterable[str], version_of: VersionOf = version) -> list[Part]:
    """What truegap and each extra for users needs, and what of it is there.

    Args:
        required: Requirements as a package's metadata has them.
        extras: Those that it offers.
        version_of: Gives the version of a package, or raises `PackageNotFoundError`.
    """
    needs = [Requirement(each) for each in required]
    base = [each for each in needs if each.marker is None or each.marker.evaluate({"extra": ""})]
    parts = [_part("truegap", "building, scoring, reports, publishing", base, version_of)]
    for extra in (name for name in _PURPOSES if name in set(extras)):
        own = [each for each in needs if each not in base and each.marker and each.marker.evaluate({"extra": extra})]
        parts.append(_part(extra, _PURPOSES[extra], own, version_of))
    return parts


def _part(name: str, purpose: str, needs: Iterable[Requirement], version_of: VersionOf) -> Part:
    found, lacking = {}, {}
    for each in sorted(needs, key=lambda need: need.name):
        try:
            found[each.name] = version_of(each.name)
        except PackageNotFoundError:
            lacking[each.name] = "missing"
            continue
        if not each.specifier.contains(found[each.name], prereleases=True):
            lacking[each.name] = f"{found[each.name]}, needs {each.specifier}"
    remedy = f"pip install '{'truegap' if name == 'truegap' else f'truegap[{name}]'}'" if lacking else ""
    return Part(name, purpose, found, lacking, remedy)


def _line(part: Part) -> str:
    name = part.name if part.name == "truegap" else f"truegap[{part.name}]"
    if not part.lacking:
        return f"  {name:<26}complete: {part.purpose}"
    what = ", ".join(f"{package} ({why})" for package, why in part.lacking.items())
    return f"  {name:<26}lacks {what}: {part.purpose}\n  {'':<26}{part.remedy}"


def surroundings() -> dict[str, str]:
    """What else decides how truegap works here, by name."""
    from truegap.cores import cores
    from truegap.resources import cache_folder

    offline = os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}
    return {
        "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "cores": str(cores()),
        "device": _device(),
        "cache": _room(cache_folder()),
        "hub": "offline, since HF_HUB_OFFLINE is set: what is cached is found" if offline else "asked where needed",
    }


def _room(folder: Path) -> str:
    """Whether a folder, or the nearest one above it that exists, can be written, and how much is free."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if not os.access(there, os.W_OK):
        return f"{folder} cannot be written: set TRUEGAP_CACHE to a folder of your own"
    free = shutil.disk_usage(there).free
    said = f"{folder}, {free / 1024**3:.0f} GiB free"
    return said if free >= _LEAST_FREE else f"{said}: little room for models; set TRUEGAP_CACHE to a larger disk"


def _device() -> str:
    """Where models would run."""
    try:
        from truegap.models.devices import resolve_device
    except ImportError:
        return "unknown without truegap[models]"
    return resolve_device("auto").type

"""The house as `CONTRIBUTING.md` draws it: arrows between rooms point one way, and nothing goes round in a circle.

Every import counts, also those inside functions and those for types alone: a circle is one however late it closes.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

import truegap

HOUSE = Path(truegap.__file__).parent
ROOT = HOUSE.parents[1]

FLOORS = (
    ("errors", "cores", "schema"),
    ("resources", "scores", "perturbations", "files"),
    ("regions",),
    ("sources",),
    ("build", "results"),
    ("hub",),
    ("models",),
    ("engine", "synthetic", "counterfactual"),
    ("protocols",),
    ("spurious",),
    ("instrument", "recognition", "figures"),
    ("report", "leaderboard"),
    ("cli",),
)
"""From the ground up: a room imports from the floors below it, and from nothing beside it."""

UPWARDS = {
    ("regions.models", "models.files"): "detectors are models: found and fetched as all models are",
    ("regions._transformers", "models.files"): "likewise",
    ("regions._transformers", "models.devices"): "and loaded where all models run",
    ("regions._transformers", "models.quiet"): "without the bars of the library",
    ("hub.load", "engine"): "`truegap.load` rebuilds a recipe over the cores",
    ("models.registry", "synthetic.reference"): "`reference:` models are made by the generator's room",
}
"""The few imports that lead up, each from one module to one module."""

LONGEST = 400


@cache
def modules() -> dict[str, Path]:
    """Every module by its name without `truegap.`; the package itself is empty."""
    found = {}
    for path in HOUSE.rglob("*.py"):
        parts = path.relative_to(HOUSE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """What a file imports of the house: module, and the name that is taken from it (empty for the module itself)."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            for each in node.names:
                if each.name.partition(".")[0] == "truegap":
                    yield each.name.removeprefix("truegap").removeprefix("."), ""
        elif isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").partition(".")[0] == "truegap"):
            module = (node.module or "").removeprefix("truegap").removeprefix(".")
            if node.level:
                assert node.level == 1, f"{path}: imports from above its folder"
                module = ".".join([*path.relative_to(HOUSE).parts[:-1], node.module or ""]).removesuffix(".")
            for each in node.names:
                inner = f"{module}.{each.name}".removeprefix(".")
                yield (inner, "") if inner in modules() else (module, each.name)


@cache
def arrows() -> dict[str, frozenset[str]]:
    """By module, the modules that it imports; the package itself stands for nothing but its version and its doors."""
    return {
        name: frozenset(to for to, _ in imported(path) if to and to != name)
        for name, path in modules().items()
        if name not in {"", "__main__"}
    }


def room(module: str) -> str:
    return module.partition(".")[0]


def test_every_room_stands_on_a_floor():
    rooms = [each for floor in FLOORS for each in floor]
    assert sorted(rooms) == sorted({room(name) for name in modules()} - {"", "__main__"})


def test_arrows_point_down():
    floor = {each: height for height, rooms in enumerate(FLOORS) for each in rooms}
    led = {(name, to) for name, found in arrows().items() for to in found if room(name) != room(to)}
    up = {(name, to) for name, to in led if floor[room(to)] >= floor[room(name)]}
    assert not up - UPWARDS.keys(), "an import leads up, or to a room beside: move what both need into a lower room"
    assert not UPWARDS.keys() - up, "these are imported no longer: take them off the list"


def test_no_modules_import_each_other_in_a_circle():
    """Taking away, again and again, whatever imports nothing that is left leaves nothing."""
    left = {name: set(found) for name, found in arrows().items()}
    while free := [name for name, found in left.items() if not found & left.keys()]:
        for name in free:
            del left[name]
    assert not left, f"a circle is among {sorted(left)}"


@pytest.mark.parametrize("place", ["builder/truegap", "spaces", "metrics", "benchmarks", "docs"])
def test_what_is_private_stays_in_its_room(place):
    found = []
    for path in sorted((ROOT / place).rglob("*.py")):
        own = room(".".join(path.relative_to(HOUSE).parts)) if path.is_relative_to(HOUSE) else "no room"
        for module, name in imported(path):
            hidden = [part for part in module.split(".") if part.startswith("_") and not part.startswith("__")]
            if (hidden and room(module) != own) or (name.startswith("_") and not name.startswith("__")):
                found.append(f"{path.relative_to(ROOT)}: {module} {name}".rstrip())
    assert not found


def libraries(path: Path, *, at_once: bool) -> set[str]:
    """The top-level packages that a file imports, of those that load with it alone if `at_once`."""
    nodes = tree(path).body if at_once else ast.walk(tree(path))
    names = chain.from_iterable(
        [each.name for each in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        for node in nodes
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and not node.level)
    )
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize(
    ("library", "rooms", "at_once"),
    [
        ("torch", {"models"}, True),
        ("transformers", {"models"}, True),
        ("gradio", set(), False),
        ("ray", {"engine"}, False),
        ("diffusers", {"counterfactual"}, False),
        ("typer", {"cli"}, False),
        ("rich", {"cli"}, False),
    ],
)
def test_a_library_is_used_where_it_belongs(library, rooms, at_once):
    users = {room(name) for name, path in modules().items() if library in libraries(path, at_once=at_once)}
    assert users <= rooms


def test_nothing_but_hub_talks_to_the_hub():
    """What others take of its library is where things lie on this disk, and how to keep it quiet."""
    taken = {
        each.name
        for name, path in modules().items()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("huggingface_hub") and room(name) != "hub"
        for each in node.names
    }
    assert taken <= {"constants", "repo_folder_name", "are_progress_bars_disabled", "disable_progress_bars"}


def test_scores_need_numpy_alone():
    used = set[str]()
    for name, path in modules().items():
        if room(name) == "scores":
            used |= libraries(path, at_once=False)
            assert {room(to) for to in arrows()[name]} <= {"scores"}, name
    assert used - set(sys.stdlib_module_names) == {"numpy"}


def test_modules_are_small():
    long = {name: lines for name, path in modules().items() if (lines := len(path.read_text().splitlines())) > LONGEST}
    assert not long

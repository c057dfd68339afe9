"""`truegap.load`: a published recipe and the user's copy of the source become a dataset."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truegap.build.manifest import read_manifest
from truegap.build.recipe import FILE, Comparison, Recipe, compare, plan_from, read_recipe
from truegap.build.shard import build_shard
from truegap.build.workspace import Workspace
from truegap.engine import run_tasks
from truegap.hub.benchmark import download
from truegap.schema import Selection

if TYPE_CHECKING:
    from datasets import Dataset

_SHOWN = 5


def open_recipe(spec: str) -> Recipe:
    """A recipe in a folder, or on the Hub (`ORG/NAME[@TAG]`).

    Raises:
        UserError: It is neither, or broken.
    """
    folder = Path(spec).expanduser()
    if not folder.is_dir():
        folder, _ = download(spec, [FILE], "a recipe")
    return read_recipe(folder)


def read_source(recipe: Recipe, source: Path, **options: Any) -> Selection:
    """What the user's copy gives under the recipe's options.

    Args:
        recipe: The recipe.
        source: The archive as it unpacks.
        **options: Options of the source that a recipe cannot hold, such as `labels_file`.

    Raises:
        UserError: The archive cannot be read.
    """
    from truegap import sources

    known = sources.source(recipe.benchmark).options.model_fields
    # A file of the recipe's author is not the user's.
    chosen = {name: value for name, value in recipe.selection.items() if name in known and not name.endswith("_file")}
    return sources.read(recipe.benchmark, source, **{**chosen, **options})


def rebuild(
    recipe: Recipe,
    selection: Selection,
    out: Path,
    *,
    configs: tuple[str, ...] | None = None,
    spread: Callable[..., Any] = run_tasks,
    workers: int | None = None,
    advance: Callable[[int], object] = lambda _: None,
) -> Comparison:
    """Builds from a recipe, or takes a finished build, and compares it with what was published.

    Raises:
        UserError: None of the images is there, or `out` holds something else.
    """
    workspace = Workspace(plan_from(recipe, selection, configs), out)
    if not workspace.finished:
        with workspace.opened():
            for done in spread(build_shard, workspace.tasks(), workers=workers):
                advance(len(done["image_id"]) + len(done["dropped"]))
            workspace.finish()
    return compare(recipe, read_manifest(out))


def load(recipe: str, config: str, *, source: str | Path, workers: int | None = None, **options: Any) -> Dataset:
    """Loads a config of a benchmark that is published as a recipe, from the user's copy of its source.

    What is built is kept in the user's cache, so a second call reads it.

    Args:
        recipe: A folder, or `ORG/NAME[@TAG]` on the Hub.
        config: Such as `background-strong`.
        source: The archive as it unpacks.
        workers: Processes; default: all cores.
        **options: Options of the source that a recipe cannot hold, such as `labels_file`.

    Returns:
        The dataset, like `load_dataset(…, split="test")`. Images that are missing or differ are named in a warning.

    Raises:
        UserError: The recipe, the config or the source cannot be used.
    """
    from datasets import load_dataset

    from truegap.models.cache import cache_folder

    opened = open_recipe(recipe)
    selection = read_source(opened, Path(source).expanduser(), **options)
    asked = json.dumps([opened.model_dump(), str(Path(source).resolve()), sorted(map(str, options.items()))])
    out = cache_folder() / "recipes" / hashlib.sha256(asked.encode()).hexdigest()[:16] / config / opened.benchmark
    out.parent.mkdir(parents=True, exist_ok=True)
    found = rebuild(opened, selection, out, configs=(config,), workers=workers)
    for line in describe(found):
        warnings.warn(line, stacklevel=2)
    return load_dataset(str(out), config, split="test")


def describe(found: Comparison) -> list[str]:
    """What differs from the published benchmark, a line each; nothing where all is the same."""
    lines = []
    if found.missing:
        first = ", ".join(f"{image_id} ({reason})" for image_id, reason in list(found.missing.items())[:_SHOWN])
        lines.append(f"{len(found.missing)} images of the recipe are missing: {first}{_more(len(found.missing))}")
    for config, ids in found.different.items():
        lines.append(f"{config}: {len(ids)} images differ from the recipe: {', '.join(ids[:_SHOWN])}{_more(len(ids))}")
    return [*lines, *found.remarks] if lines else []


def _more(count: int) -> str:
    return " …" if count > _SHOWN else ""

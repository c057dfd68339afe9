"""`truegap.load`: a published recipe and the user's copy of the source become a dataset."""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from truegap.build.draws import Donors, choose_donors, donor_key
from truegap.build.manifest import read_manifest, write_json
from truegap.build.plan import Plan
from truegap.build.recipe import FILE, Recipe, only, plan_from, read_recipe
from truegap.build.recipe_compare import Comparison, compare, file_sha256
from truegap.build.recipe_regions import with_published
from truegap.build.shard import build_shard
from truegap.build.workspace import Workspace, mended
from truegap.engine import run_tasks
from truegap.errors import UserError
from truegap.hub.snapshots import is_repository, locate, split_revision
from truegap.schema import SPLITS, SWAP, Example, Selection, Split

if TYPE_CHECKING:
    from datasets import Dataset

_COPIES = "copies.json"
"""In the cache beside a build: the files of the user's copy that were not those of the recipe."""

Advance = Callable[[int], object]


def open_recipe(spec: str, configs: Collection[str] | None = None) -> Recipe:
    """A recipe in a folder, or on the Hub (`ORG/NAME[@TAG]`).

    Args:
        spec: Where it is.
        configs: Which ones will be read (all if None): only those are downloaded, and `original` to compare files with.

    Raises:
        UserError: It is neither, or broken.
    """
    wanted = ["data/*"] if configs is None else [f"data/{config}/*" for config in {*configs, "original"}]
    return read_recipe(locate(spec, [FILE, "regions/*", *wanted], "a recipe").folder)


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

    # A path of the recipe's author is not the user's.
    known = {
        name
        for name, field in sources.source(recipe.terms.benchmark).options.model_fields.items()
        if Path not in (field.annotation, *get_args(field.annotation))
    }
    chosen = {name: value for name, value in recipe.terms.selection.items() if name in known}
    return sources.read(recipe.terms.benchmark, source, **{**chosen, **options})


def prepared(
    recipe: Recipe,
    selection: Selection,
    *,
    configs: Collection[str] | None = None,
    spread: Callable[..., Any] = run_tasks,
    workers: int | None = None,
    advance: Advance = lambda _: None,
) -> tuple[Plan, list[Example]]:
    """The plan that repeats a recipe, and the images that only backgrounds were drawn from.

    Raises:
        UserError: None of the images is there, a config is not in the recipe, or masks cannot be drawn again.
    """
    from truegap.resources import cache_folder

    rows = recipe.rows(next(iter(configs or recipe.terms.configs)))
    run = partial(spread, workers=workers)
    cache = cache_folder() / "regions.sqlite"
    chosen = with_published(recipe, only(selection, rows), run, cache=cache, advance=advance)
    unreadable = set(recipe.terms.unreadable)
    return plan_from(recipe, chosen, configs), [each for each in selection.examples if each.image_id in unreadable]


def rebuild(
    recipe: Recipe,
    plan: Plan,
    out: Path,
    *,
    others: Collection[Example] = (),
    spread: Callable[..., Any] = run_tasks,
    workers: int | None = None,
    advance: Advance = lambda _: None,
) -> Comparison:
    """Builds from a recipe, or takes a finished build, and compares it with what was published.

    Args:
        recipe: The recipe.
        plan: From `prepared`.
        out: The folder of the build.
        others: From `prepared`.
        spread: Runs the tasks, as `truegap.engine.run_tasks` does.
        workers: Processes; None for all cores.
        advance: Called with the number of images just built.

    Raises:
        UserError: No image is left, or `out` holds something else.
    """
    workspace = Workspace(plan, out)
    if not workspace.finished:
        donors = _donors(recipe, plan, others)
        tasks = [replace(task, donors=donors) if donors else task for task in workspace.tasks()]
        with workspace.opened():
            for done in spread(build_shard, tasks, workers=workers, folder=workspace.shards):
                advance(len(done["image_id"]) + len(done["dropped"]))
            workspace.finish()
    examples = {each.image_id: each for each in plan.selection.examples}
    return compare(recipe, out, examples, partial(spread, workers=workers))


def _donors(recipe: Recipe, plan: Plan, others: Collection[Example]) -> Donors:
    """Whose backgrounds may be taken: what the recipe says, or where it may not say so, what the key says."""
    examples = plan.selection.examples
    drawn = choose_donors(examples, plan.configs, benchmark=plan.benchmark, seed=plan.seed, among=[*examples, *others])
    unreadable = {each.image_id for each in others}
    by_id = {each.image_id: each for each in examples}
    donors = {key: [each for each in some if each.image_id not in unreadable] for key, some in drawn.items()}
    for config in plan.configs:
        for row in recipe.rows(config).values() if config.startswith(SWAP) else ():
            key, donor = donor_key(config, row.image_id), by_id.get(row.drawn["donor"] or "")
            if donor and key in donors:
                donors[key] = [donor, *donors[key]]
    return donors


def load(
    recipe: str,
    config: str,
    *,
    source: str | Path,
    split: Split = "test",
    workers: int | None = None,
    **options: Any,
) -> Dataset:
    """Loads a config of a benchmark that is published as a recipe, from the user's copy of its source.

    What is built is kept in the user's cache, so a second call reads it; files of the copy that have been mended since
    are noticed.

    Args:
        recipe: A folder, or `ORG/NAME[@TAG]` on the Hub.
        config: Such as `background-strong`.
        source: The archive as it unpacks; where its authors publish it on the Hub, `ORG/NAME[@REVISION]` too.
        split: Such as `train`, for the benchmarks that have it.
        workers: Processes; default: all cores.
        **options: Options of the source that a recipe cannot hold, such as `labels_file`.

    Returns:
        The dataset, like `load_dataset(…, split=split)`. A warning names images that are missing or differ, and counts
        those that are equal up to rounding.

    Raises:
        UserError: The recipe, the config, the split or the source cannot be used.
    """
    from datasets import load_dataset

    from truegap.resources import cache_folder

    opened = open_recipe(recipe, [config])
    splits = {row.split for row in opened.rows(config).values()}
    if split not in splits:
        raise UserError(f"{recipe} has no split {split}: it has {' and '.join(s for s in SPLITS if s in splits)}")
    place = _archive(opened.terms.benchmark, str(source))
    plan, others = prepared(opened, read_source(opened, place, **options), configs=(config,), workers=workers)
    asked = json.dumps([plan.key(), str(opened.folder.resolve()), str(place.resolve())])
    out = cache_folder() / "recipes" / hashlib.sha256(asked.encode()).hexdigest()[:16] / config / plan.benchmark
    out.parent.mkdir(parents=True, exist_ok=True)
    _forget_outdated(out, plan)
    found = rebuild(opened, plan, out, others=others, workers=workers)
    write_json(out.parent / _COPIES, _copies(found, plan))
    for line in found.lines():
        warnings.warn(line, stacklevel=2)
    return load_dataset(str(out), config, split=split)


def _archive(benchmark: str, source: str) -> Path:
    """The folder of an archive; from the Hub it is brought and unpacked first."""
    from truegap.hub.archives import bring
    from truegap.resources import cache_folder
    from truegap.sources import load_benchmark

    folder = Path(source).expanduser()
    published = any(origin.hub for origin in load_benchmark(benchmark).origins)
    if folder.is_dir() or not published or not is_repository(split_revision(source)[0]):
        return folder
    return bring(source, cache_folder() / "archives", lambda *_what: nullcontext(lambda _done: None)).folder


def _copies(found: Comparison, plan: Plan) -> dict[str, str | None]:
    """SHA-256 of the files of images that are different."""
    wrong = {image_id for each in found.configs.values() for image_id in each.different}
    return {each.image_id: file_sha256(each) for each in plan.selection.examples if each.image_id in wrong}


def _forget_outdated(out: Path, plan: Plan) -> None:
    """Removes a build from the cache if images that it lacks are there now, or files that differed are others now."""
    if not out.exists():
        return
    try:
        copies: Mapping[str, str | None] = json.loads((out.parent / _COPIES).read_bytes())
        examples = {each.image_id: each for each in plan.selection.examples}
        current = all(file_sha256(examples.get(each)) == digest for each, digest in copies.items())
    except (OSError, ValueError, AttributeError):
        current = False
    if not current or mended(plan, read_manifest(out)):
        shutil.rmtree(out)

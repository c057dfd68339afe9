"""A built benchmark, or a recipe, as it is published: with its images where their licences allow it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from truegap.build import recipe as recipes
from truegap.build.manifest import FILE as MANIFEST
from truegap.build.manifest import Manifest, read_manifest
from truegap.build.recipe_tables import region_schema, row_schema
from truegap.errors import UserError
from truegap.hub import croissant, evaluation
from truegap.hub.built_check import CARD, MADE_AT_PUBLICATION, Held, check_rows, rows_tasks
from truegap.hub.difference import File
from truegap.hub.folder_check import check_content, plain_files
from truegap.hub.publish import Progress, Publication, check_tag, repository_of
from truegap.hub.refusals import hub_errors
from truegap.schema import SPLITS
from truegap.sources import NAMES
from truegap.sources.benchmark import BenchmarkSpec, load_benchmark, load_card

PLACE = "PATH_OR_REPO"
"""What a card says where the dataset's own name will stand."""
_LOAD = re.compile(r'(load_dataset\("PATH_OR_REPO", "[^"\n]*", split="[^"\n]*")\)')
_SHOWN = 3
_NO_CHANGES = "which does not allow changed copies"

RunAll = Callable[..., Any]
"""Runs a function over tasks, in any order, as `truegap.engine.run_tasks` does."""


@dataclass(frozen=True, slots=True)
class Where:
    """Where a dataset goes.

    Attributes:
        namespace: User or organization.
        name: Of the repository; None for the benchmark's.
        tag: None for the benchmark's version.
    """

    namespace: str
    name: str | None = None
    tag: str | None = None


def dataset_publication(folder: Path, where: Where, scratch: Path, run: RunAll, progress: Progress) -> Publication:
    """Checks a built benchmark or a recipe whole, and says what is published of it.

    A benchmark whose images or labels may not be given away becomes a recipe.

    Args:
        folder: The benchmark, or the recipe.
        where: Where it goes.
        scratch: An empty folder, in which a recipe is written; it must stay until the publication is sent.
        run: Runs the tasks.
        progress: Opens a display with a title and a number of rows, and gives what to call with those just looked at.

    Raises:
        UserError: Something in the folder is not what it should be, or may not be published in any form.
    """
    files = plain_files(folder)
    # Tables are looked at row by row: whatever else there is may be text that somebody wrote.
    check_content({path: file for path, file in files.items() if not path.endswith(".parquet")})
    if recipes.FILE in files:
        return _recipe(folder, files, where, ())
    manifest = read_manifest(folder)
    tasks = rows_tasks(folder, files, manifest)
    total = len(manifest.configs) * len(manifest.rows.image_id)
    with progress("checking the rows", total) as advance:
        terms = check_rows(folder, manifest, tasks, run, advance)
    _check_card(folder, manifest.configs, {name: each.sha256 for name, each in manifest.configs.items()})
    spec = load_benchmark(manifest.benchmark)
    if not (reasons := forbidden(spec, manifest, terms)):
        return _with_images(files, manifest, spec, where)
    if manifest.benchmark not in NAMES:
        raise UserError(f"{folder}: may not be published: {'; '.join(reasons)}")
    from truegap.build.recipe_write import write_recipe

    made = scratch / manifest.benchmark
    with progress("making the recipe", total) as advance:
        write_recipe(folder, made, run=run, advance=advance)
    return _recipe(made, plain_files(made), where, reasons)


def forbidden(spec: BenchmarkSpec, manifest: Manifest, terms: Mapping[str, Counter[Held]]) -> tuple[str, ...]:
    """Why a benchmark may not be published with its images; nothing where it may.

    Args:
        spec: What may be done under each licence, and with each kind of label.
        manifest: Of the benchmark.
        terms: For each config, how many images stand under which licence, with or without an attribution.
    """
    found: Counter[str] = Counter()
    for config, counts in terms.items():
        for held, images in counts.items():
            if why := _obstacle(spec, held, perturbed=config != "original"):
                found[why] = max(found[why], images)
    reasons = [f"{n} image{'s' * (n > 1)} {why}" for why, n in found.most_common(_SHOWN)]
    if len(found) > _SHOWN:
        reasons.append(f"{len(found) - _SHOWN} more licences like these")
    rule = spec.labels.get(str(manifest.selection.get("labels")))
    rules = [rule] if rule else list(spec.labels.values())
    if closed := next((each for each in rules if not each.redistribution), None):
        reasons.append(f"its labels may not be given away ({closed.license})")
    return tuple(reasons)


def _obstacle(spec: BenchmarkSpec, held: Held, *, perturbed: bool) -> str:
    """Why an image under these terms may not be published; empty if it may."""
    license_name, attributed = held
    if not spec.publishable(license_name, perturbed=False):
        return f"under {license_name!r}, which does not allow copies"
    if not spec.publishable(license_name, perturbed=perturbed):
        return f"under {license_name!r}, {_NO_CHANGES}"
    if license_name.startswith("CC BY") and not attributed:
        return f"under {license_name!r}, whose owner has to be named and is not"
    return ""


def _with_images(files: Mapping[str, Path], manifest: Manifest, spec: BenchmarkSpec, where: Where) -> Publication:
    repository, tag = _place(where, manifest.benchmark, manifest.version)
    card = files[CARD].read_text(encoding="utf-8")
    card = _LOAD.sub(rf'\1, revision="{tag}")', card).replace(PLACE, repository)
    steps = [f"{each.name}: {each.woman} women, {each.man} men, {each.other} other" for each in manifest.steps]
    schema = _schema(files, "data/")
    made = _described(spec, repository, tag, schema, manifest.configs, list(manifest.splits), steps, manifest.selection)
    return Publication(
        "dataset",
        repository,
        tag,
        {**files, CARD: card.encode(), **made},
        (MANIFEST, recipes.FILE),
        f"{len(manifest.rows.image_id)} images in {len(manifest.configs)} configs",
    )


def _recipe(folder: Path, files: Mapping[str, Path], where: Where, reasons: tuple[str, ...]) -> Publication:
    recipe = recipes.read_recipe(folder)
    terms = recipe.terms
    _check_recipe(recipe, files)
    spec = load_benchmark(terms.benchmark)
    repository, tag = _place(where, terms.benchmark, terms.version)
    card = files[CARD].read_text(encoding="utf-8").replace(PLACE, f"{repository}@{tag}")
    splits = [each for each in SPLITS if any(path.split("/")[-1].startswith(f"{each}-") for path in files)]
    steps = [f"{terms.images} images of the source, by the options in {recipes.FILE}"]
    made = _described(spec, repository, tag, row_schema(), terms.configs, splits, steps, terms.selection, recipe=True)
    remarks = [f"published as a recipe, without images and labels: {reason}" for reason in reasons]
    if any(_NO_CHANGES in reason for reason in reasons):
        remarks.append("`truegap build --publishable` leaves out the images that may not be published changed")
    return Publication(
        "dataset",
        repository,
        tag,
        {**files, CARD: card.encode(), **made},
        (MANIFEST, recipes.FILE),
        f"recipe of {terms.images} images in {len(terms.configs)} configs",
        tuple(remarks),
    )


def _check_recipe(recipe: recipes.Recipe, files: Mapping[str, Path]) -> None:
    """That a recipe is whole, and that nothing is in its tables or beside them that a recipe does not hold."""
    import pyarrow.parquet as pq

    folder, terms = recipe.folder, recipe.terms
    regions = recipes.REGIONS.as_posix()
    either = "|".join(terms.configs)
    table = re.compile(rf"data/({either})/({'|'.join(SPLITS)})-\d{{5}}-of-\d{{5}}\.parquet")
    known = {CARD, recipes.FILE, regions, ".gitattributes", *MADE_AT_PUBLICATION}
    for path in files:
        if path not in known and not table.fullmatch(path):
            raise UserError(f"{folder}: {path} is no part of a recipe: move it elsewhere")
    if CARD not in files:
        raise UserError(f"{folder}: {CARD} is missing: make the recipe again with `truegap recipe`")
    for config in terms.configs:
        recipe.rows(config)
    recipe.regions()
    for path, file in files.items():
        if path.endswith(".parquet"):
            names = (region_schema() if path == regions else row_schema()).names
            if others := [each for each in pq.read_schema(file).names if each not in names]:
                raise UserError(f"{file}: a recipe has no column {others[0]!r}: make it again with `truegap recipe`")
    _check_card(folder, terms.configs)


def _check_card(folder: Path, configs: Collection[str], hashes: Mapping[str, str] | None = None) -> None:
    """That the card's front matter speaks of these configs, by which `load_dataset` finds their files."""
    said = card_hashes((folder / CARD).read_bytes())
    if set(said) != set(configs) or (hashes is not None and said != dict(hashes)):
        raise UserError(
            f"{folder / CARD}: its `configs:` are not those of the build: take the card that the build wrote"
        )


def card_hashes(card: bytes) -> dict[str, str]:
    """The content hash of every config, from the front matter of a card; empty where there is none."""
    import yaml

    with suppress(yaml.YAMLError, UnicodeDecodeError, AttributeError, TypeError, KeyError, IndexError):
        front = yaml.safe_load(card.decode().split("---\n")[1])
        return {str(each["config_name"]): str(each["description"]) for each in front["configs"]}
    return {}


def _place(where: Where, benchmark: str, version: str) -> tuple[str, str]:
    repository = repository_of(where.namespace, where.name or benchmark)
    return repository, check_tag(where.tag or f"v{version}")


def _schema(files: Mapping[str, Path], folder: str) -> Any:
    import pyarrow.parquet as pq

    return pq.read_schema(next(file for path, file in files.items() if path.startswith(folder)))


def _described(
    spec: BenchmarkSpec,
    repository: str,
    tag: str,
    schema: Any,
    configs: Collection[str],
    splits: Sequence[str],
    steps: list[str],
    selection: Mapping[str, Any],
    *,
    recipe: bool = False,
) -> dict[str, File]:
    """The files that are made at publication."""
    from huggingface_hub import HfApi

    rule = spec.labels.get(str(selection.get("labels"))) or next(iter(spec.labels.values()))
    facts = croissant.Facts(
        url=f"{HfApi().endpoint}/datasets/{repository}",
        namespace=repository.partition("/")[0],
        version=tag.removeprefix("v"),
        date=_date(repository, tag),
        recipe=recipe,
        schema=schema,
        configs=list(configs),
        splits=splits,
        label=f"{rule.description} Licence: {rule.license}.",
        steps=steps,
        sections=load_card(spec.name),
    )
    return {evaluation.FILE: evaluation.eval_yaml(spec), croissant.FILE: croissant.croissant(spec, facts)}


def _date(repository: str, tag: str) -> str:
    """The day of publication: today, or what a version that is there says of itself."""
    import json

    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, RepositoryNotFoundError, RevisionNotFoundError

    with (
        hub_errors(f"dataset {repository}"),
        suppress(EntryNotFoundError, RepositoryNotFoundError, RevisionNotFoundError),
    ):
        there = Path(hf_hub_download(repository, croissant.FILE, repo_type="dataset", revision=tag))
        with suppress(ValueError, AttributeError, KeyError, TypeError):
            return date.fromisoformat(json.loads(there.read_bytes())["datePublished"]).isoformat()
    return datetime.now(UTC).date().isoformat()

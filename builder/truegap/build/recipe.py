"""Recipes: a benchmark that may not be redistributed, published as ids and what was drawn.

A recipe holds no image and no label. Whoever has the archive builds the same benchmark from it, and learns which images
are missing or differ. It is a folder that is a Hub dataset: `recipe.json`, and per config a table of image id, what was
drawn, and the SHA-256 that the encoded image must have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from truegap.build.images import Encoder
from truegap.build.manifest import Manifest, Strict, read_manifest, write_json
from truegap.build.plan import Plan
from truegap.errors import UserError
from truegap.perturbations import Options
from truegap.schema import GENDERS, FilterStep, Selection

FILE = "recipe.json"

_CARD = """---
pretty_name: {title} (recipe)
license: apache-2.0
tags:
- truegap-recipe
configs:
{configs}
---

# {title}: recipe

Ids and what was drawn, without images and labels, of a benchmark of {count} images whose source may not be
redistributed. With a copy of the source, the same benchmark is made by

    truegap build {name} --recipe PATH_OR_REPO --source /your/copy --out {name}

which says which images are missing or differ.
"""


class Recipe(Strict):
    """Everything that a build needs but the archive."""

    format_version: Literal[1] = 1
    benchmark: str
    version: str
    seed: int
    configs: list[str]
    perturbations: dict[str, Any]
    """Options of the perturbations."""
    encoder: dict[str, Any]
    selection: dict[str, Any]
    """Options of the source."""
    versions: dict[str, str]
    image_id: list[str] = Field(min_length=1)
    image_sha256: dict[str, list[str]]
    """Of the encoded images, by config, in the order of `image_id`."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a build from a recipe compares with the published one.

    Attributes:
        same: Encoded images that are equal to the byte.
        missing: Ids of the recipe that the source did not give, with the reason where there is one.
        different: By config, ids of images whose bytes differ.
        remarks: What may explain it, such as another version of the codec.
    """

    same: int
    missing: Mapping[str, str]
    different: Mapping[str, list[str]]
    remarks: list[str]


def write_recipe(built: Path, out: Path) -> Recipe:
    """Makes the recipe of a built benchmark.

    Raises:
        UserError: The benchmark cannot be read, or `out` exists.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from truegap.sources.benchmark import load_benchmark

    manifest = read_manifest(built)
    if out.exists():
        raise UserError(f"{out} exists: choose another --out")
    recipe = Recipe(
        benchmark=manifest.benchmark,
        version=manifest.version,
        seed=manifest.seed,
        configs=list(manifest.configs),
        perturbations=manifest.perturbations,
        encoder=manifest.encoder,
        selection=manifest.selection,
        versions=manifest.versions,
        image_id=manifest.rows.image_id,
        image_sha256=manifest.rows.image_sha256,
    )
    aside = out.with_name(f"{out.name}.partial")
    for config in recipe.configs:
        files = sorted((built / "data" / config).glob("test-*.parquet"))
        drawn = pa.concat_tables([pq.read_table(file, columns=["image_id", "perturbation"]) for file in files])
        drawn = drawn.replace_schema_metadata(None)
        drawn = drawn.append_column("image_sha256", pa.array(recipe.image_sha256[config]))
        place = aside / "data" / config
        place.mkdir(parents=True, exist_ok=True)
        pq.write_table(drawn, place / "test-00000-of-00001.parquet")
    title = load_benchmark(recipe.benchmark).title
    configs = "\n".join(
        f"- config_name: {config}\n  description: {manifest.configs[config].sha256}\n  data_files:\n"
        f"  - split: test\n    path: data/{config}/test-*.parquet"
        for config in recipe.configs
    )
    text = _CARD.format(title=title, configs=configs, count=len(recipe.image_id), name=recipe.benchmark)
    (aside / "README.md").write_text(text, encoding="utf-8")
    write_json(aside / FILE, recipe)
    aside.rename(out)
    return recipe


def read_recipe(folder: Path) -> Recipe:
    """Reads a recipe.

    Raises:
        UserError: The folder holds none, or a broken one.
    """
    try:
        recipe = Recipe.model_validate_json((folder / FILE).read_bytes())
    except OSError:
        raise UserError(f"{folder} is not a recipe: {FILE} is missing") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{folder / FILE}: {'.'.join(map(str, first['loc']))}: {first['msg']}; get it again") from None
    if any(len(recipe.image_sha256.get(config, ())) != len(recipe.image_id) for config in recipe.configs):
        raise UserError(f"{folder / FILE}: image_sha256 does not fit image_id: get it again")
    return recipe


def plan_from(recipe: Recipe, selection: Selection, configs: tuple[str, ...] | None = None) -> Plan:
    """The plan that repeats a recipe on what the user's copy of the source gives.

    Args:
        recipe: What to repeat.
        selection: What the source gives with the recipe's options; only the recipe's images are kept.
        configs: Some of the recipe's configs; None for all.

    Raises:
        UserError: None of the recipe's images is there, or a config is not in the recipe.
    """
    if unknown := [config for config in configs or () if config not in recipe.configs]:
        raise UserError(f"the recipe has no config {', '.join(unknown)}: it has {', '.join(recipe.configs)}")
    wanted = set(recipe.image_id)
    examples = [example for example in selection.examples if example.image_id in wanted]
    if not examples:
        raise UserError(f"none of the recipe's {len(wanted)} images is in the source: check --source")
    step = FilterStep("recipe", *(sum(each.gender == gender for each in examples) for gender in GENDERS))
    return Plan(
        recipe.benchmark,
        recipe.version,
        replace(selection, examples=examples, steps=[*selection.steps, step]),
        configs or tuple(recipe.configs),
        recipe.seed,
        Options.of(recipe.perturbations),
        Encoder(recipe.encoder["encoding"]),
    )


def compare(recipe: Recipe, built: Manifest) -> Comparison:
    """Says which of a recipe's images are missing from a build, and which differ."""
    reasons = {image_id: reason for reason, ids in built.dropped.items() for image_id in ids}
    places = {image_id: place for place, image_id in enumerate(recipe.image_id)}
    have = set(built.rows.image_id)
    missing = {each: reasons.get(each, "not in the source") for each in recipe.image_id if each not in have}
    same, different = 0, {}
    for config in built.configs:
        pairs = zip(built.rows.image_id, built.rows.image_sha256[config], strict=True)
        others = [each for each, digest in pairs if recipe.image_sha256[config][places[each]] != digest]
        same += len(built.rows.image_id) - len(others)
        if others:
            different[config] = others
    remarks = [
        f"{name} is {built.versions.get(name)} here and {version} in the recipe"
        for name, version in recipe.versions.items()
        if built.versions.get(name) != version
    ]
    if built.encoder != recipe.encoder:
        remarks.append(f"the encoder is {built.encoder['codec']} here and {recipe.encoder['codec']} in the recipe")
    return Comparison(same, missing, different, remarks)

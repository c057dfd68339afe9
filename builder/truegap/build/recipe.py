"""Recipes: a benchmark that may not be redistributed, published as ids and what was drawn.

A recipe holds no image and no label. Whoever has the archive builds the same benchmark from it, and learns which images
are missing or differ. It is a folder that is a Hub dataset:

- `recipe.json`: versions, seed, options, and a digest of all labels, one of all regions and one of all terms;
- `data/<config>/<split>-*.parquet`: per image its id, its licence and attribution, what was drawn, and two marks by
  which the result is known again: the SHA-256 of the encoded image and the average colours of sixteen cells of it (see
  `truegap.build.cells`);
- `regions/regions.parquet`, where regions were detected (see `truegap.build.recipe_regions`).

Labels, and the boxes and masks of the source's annotation, are never in it: each reader takes them from the source.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import ConfigDict, Field, StringConstraints, ValidationError, field_validator

from truegap.build.images import Encoder
from truegap.build.manifest import Strict
from truegap.build.plan import Plan, choose_configs
from truegap.build.recipe_tables import MOST, read_table, region_schema, row_schema
from truegap.errors import UserError
from truegap.perturbations import Options
from truegap.schema import CONFIGS, EXTRA_CONFIGS, GENDERS, SPLITS, FilterStep, Selection, Split
from truegap.sources.benchmark import first_problem

FILE = "recipe.json"
REGIONS = Path("regions") / "regions.parquet"

Masks = Literal["found", "all"]
"""Which masks are published: `found` by a detector or in a file, from the pixels alone; `all`, those drawn inside of
annotated boxes too."""

_Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class RegionsRecord(Strict):
    """What the manifest says of how regions came about, as far as it is needed to redo them."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    annotated_objects: bool
    masks: str | dict[str, Any]
    object_masks: bool


class Terms(Strict):
    """`recipe.json`: all that is said once."""

    format_version: Literal[2] = 2
    benchmark: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=60)]
    version: Annotated[str, StringConstraints(pattern=r"^\d+\.\d+\.\d+$")]
    seed: int
    configs: list[str] = Field(min_length=1)
    images: int = Field(ge=1, le=MOST)
    perturbations: dict[str, Any]
    """Options of the perturbations."""
    encoder: dict[str, Any]
    selection: dict[str, Any]
    """Options of the source."""
    versions: dict[str, str]
    unreadable: list[str]
    """Images that the build had to leave out; backgrounds were drawn among them too."""
    sha256: dict[Literal["labels", "regions", "terms"], _Digest] = Field(min_length=3)
    """Over the rows of all images together."""
    masks: Masks
    masks_to_draw: int = Field(ge=0)
    """Regions whose mask was drawn inside of an annotated box and is not published."""

    @field_validator("configs")
    @classmethod
    def _are_known(cls, configs: list[str]) -> list[str]:
        # They become names of folders.
        if unknown := [each for each in configs if each not in (*CONFIGS, *EXTRA_CONFIGS)]:
            raise ValueError(f"{unknown[0][:60]!r} is no config")
        return list(dict.fromkeys(configs))

    @field_validator("perturbations")
    @classmethod
    def _are_options(cls, perturbations: dict[str, Any]) -> dict[str, Any]:
        return asdict(Options.of(perturbations))

    @field_validator("encoder")
    @classmethod
    def _is_encoder(cls, encoder: dict[str, Any]) -> dict[str, Any]:
        Encoder(encoder.get("encoding", ""))
        return encoder

    @property
    def regions(self) -> RegionsRecord | None:
        """How regions were found; None where the source's annotation is all there is."""
        record = self.selection.get("regions")
        return None if record is None else RegionsRecord.model_validate(record)


@dataclass(frozen=True, slots=True)
class Row:
    """An image in a config.

    Attributes:
        image_id: The image.
        split: Where it belongs.
        drawn: The column `perturbation`.
        sha256: Of the encoded image.
        averages: Of its cells; None for the original.
    """

    image_id: str
    split: Split
    drawn: Mapping[str, Any]
    sha256: str
    averages: Sequence[int] | None


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe on this disk.

    Attributes:
        folder: Where it is.
        terms: What is said once.
    """

    folder: Path
    terms: Terms

    def rows(self, config: str) -> dict[str, Row]:
        """The rows of a config by image id, split by split.

        Raises:
            UserError: The recipe has no such config, or its table cannot be used.
        """
        if config not in self.terms.configs:
            raise UserError(f"the recipe has no config {config}: it has {', '.join(self.terms.configs)}")
        place = self.folder / "data" / config
        rows: dict[str, Row] = {}
        for split in SPLITS:
            for file in sorted(place.glob(f"{split}-*.parquet")):
                for each in read_table(file, row_schema()):
                    image_id = each["image_id"]
                    if image_id in rows:
                        raise UserError(f"{file}: image {image_id[:60]!r} is there twice; get the recipe again")
                    drawn, digest, cells = each["perturbation"], each["image_sha256"], each["averages"]
                    if cells is None and config != "original":
                        raise UserError(f"{file}: image {image_id[:60]!r} has no averages; get the recipe again")
                    rows[image_id] = Row(image_id, split, drawn, digest, cells)
        if len(rows) != self.terms.images:
            raise UserError(f"{place}: {len(rows)} of {self.terms.images} images are there; get the recipe again")
        return rows

    def regions(self) -> list[dict[str, Any]]:
        """The published regions; none where the recipe has no table of them.

        Raises:
            UserError: The table cannot be used.
        """
        path = self.folder / REGIONS
        return read_table(path, region_schema()) if path.exists() else []


def read_recipe(folder: Path) -> Recipe:
    """Reads a recipe; its tables are read where they are needed.

    Raises:
        UserError: The folder holds none, or a broken one.
    """
    path = folder / FILE
    try:
        terms = Terms.model_validate_json(path.read_bytes())
        _ = terms.regions
    except OSError:
        raise UserError(f"{folder} is not a recipe: {FILE} is missing") from None
    except ValidationError as error:
        if any(each["loc"] == ("format_version",) for each in error.errors()):
            raise UserError(f"{path}: this truegap reads recipes of format 2: use the truegap that made it") from None
        raise UserError(f"{path}: {first_problem(error)}; get the recipe again") from None
    return Recipe(folder, terms)


def only(selection: Selection, rows: Mapping[str, Row]) -> Selection:
    """The recipe's images of a selection, in the recipe's splits.

    Raises:
        UserError: None is there.
    """
    examples = [
        replace(example, split=rows[example.image_id].split)
        for example in selection.examples
        if example.image_id in rows
    ]
    if not examples:
        raise UserError(f"none of the recipe's {len(rows)} images is in the source: check --source")
    step = FilterStep("recipe", *(sum(each.gender == gender for each in examples) for gender in GENDERS))
    return replace(selection, examples=examples, steps=[*selection.steps, step])


def plan_from(recipe: Recipe, selection: Selection, configs: Collection[str] | None = None) -> Plan:
    """The plan that repeats a recipe on what the user's copy of the source gives.

    Args:
        recipe: What to repeat.
        selection: The recipe's images, see `only`, with their regions, see `truegap.build.recipe_regions`.
        configs: Some of the recipe's configs; None for all.

    Raises:
        UserError: A config is not in the recipe.
    """
    terms = recipe.terms
    if unknown := [config for config in configs or () if config not in terms.configs]:
        raise UserError(f"the recipe has no config {', '.join(unknown)}: it has {', '.join(terms.configs)}")
    return Plan(
        terms.benchmark,
        terms.version,
        selection,
        choose_configs(tuple(configs or terms.configs)),
        terms.seed,
        Options.of(terms.perturbations),
        Encoder(cast("Any", terms.encoder["encoding"])),
    )

"""How a build from a recipe compares with the published one: three outcomes, each counted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truegap.build.cells import ROUNDING, averages, distance
from truegap.build.manifest import Manifest, read_manifest
from truegap.build.recipe import Recipe, Row
from truegap.build.recipe_tables import NOT_SHARED, digests, field_lines
from truegap.schema import Example

OTHER_FILE = "its file differs from the one of the recipe"
OTHER_DRAW = "something else was drawn for it"

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Compared:
    """One config.

    Attributes:
        identical: Images that are equal to the byte.
        rounded: Images that are equal up to rounding: made of the same file, with the same draw, and the averages of
            their cells within `ROUNDING`.
        levels: The largest difference of an average among those, in levels from 0 to 255.
        different: All other images, with the reason.
    """

    identical: int
    rounded: int
    levels: float
    different: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Comparison:
    """All configs.

    Attributes:
        configs: By config.
        missing: Ids of the recipe that the source did not give, with the reason where there is one.
        unequal: What of labels, regions and terms is not that of the recipe; None where images are missing, without
            which it cannot be said.
        remarks: What may explain a difference, such as another version of the codec.
    """

    configs: Mapping[str, Compared]
    missing: Mapping[str, str]
    unequal: tuple[str, ...] | None
    remarks: list[str]

    @property
    def is_identical(self) -> bool:
        """Whether everything is there and equal to the byte, labels, regions and terms included."""
        unlike = any(each.rounded or each.different for each in self.configs.values())
        return not (self.missing or self.unequal or unlike)

    def lines(self) -> list[str]:
        """What there is to say, a line each; nothing where everything is identical."""
        if self.is_identical:
            return []
        lines = []
        if self.missing:
            first = ", ".join(f"{image_id} ({reason})" for image_id, reason in list(self.missing.items())[:_SHOWN])
            lines.append(f"{len(self.missing)} images of the recipe are missing: {first}{_more(len(self.missing))}")
        lines += [line for config, each in self.configs.items() if (line := _line(config, each))]
        if self.unequal:
            lines.append(
                f"{' and '.join(self.unequal)} are not those of the recipe: the annotations of this copy are others"
                + (", or masks were drawn by other versions" if "regions" in self.unequal else "")
            )
        unlike = self.unequal or any(each.rounded or each.different for each in self.configs.values())
        return [*lines, *self.remarks] if unlike else lines


def _line(config: str, each: Compared) -> str:
    if not each.rounded and not each.different:
        return ""
    parts = [f"{each.identical} images identical to the byte"]
    if each.rounded:
        parts.append(f"{each.rounded} equal up to rounding (averages of cells within {each.levels:.2f} of 255 levels)")
    if each.different:
        first = ", ".join(f"{image_id} ({reason})" for image_id, reason in list(each.different.items())[:_SHOWN])
        parts.append(f"{len(each.different)} different: {first}{_more(len(each.different))}")
    return f"{config}: {', '.join(parts)}"


def _more(count: int) -> str:
    return " …" if count > _SHOWN else ""


@dataclass(frozen=True, slots=True)
class CompareTask:
    """Images of one parquet file of a build that are not equal to the byte; picklable.

    Attributes:
        path: The file.
        config: What it is of.
        published: The recipe's rows of those images.
    """

    path: Path
    config: str
    published: Mapping[str, Row]


Difference = tuple[str, str, str, float]
"""Config, image id, the reason why it is different (empty where it is equal up to rounding), levels."""

Run = Callable[[Callable[[CompareTask], list[Difference]], Sequence[CompareTask]], Iterable[list[Difference]]]
"""Runs a function over tasks, in any order, as `truegap.engine.run_tasks` does."""


def compare(recipe: Recipe, built: Path, examples: Mapping[str, Example], run: Run = map) -> Comparison:
    """Says which of a recipe's images are missing from a build, which are equal up to rounding, and which differ.

    Args:
        recipe: The recipe.
        built: The folder of a build of some of its configs.
        examples: The images of the user's copy by id; files are looked at only where something differs.
        run: Runs the tasks.

    Raises:
        UserError: The recipe's tables or the build cannot be read.
    """
    manifest = read_manifest(built)
    first = next(iter(manifest.configs))
    files = _Files(recipe, manifest, examples)
    have = set(manifest.rows.image_id)
    identical: dict[str, int] = {}
    different: dict[str, dict[str, str]] = {config: {} for config in manifest.configs}
    missing: list[str] = []
    tasks: list[CompareTask] = []
    for config in manifest.configs:
        rows = recipe.rows(config)
        if config == first:
            missing = [each for each in rows if each not in have]
        pairs = zip(manifest.rows.image_id, manifest.rows.image_sha256[config], strict=True)
        unlike = {image_id for image_id, digest in pairs if rows[image_id].sha256 != digest}
        identical[config] = len(have) - len(unlike)
        different[config] = {each: OTHER_FILE for each in unlike if config == "original" or files.differ(each)}
        tasks += _tasks(built, config, {each: rows[each] for each in unlike if each not in different[config]})
    rounded: dict[str, list[float]] = {config: [] for config in manifest.configs}
    for config, image_id, reason, levels in (each for done in run(differences, tasks) for each in done):
        if reason:
            different[config][image_id] = reason
        else:
            rounded[config].append(levels)
    reasons = {
        image_id: f"{reason}: {detail}" if detail else reason
        for reason, ids in manifest.dropped.items()
        for image_id, detail in ids.items()
    }
    return Comparison(
        configs={
            config: Compared(
                identical[config],
                len(rounded[config]),
                max(rounded[config], default=0.0),
                {each: different[config][each] for each in manifest.rows.image_id if each in different[config]},
            )
            for config in manifest.configs
        },
        missing={each: reasons.get(each, "not in the source") for each in missing},
        unequal=None if missing else _unequal(recipe, built, first),
        remarks=_remarks(recipe, manifest),
    )


def differences(task: CompareTask) -> list[Difference]:
    """Looks at images again that are not equal to the byte."""
    import pyarrow.parquet as pq

    found: list[Difference] = []
    with pq.ParquetFile(task.path) as file:
        for number in range(file.num_row_groups):
            ids = file.read_row_group(number, columns=["image_id"]).column("image_id").to_pylist()
            if not task.published.keys() & set(ids):
                continue
            rows = file.read_row_group(number, columns=["image_id", "perturbation", "image"]).to_pylist()
            found += [
                (task.config, row["image_id"], *_difference(task.published[row["image_id"]], row))
                for row in rows
                if row["image_id"] in task.published
            ]
    return found


def _difference(published: Row, row: Mapping[str, Any]) -> tuple[str, float]:
    if not _same_draw(published.drawn, row["perturbation"]):
        return OTHER_DRAW, 0.0
    levels = distance(published.averages or (), averages(row["image"]["bytes"]))
    return (f"averages of cells differ by {levels:.1f} levels" if levels > ROUNDING else ""), levels


def _tasks(built: Path, config: str, published: Mapping[str, Row]) -> list[CompareTask]:
    import pyarrow.parquet as pq

    tasks = []
    for path in sorted((built / "data" / config).glob("*.parquet")) if published else ():
        ids = pq.read_table(path, columns=["image_id"]).column("image_id").to_pylist()
        if mine := {each: published[each] for each in ids if each in published}:
            tasks.append(CompareTask(path, config, mine))
    return tasks


class _Files:
    """Whether an image is made of the file that the recipe's maker had."""

    def __init__(self, recipe: Recipe, manifest: Manifest, examples: Mapping[str, Example]) -> None:
        self.recipe = recipe
        self.examples = examples
        self.there: Mapping[str, Row] | None = None
        rows = manifest.rows
        self.here: dict[str, str | None] = dict(
            zip(rows.image_id, rows.image_sha256["original"], strict=True) if "original" in manifest.configs else ()
        )

    def differ(self, image_id: str) -> bool:
        """False too where the recipe does not know: without config `original` it has no SHA-256 of the file."""
        if "original" not in self.recipe.terms.configs:
            return False
        if self.there is None:
            self.there = self.recipe.rows("original")
        if image_id not in self.here:
            self.here[image_id] = file_sha256(self.examples.get(image_id))
        return image_id not in self.there or self.here[image_id] != self.there[image_id].sha256


def file_sha256(example: Example | None) -> str | None:
    """SHA-256 of the encoded image in the source; None where it cannot be read."""
    try:
        return None if example is None else hashlib.sha256(example.image.read()).hexdigest()
    except OSError:
        return None


def _same_draw(published: Mapping[str, Any], here: Mapping[str, Any]) -> bool:
    """Equal as far as it is published."""
    return all(value is None or here.get(name) == value for name, value in published.items())


def _unequal(recipe: Recipe, built: Path, config: str) -> tuple[str, ...]:
    import pyarrow.parquet as pq

    lines: dict[str, dict[str, str]] = {}
    for path in (built / "data" / config).glob("*.parquet"):
        names = [name for name in pq.read_schema(path).names if name not in NOT_SHARED]
        lines |= {row["image_id"]: field_lines(row) for row in pq.read_table(path, columns=names).to_pylist()}
    here = digests(lines)
    return tuple(group for group, digest in recipe.terms.sha256.items() if here[group] != digest)


def _remarks(recipe: Recipe, manifest: Manifest) -> list[str]:
    there = recipe.terms
    remarks = [
        f"{name} is {manifest.versions.get(name)} here and {version} in the recipe"
        for name, version in there.versions.items()
        if manifest.versions.get(name) != version
    ]
    return remarks + [
        f"the encoder's {name} is {manifest.encoder.get(name)} here and {value} in the recipe"
        for name, value in there.encoder.items()
        if manifest.encoder.get(name) != value
    ]

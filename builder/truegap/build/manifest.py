"""What a built benchmark says about itself: `manifest.json`."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, StringConstraints, ValidationError

from truegap.build.digests import Digests
from truegap.errors import UserError
from truegap.files.atomic import write_bytes, written_aside
from truegap.files.json_arrays import Where, read_object
from truegap.schema import Split

FILE = "manifest.json"

_ROWS = {("rows",), ("rows", "sha256"), ("rows", "image_sha256")}
"""Objects of the file that are read one member at a time: the hashes of a config are the most that is read at once."""
_LARGEST = 1 << 28
"""Characters of these: four million hashes. What a build wrote has to be read again."""


class Strict(BaseModel):
    """A record in which an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Step(Strict):
    """Images that a filter step left."""

    name: str
    woman: int
    man: int
    other: int = 0


class SplitSummary(Strict):
    """One split: what is in it, the same in every config."""

    rows: int
    woman: int
    man: int
    files: int
    """Of each config."""


ConfigName = Annotated[str, StringConstraints(pattern=r"^\w[\w-]*$")]
"""It is the name of a folder, and leads to nowhere else."""


class ConfigSummary(Strict):
    """One config: what is in it, and a hash that says whether two builds hold the same."""

    rows: int
    woman: int
    man: int
    sha256: str
    """Over image id and row hash of every row, in order."""
    split_sha256: dict[Split, str]
    """The same over the rows of each split."""
    objects: int | None = None
    """How many objects could be drawn (feature object)."""
    objects_drawn: int | None = None
    """How many were: the realised share is their ratio."""


def _digests(given: Any) -> Digests:
    if isinstance(given, Digests):
        return given
    if not isinstance(given, list):
        raise ValueError("not a list, so no SHA-256")  # noqa: TRY004  # what pydantic takes for a wrong value
    return Digests(given)


Hashes = Annotated[Digests, PlainValidator(_digests)]


class Rows(Strict):
    """A SHA-256 per row and config, and of each encoded image, by which embeddings are found again.

    The rows of a split stand together, in the order of `Manifest.splits`.
    """

    image_id: list[str]
    sha256: dict[str, Hashes]
    """Over image bytes and fields."""
    image_sha256: dict[str, Hashes]


class Manifest(Strict):
    """Everything needed to say what a build is, and to compare two of them.

    It holds no time and no path: the same build gives the same manifest anywhere.
    """

    format_version: Literal[1] = 1
    benchmark: str
    version: str
    build_key: str
    seed: int
    encoder: dict[str, Any]
    perturbations: dict[str, Any]
    """Options of the perturbations, all of them."""
    selection: dict[str, Any]
    """Options of the source's filters."""
    steps: list[Step]
    published: dict[str, int] | None = None
    """Counts that the paper prints for this benchmark, to compare with the last step."""
    splits: dict[Split, SplitSummary]
    """Those that have rows, in the order of `truegap.schema.SPLITS`; most benchmarks have `test` alone."""
    configs: dict[ConfigName, ConfigSummary]
    dropped: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Every image left out, by reason: its id, and the detail (may be empty)."""
    repairs: dict[str, int] = Field(default_factory=dict)
    """What was mended or left out inside images that stay, counted by reason."""
    versions: dict[str, str]
    rows: Rows

    @property
    def content(self) -> str:
        """One hash over all configs, in the order of their names."""
        import hashlib

        lines = "".join(f"{name} {self.configs[name].sha256}\n" for name in sorted(self.configs))
        return hashlib.sha256(lines.encode()).hexdigest()

    @property
    def described(self) -> dict[str, Any]:
        """What `Plan.describe` said of this build."""
        same = ("benchmark", "version", "seed", "encoder", "selection", "versions")
        return {
            **{name: getattr(self, name) for name in same},
            "configs": list(self.configs),
            "options": self.perturbations,
        }

    def places(self, split: Split) -> slice:
        """Where the rows of a split stand in `rows`.

        Raises:
            UserError: The benchmark has no such split.
        """
        if split not in self.splits:
            there = " and ".join(self.splits)
            raise UserError(f"this build of {self.benchmark} has no split {split}: it has {there}")
        first = sum(self.splits[each].rows for each in takewhile(lambda each: each != split, self.splits))
        return slice(first, first + self.splits[split].rows)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a built benchmark.

    Raises:
        UserError: The folder is not a built benchmark.
    """
    path = folder / FILE
    if not path.is_file():
        raise UserError(f"{folder} is not a built benchmark: {FILE} is missing; make one with `truegap build`")
    try:
        manifest = Manifest.model_validate(read_object(path, _shrunk, _ROWS, _LARGEST))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(f"{path}: {where}: {first['msg']}; build the benchmark again") from None
    images = len(manifest.rows.image_id)
    for what in ("sha256", "image_sha256"):
        for config in manifest.configs:
            if (hashes := len(getattr(manifest.rows, what).get(config, ()))) != images:
                raise UserError(
                    f"{path}: rows.{what}.{config}: {hashes} hashes of {images} images; build the benchmark again"
                )
    return manifest


def _shrunk(where: Where, value: Any) -> Any:
    if where[:-1] in _ROWS and isinstance(value, list):
        # What is no hash is told by the record, with its place.
        with suppress(ValueError):
            return Digests(value)
    return value


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Writes `manifest.json` piece by piece, aside and then renamed."""
    content = manifest.model_dump(mode="json", exclude={"rows"}) | {"rows": dict(manifest.rows)}
    pieces = json.JSONEncoder(ensure_ascii=False, indent=1, default=list).iterencode(content)
    with written_aside(folder / FILE) as aside, aside.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(pieces)
        file.write("\n")


def write_json(path: Path, content: Any) -> None:
    """Writes JSON aside, then renames: a reader sees the old file or the new one, never half of one."""
    text = content.model_dump_json(indent=1) if isinstance(content, BaseModel) else json.dumps(content, indent=1)
    write_bytes(path, f"{text}\n".encode())

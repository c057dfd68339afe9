"""What a build will do, decided before it starts: same plan, same rows, on any number of workers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.metadata import version
from typing import Any

from truegap.build.images import Encoder
from truegap.build.rows import fields_of
from truegap.errors import UserError
from truegap.perturbations import Options
from truegap.perturbations.keys import Key
from truegap.schema import CONFIGS, EXTRA_CONFIGS, GENDERS, Dropped, Example, FilterStep, Selection
from truegap.sources.benchmark import BenchmarkSpec

SHARD_SIZE = 256
"""Images per shard: the unit of work, of resuming, and of the files; about a minute of building."""

VERSIONED = ("truegap", "numpy", "pillow", "opencv-python-headless", "pycocotools", "pyarrow", "datasets")


@dataclass(frozen=True, slots=True)
class Plan:
    """A build: which examples, which configs, how.

    Attributes:
        benchmark: The benchmark's name, part of every random key.
        version: The benchmark's version.
        selection: What the source gave, after `limit`.
        configs: In the order of `truegap.schema.CONFIGS`.
        seed: Part of every random key.
        options: Of the perturbations.
        encoder: How perturbed images are stored.
        published: Counts of the paper, to compare with.
    """

    benchmark: str
    version: str
    selection: Selection
    configs: tuple[str, ...] = CONFIGS
    seed: int = 0
    options: Options = field(default_factory=Options)
    encoder: Encoder = field(default_factory=Encoder)
    published: Mapping[str, int] | None = None

    @property
    def shards(self) -> list[Sequence[Example]]:
        """The examples in groups of `SHARD_SIZE`, in order."""
        examples = self.selection.examples
        return [examples[start : start + SHARD_SIZE] for start in range(0, len(examples), SHARD_SIZE)]

    def describe(self) -> dict[str, Any]:
        """Everything but the examples that decides what is built."""
        return {
            "benchmark": self.benchmark,
            "version": self.version,
            "configs": list(self.configs),
            "seed": self.seed,
            "options": asdict(self.options),
            "encoder": self.encoder.record(),
            "selection": dict(self.selection.options),
            "versions": {package: _version(package) for package in VERSIONED},
        }

    def key(self) -> str:
        """SHA-256 over all that decides what is built: an unfinished build goes on only under the same key."""
        digest = hashlib.sha256(json.dumps(self.describe(), sort_keys=True).encode())
        for example in self.selection.examples:
            digest.update(json.dumps(fields_of(example), sort_keys=True).encode())
        return digest.hexdigest()


GROUPS = {"standard": CONFIGS, "extra": EXTRA_CONFIGS}
"""Names that stand for several configs."""


@cache
def _version(package: str) -> str:
    """Read once: it takes milliseconds."""
    return version(package)


def choose_configs(names: Sequence[str] | None) -> tuple[str, ...]:
    """The named configs in their usual order; the fifteen if none is named.

    Args:
        names: Configs, or `standard` (the fifteen) and `extra` (the controls on request).

    Raises:
        UserError: A name is unknown.
    """
    chosen = {config for name in names or ("standard",) for config in GROUPS.get(name, (name,))}
    known = (*CONFIGS, *EXTRA_CONFIGS)
    if unknown := sorted(chosen - set(known)):
        raise UserError(f"unknown config {', '.join(unknown)}: use some of {', '.join((*GROUPS, *known))}")
    return tuple(config for config in known if config in chosen)


def publishable(selection: Selection, spec: BenchmarkSpec) -> Selection:
    """The images whose licence lets changed copies be published; the others are dropped with their licence as reason.

    Raises:
        UserError: None is left.
    """
    kept = [each for each in selection.examples if spec.publishable(each.license, perturbed=True)]
    if not kept:
        raise UserError(f"--publishable: no image of {spec.name} may be published changed: publish a recipe instead")
    ids = {each.image_id for each in kept}
    dropped = [
        Dropped(each.image_id, f"licence forbids publishing changed copies: {each.license}")
        for each in selection.examples
        if each.image_id not in ids
    ]
    step = FilterStep("publishable", *(sum(each.gender == gender for each in kept) for gender in GENDERS))
    return replace(
        selection,
        examples=kept,
        steps=[*selection.steps, step],
        dropped=[*selection.dropped, *dropped],
        options={**selection.options, "publishable": True},
    )


def limit(selection: Selection, count: int, *, benchmark: str, seed: int) -> Selection:
    """A sample of a selection, as balanced as it allows and independent of its order.

    Args:
        selection: What the source gave.
        count: How many images to keep at most.
        benchmark: Part of the random key.
        seed: Part of the random key.

    Raises:
        UserError: The count is not positive.
    """
    if count < 1:
        raise UserError(f"--limit {count}: give a number of images, at least 1")
    ranked = {
        gender: sorted(
            (each for each in selection.examples if each.gender == gender),
            key=lambda each: Key(benchmark, each.image_id, "limit", seed).uniform(),
        )
        for gender in GENDERS
    }
    # Half of each, and what one lacks from the other.
    woman = min(len(ranked["woman"]), max(count - count // 2, count - len(ranked["man"])))
    kept = {each.image_id for each in (*ranked["woman"][:woman], *ranked["man"][: count - woman])}
    examples = [each for each in selection.examples if each.image_id in kept]
    step = FilterStep(f"limit {count}", *(sum(example.gender == gender for example in examples) for gender in GENDERS))
    return replace(
        selection, examples=examples, steps=[*selection.steps, step], options={**selection.options, "limit": count}
    )

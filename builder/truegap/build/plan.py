"""What a build will do, decided before it starts: same plan, same rows, on any number of workers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.metadata import version
from math import inf
from typing import Any

from truegap.build.images import Encoder
from truegap.build.rows import fields_of
from truegap.errors import UserError
from truegap.perturbations import Options
from truegap.perturbations.keys import Key
from truegap.schema import (
    CONFIGS,
    CONTROLS,
    EXTRA_CONFIGS,
    GENDERS,
    SPLITS,
    Dropped,
    Example,
    FilterStep,
    Generated,
    Selection,
    Split,
)
from truegap.sources.benchmark import BenchmarkSpec

SHARD_SIZE = 256
"""Images per shard: the unit of work, of resuming, and of the files; about a minute of building."""

_SHORT = 40
"""Characters of a value that is shown."""

VERSIONED = ("truegap", "numpy", "pillow", "numba", "opencv-python-headless", "pycocotools", "pyarrow", "datasets")


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
        """The examples split by split in groups of `SHARD_SIZE`, in order; no group is of two splits."""
        return [
            examples[start : start + SHARD_SIZE]
            for examples in by_split(self.selection.examples).values()
            for start in range(0, len(examples), SHARD_SIZE)
        ]

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
        examples = self.selection.examples
        if isinstance(examples, Generated):
            digest.update(examples.made_from.encode())
            return digest.hexdigest()
        for example in examples:
            digest.update(json.dumps(fields_of(example), sort_keys=True).encode())
        return digest.hexdigest()


def telling(examples: Sequence[Example]) -> Sequence[Example]:
    """Examples that tell what all are like: all of them, or the first where they are made alike."""
    return examples[:1] if isinstance(examples, Generated) else examples


def by_split(examples: Sequence[Example]) -> Mapping[Split, Sequence[Example]]:
    """The examples of every split that has some, in the order of `truegap.schema.SPLITS`."""
    if isinstance(examples, Generated):
        return {each.split: examples for each in telling(examples)}
    parts: dict[Split, list[Example]] = {split: [] for split in SPLITS}
    for example in examples:
        parts[example.split].append(example)
    return {split: part for split, part in parts.items() if part}


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What differs between two builds, by the names of options, with values where they are short.

    Args:
        before: What `Plan.describe` gave for a build, perhaps read from JSON.
        now: What it gives for another one; the two are known to differ.

    Returns:
        Such as `seed (0, now 1), limit (4, now none)`; where both were asked for alike, the images differ.
    """
    flat = [_flat(json.loads(json.dumps(each))) for each in (before, now)]
    names = [name for name in dict.fromkeys([*flat[0], *flat[1]]) if flat[0].get(name) != flat[1].get(name)]
    return ", ".join(name + _change(flat[0].get(name), flat[1].get(name)) for name in names) or (
        "images (the source gives others, or knows something else about them)"
    )


def _flat(described: Mapping[str, Any]) -> dict[str, Any]:
    """Options by their own names, whether they are the build's, the source's or the encoder's."""
    flat: dict[str, Any] = {}
    for name, value in described.items():
        inner = value if isinstance(value, Mapping) else {}
        flat |= {f"{name} {each}" if each in described else each: inner[each] for each in inner} or {name: value}
    return flat


def _change(before: Any, now: Any) -> str:
    told = ["none" if each is None else str(each) for each in (before, now)]
    short = not any(
        isinstance(each, list | dict) or len(text) > _SHORT for each, text in zip((before, now), told, strict=True)
    )
    return f" ({told[0]}, now {told[1]})" if short else ""


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


def marked(selection: Selection, configs: Sequence[str]) -> Selection:
    """The images in which somebody is marked, where a config changes what is around the person.

    Where nobody is marked in any image, nothing is left out: that is no matter of single images, and a build refuses
    it.
    """
    examples = telling(selection.examples)
    kept = [each for each in examples if each.persons]
    if not kept or len(kept) == len(examples) or all(config in CONTROLS for config in configs):
        return selection
    nobody = [Dropped(each.image_id, "nobody is marked") for each in examples if not each.persons]
    step = FilterStep("somebody is marked", *(sum(each.gender == gender for each in kept) for gender in GENDERS))
    return replace(selection, examples=kept, steps=[*selection.steps, step], dropped=[*selection.dropped, *nobody])


def limit(selection: Selection, count: int, *, benchmark: str, seed: int) -> Selection:
    """A sample of a selection, as balanced as it allows and independent of its order.

    Every split keeps its share, but a pair at least as long as the count suffices, the test split first; within a
    split half are women and half men, and what one lacks comes from the other. A larger count adds images and
    takes none away, as long as there are enough of both.

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
    parts = by_split(selection.examples)
    shares = _shares({split: len(part) for split, part in parts.items()}, count)
    kept = {
        each.image_id
        for split, part in parts.items()
        for each in _balanced(part, shares[split], benchmark=benchmark, seed=seed)
    }
    examples = [each for each in selection.examples if each.image_id in kept]
    beyond = [
        Dropped(each.image_id, f"beyond --limit {count}") for each in selection.examples if each.image_id not in kept
    ]
    step = FilterStep(f"limit {count}", *(sum(example.gender == gender for example in examples) for gender in GENDERS))
    return replace(
        selection,
        examples=examples,
        steps=[*selection.steps, step],
        dropped=[*selection.dropped, *beyond],
        options={**selection.options, "limit": count},
    )


def _shares(sizes: dict[Split, int], count: int) -> dict[Split, int]:
    """How many images each split keeps: pairs in proportion to its size (Webster's method), after one pair each."""
    shares: dict[Split, int] = dict.fromkeys(reversed(sizes), 0)

    def claim(split: Split) -> float:
        pairs = shares[split] // 2
        return sizes[split] / (pairs + 0.5) if pairs else inf

    for _ in range(min(count, sum(sizes.values()))):
        shares[max((split for split in shares if shares[split] < sizes[split]), key=claim)] += 1
    return shares


def _balanced(examples: Sequence[Example], count: int, *, benchmark: str, seed: int) -> list[Example]:
    ranked = {
        gender: sorted(
            (each for each in examples if each.gender == gender),
            key=lambda each: Key(benchmark, each.image_id, "limit", seed).uniform(),
        )
        for gender in GENDERS
    }
    # Half of each, and what one lacks from the other.
    woman = min(len(ranked["woman"]), max(count - count // 2, count - len(ranked["man"])))
    return [*ranked["woman"][:woman], *ranked["man"][: count - woman]]

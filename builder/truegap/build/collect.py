"""The manifest of a build, put together from its finished shards."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from truegap.build.digests import Digests
from truegap.build.manifest import ConfigSummary, Manifest, Rows, SplitSummary, Step
from truegap.build.plan import Plan
from truegap.schema import GENDERS, Split

if TYPE_CHECKING:
    from hashlib import _Hash

Summary = Mapping[str, Any]
"""What `shard.json` holds, see `truegap.build.shard.build_shard`."""


class Collected:
    """What the manifest takes from finished shards, which are looked at one by one."""

    def __init__(self, plan: Plan) -> None:
        """Begins without a shard."""
        self._plan = plan
        self._image_ids: list[str] = []
        self._rows = {config: Digests() for config in plan.configs}
        self._images = {config: Digests() for config in plan.configs}
        self._genders: dict[Split, Counter[str]] = defaultdict(Counter)
        self._files: Counter[Split] = Counter()
        self._whole: dict[str, _Hash] = {config: hashlib.sha256() for config in plan.configs}
        self._parts: dict[str, dict[Split, _Hash]] = {config: defaultdict(hashlib.sha256) for config in plan.configs}
        self._objects: Counter[tuple[str, int]] = Counter()
        self._left_out = [(image.image_id, image.reason) for image in plan.selection.dropped]

    def add(self, summary: Summary) -> None:
        """Adds a shard; they come in the order of the plan."""
        self._left_out += summary["dropped"].items()
        if not summary["image_id"]:
            return
        split = summary["split"]
        self._image_ids += summary["image_id"]
        self._genders[split].update(summary["gender"])
        self._files[split] += 1
        for config in self._plan.configs:
            hashes = summary["sha256"][config]
            self._rows[config].extend(hashes)
            self._images[config].extend(summary["image_sha256"][config])
            lines = "".join(f"{each} {digest}\n" for each, digest in zip(summary["image_id"], hashes, strict=True))
            for digest in (self._whole[config], self._parts[config][split]):
                digest.update(lines.encode())
            for place, number in enumerate(summary["objects"][config]):
                self._objects[config, place] += number

    def manifest(self, key: str) -> Manifest:
        """The manifest, once every shard is there.

        Args:
            key: Of the plan.
        """
        plan, described = self._plan, self._plan.describe()
        splits = {
            split: SplitSummary(
                rows=genders.total(), **{each: genders[each] for each in GENDERS}, files=self._files[split]
            )
            for split, genders in self._genders.items()
        }
        counts = {gender: sum(getattr(each, gender) for each in splits.values()) for gender in GENDERS}
        steps = [Step(name=s.name, woman=s.woman, man=s.man, other=s.other) for s in plan.selection.steps]
        steps.append(Step(name="image readable", **counts))
        return Manifest(
            benchmark=plan.benchmark,
            version=plan.version,
            build_key=key,
            seed=plan.seed,
            encoder=described["encoder"],
            perturbations=described["options"],
            selection=described["selection"],
            steps=steps,
            published=None if plan.published is None else dict(plan.published),
            splits=splits,
            configs={
                config: ConfigSummary(
                    rows=len(self._image_ids),
                    **counts,
                    sha256=self._whole[config].hexdigest(),
                    split_sha256={split: digest.hexdigest() for split, digest in self._parts[config].items()},
                    **self._object_counts(config),
                )
                for config in plan.configs
            },
            dropped=_dropped(self._left_out),
            repairs=dict(plan.selection.repairs),
            versions=described["versions"],
            rows=Rows(image_id=self._image_ids, sha256=self._rows, image_sha256=self._images),
        )

    def _object_counts(self, config: str) -> dict[str, int]:
        """How many objects there were and were drawn, for the configs that black objects out, placebos included."""
        if not config.startswith("object-"):
            return {}
        return {"objects": self._objects[config, 0], "objects_drawn": self._objects[config, 1]}


def _dropped(left_out: Iterable[tuple[str, str]]) -> dict[str, dict[str, str]]:
    """Every image left out, by reason, the most frequent reason first."""
    dropped: dict[str, dict[str, str]] = defaultdict(dict)
    seen: Counter[tuple[str, str]] = Counter()
    for image_id, text in left_out:
        # What follows the colon differs from image to image: a reason is counted, its details are kept.
        reason, _, detail = text.partition(": ")
        name = image_id
        while name in dropped[reason]:
            # An archive may name an image several times; each of them is counted.
            seen[reason, image_id] += 1
            name = f"{image_id} ({seen[reason, image_id] + 1})"
        dropped[reason][name] = detail
    return {reason: dropped[reason] for reason in sorted(dropped, key=lambda each: (-len(dropped[each]), each))}

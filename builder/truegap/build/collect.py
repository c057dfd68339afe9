"""The manifest of a build, put together from its finished shards."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from truegap.build.manifest import ConfigSummary, Manifest, Rows, SplitSummary, Step
from truegap.build.plan import Plan
from truegap.schema import GENDERS, SPLITS, Split

Summary = Mapping[str, Any]
"""What `shard.json` holds, see `truegap.build.shard.build_shard`."""


def manifest_of(plan: Plan, key: str, summaries: Sequence[Summary]) -> Manifest:
    """The manifest of finished shards, which are given in the order of the plan."""
    by_split: dict[Split, list[Summary]] = {
        split: [each for each in summaries if each["split"] == split and each["image_id"]] for split in SPLITS
    }
    splits = {split: _split_summary(some) for split, some in by_split.items() if some}
    used = [each for split in splits for each in by_split[split]]
    rows = Rows(
        image_id=_joined(used, "image_id"),
        sha256={config: _joined(used, "sha256", config) for config in plan.configs},
        image_sha256={config: _joined(used, "image_sha256", config) for config in plan.configs},
    )
    counts = {gender: sum(getattr(each, gender) for each in splits.values()) for gender in GENDERS}
    steps = [Step(name=s.name, woman=s.woman, man=s.man, other=s.other) for s in plan.selection.steps]
    steps.append(Step(name="image readable", **counts))
    described = plan.describe()
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
                rows=len(rows.image_id),
                **counts,
                sha256=_digest(rows.image_id, rows.sha256[config]),
                split_sha256={
                    split: _digest(_joined(by_split[split], "image_id"), _joined(by_split[split], "sha256", config))
                    for split in splits
                },
                **_objects(config, used),
            )
            for config in plan.configs
        },
        dropped=_dropped(plan, summaries),
        repairs=dict(plan.selection.repairs),
        versions=described["versions"],
        rows=rows,
    )


def _split_summary(summaries: Sequence[Summary]) -> SplitSummary:
    counts = Counter(_joined(summaries, "gender"))
    return SplitSummary(rows=counts.total(), **{gender: counts[gender] for gender in GENDERS}, files=len(summaries))


def _joined(summaries: Iterable[Summary], what: str, config: str | None = None) -> list[str]:
    return [each for summary in summaries for each in (summary[what] if config is None else summary[what][config])]


def _digest(image_ids: Sequence[str], hashes: Sequence[str]) -> str:
    lines = "".join(f"{image_id} {digest}\n" for image_id, digest in zip(image_ids, hashes, strict=True))
    return hashlib.sha256(lines.encode()).hexdigest()


def _objects(config: str, summaries: Sequence[Summary]) -> dict[str, int]:
    """How many objects there were and were drawn, for the configs that black objects out, placebos included."""
    if not config.startswith("object-"):
        return {}
    objects, drawn = (sum(summary["objects"][config][place] for summary in summaries) for place in (0, 1))
    return {"objects": objects, "objects_drawn": drawn}


def _dropped(plan: Plan, summaries: Sequence[Summary]) -> dict[str, dict[str, str]]:
    """Every image left out, by reason, the most frequent reason first."""
    dropped: dict[str, dict[str, str]] = defaultdict(dict)
    seen: Counter[tuple[str, str]] = Counter()
    reasons = [(image.image_id, image.reason) for image in plan.selection.dropped]
    reasons += [each for summary in summaries for each in summary["dropped"].items()]
    for image_id, text in reasons:
        # What follows the colon differs from image to image: a reason is counted, its details are kept.
        reason, _, detail = text.partition(": ")
        name = image_id
        while name in dropped[reason]:
            # An archive may name an image several times; each of them is counted.
            seen[reason, image_id] += 1
            name = f"{image_id} ({seen[reason, image_id] + 1})"
        dropped[reason][name] = detail
    return {reason: dropped[reason] for reason in sorted(dropped, key=lambda each: (-len(dropped[each]), each))}

"""A build on disk: begun beside its place, finished by a rename, resumable at any moment between."""

from __future__ import annotations

import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from truegap.build.card import card
from truegap.build.draws import choose_donors
from truegap.build.manifest import FILE, ConfigSummary, Manifest, Rows, Step, read_manifest, write_json
from truegap.build.plan import Plan
from truegap.build.rows import columns
from truegap.build.shard import SUMMARY, ShardTask
from truegap.errors import UserError
from truegap.schema import CONTROLS, GENDERS


class Workspace:
    """The folder `<out>.partial`, which becomes `<out>` when everything in it is finished.

    Nothing under `<out>` ever looks finished before it is: an unfinished build has another name.
    """

    def __init__(self, plan: Plan, out: Path) -> None:
        """Looks at what is there already.

        Raises:
            UserError: `out` holds something else, or the plan cannot be built.
        """
        _check(plan)
        self.plan = plan
        self.out = out = out.resolve()
        if not out.name:
            raise UserError(f"--out {out}: give a folder of its own")
        self.partial = out.with_name(f"{out.name}.partial")
        self.shards = self.partial / "shards"
        self.key = plan.key()
        self.finished = self._is_finished()

    def _is_finished(self) -> bool:
        if not self.out.exists() or (self.out.is_dir() and not any(self.out.iterdir())):
            return False
        if not (self.out / FILE).exists():
            raise UserError(f"{self.out} exists and is not a built benchmark: choose another --out")
        if read_manifest(self.out).build_key != self.key:
            raise UserError(f"{self.out} holds a build with other inputs or options: choose another --out or remove it")
        # What a kill between the last rename and the tidying up left.
        shutil.rmtree(self.out / "shards", ignore_errors=True)
        return True

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Makes the folder, or goes on with the one that an interrupted build left.

        Raises:
            UserError: Another process builds here, or the unfinished build is of another plan.
        """
        self.shards.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.shards / "lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise UserError(f"another process is building {self.out}: wait for it, or choose another --out") from None
        try:
            self._claim()
            for left in self.shards.glob(".*.aside"):
                shutil.rmtree(left, ignore_errors=True)
            yield
        finally:
            lock.release()

    def _claim(self) -> None:
        path = self.shards / "build.json"
        if not path.exists():
            write_json(path, {"key": self.key, **self.plan.describe()})
        try:
            begun = json.loads(path.read_bytes())
        except ValueError:
            raise UserError(f"{path} is damaged: remove {self.partial} and build again") from None
        if begun["key"] != self.key:
            now = self.plan.describe()
            other = [name for name, value in now.items() if json.loads(json.dumps(value)) != begun.get(name)]
            raise UserError(
                f"{self.partial} is an unfinished build with other {', '.join(other) or 'images'}: "
                "repeat its command, or remove it"
            )

    def tasks(self) -> list[ShardTask]:
        """One task per shard, finished ones too: they come back at once."""
        schema = columns(extra_columns(self.plan)).arrow_schema
        return [
            ShardTask(
                folder=self.shards / f"{number:05d}",
                examples=examples,
                benchmark=self.plan.benchmark,
                configs=self.plan.configs,
                seed=self.plan.seed,
                options=self.plan.options,
                encoder=self.plan.encoder,
                schema=schema,
                donors=choose_donors(
                    examples,
                    self.plan.configs,
                    benchmark=self.plan.benchmark,
                    seed=self.plan.seed,
                    among=self.plan.selection.examples,
                ),
            )
            for number, examples in enumerate(self.plan.shards)
        ]

    def finish(self) -> Manifest:
        """Puts the shards' files in their places, writes card and manifest, gives the folder its name.

        Every step can be repeated, so that a build killed here goes on here.

        Raises:
            UserError: No image was left.
        """
        folders = [task.folder for task in self.tasks()]
        summaries = [json.loads((folder / SUMMARY).read_bytes()) for folder in folders]
        kept = [(folder, summary) for folder, summary in zip(folders, summaries, strict=True) if summary["image_id"]]
        manifest = manifest_of(self.plan, self.key, summaries, files=len(kept))
        if not kept:
            shutil.rmtree(self.partial)
            reasons = "; ".join(f"{len(ids)} {reason}" for reason, ids in manifest.dropped.items())
            raise UserError(f"no image is left to build {self.plan.benchmark} from: {reasons}; check --source")
        for config in self.plan.configs:
            place = self.partial / "data" / config
            place.mkdir(parents=True, exist_ok=True)
            for number, (folder, _) in enumerate(kept):
                built = folder / f"{config}.parquet"
                if built.exists():
                    built.rename(place / f"test-{number:05d}-of-{len(kept):05d}.parquet")
        (self.partial / "README.md").write_text(card(self.plan, manifest), encoding="utf-8")
        write_json(self.partial / FILE, manifest)
        self.partial.rename(self.out)
        shutil.rmtree(self.out / "shards")
        return manifest


def _check(plan: Plan) -> None:
    """Refuses what would come out wrong without a word."""
    examples = plan.selection.examples
    if splits := sorted({each.split for each in examples} - {"test"}):
        raise UserError(
            f"{plan.benchmark}: images of {' and '.join(splits)} cannot be built yet, only those of test; "
            "read them with truegap.sources.read"
        )
    nobody = [each.image_id for each in examples if not each.persons]
    if nobody and any(config not in CONTROLS for config in plan.configs):
        raise UserError(
            f"{plan.benchmark}: nobody is marked in {len(nobody)} images, such as {nobody[0]}, so a perturbation would "
            "hit the person: find them with --regions DETECTOR or --detections FILE"
        )


def manifest_of(plan: Plan, key: str, summaries: list[dict[str, Any]], *, files: int) -> Manifest:
    """The manifest of finished shards."""
    image_ids = [each for summary in summaries for each in summary["image_id"]]
    counts = Counter(each for summary in summaries for each in summary["gender"])
    hashes, image_hashes = (
        {config: [each for summary in summaries for each in summary[what][config]] for config in plan.configs}
        for what in ("sha256", "image_sha256")
    )
    dropped: dict[str, dict[str, str]] = defaultdict(dict)
    reasons = [(image.image_id, image.reason) for image in plan.selection.dropped]
    reasons += [each for summary in summaries for each in summary["dropped"].items()]
    for image_id, text in reasons:
        # What follows the colon differs from image to image: a reason is counted, its details are kept.
        reason, _, detail = text.partition(": ")
        dropped[reason][image_id] = detail
    steps = [Step(name=s.name, woman=s.woman, man=s.man, other=s.other) for s in plan.selection.steps]
    steps.append(Step(name="image readable", **{gender: counts[gender] for gender in GENDERS}))
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
        configs={
            config: _summary(config, image_ids, hashes[config], counts, files, summaries) for config in plan.configs
        },
        dropped={reason: dropped[reason] for reason in sorted(dropped, key=lambda each: (-len(dropped[each]), each))},
        repairs=dict(plan.selection.repairs),
        versions=described["versions"],
        rows=Rows(image_id=image_ids, sha256=hashes, image_sha256=image_hashes),
    )


def _summary(
    config: str,
    image_ids: list[str],
    hashes: list[str],
    counts: Mapping[str, int],
    files: int,
    summaries: list[dict[str, Any]],
) -> ConfigSummary:
    import hashlib

    lines = "".join(f"{image_id} {digest}\n" for image_id, digest in zip(image_ids, hashes, strict=True))
    objects, drawn = (sum(summary["objects"][config][i] for summary in summaries) for i in (0, 1))
    is_object = config.startswith("object-")  # the placebos too: they mean the same objects
    return ConfigSummary(
        rows=len(image_ids),
        woman=counts["woman"],
        man=counts["man"],
        files=files,
        sha256=hashlib.sha256(lines.encode()).hexdigest(),
        objects=objects if is_object else None,
        objects_drawn=drawn if is_object else None,
    )


def extra_columns(plan: Plan) -> dict[str, Any]:
    """The columns that this benchmark adds, typed by what its examples hold.

    Raises:
        UserError: Examples disagree about a column's type.
    """
    import pyarrow as pa
    from datasets import Features

    names = sorted({name for example in plan.selection.examples for name in example.extra})
    try:
        table = pa.table({name: [each.extra.get(name) for each in plan.selection.examples] for name in names})
    except pa.ArrowException as error:
        raise UserError(f"{plan.benchmark}: an added column mixes types: {error}; give each column one type") from None
    features: dict[str, Any] = Features.from_arrow_schema(table.schema)
    return dict(features)

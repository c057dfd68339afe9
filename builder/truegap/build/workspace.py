"""A build on disk: begun beside its place, finished by a rename, resumable at any moment between."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from truegap.build.card import card
from truegap.build.collect import Collected
from truegap.build.draws import choose_donors
from truegap.build.manifest import FILE, Manifest, read_manifest, write_json, write_manifest
from truegap.build.plan import Plan, differences, telling
from truegap.build.rows import columns
from truegap.build.shard import NO_DONOR, SUMMARY, ShardTask, is_usable
from truegap.errors import UserError
from truegap.schema import CONTROLS, SWAP, Split

_SEED_BITS = 63
"""A row's column `seed` has these, and a sign."""


class Workspace:
    """The folder `<out>.partial`, which becomes `<out>` when everything in it is finished.

    Nothing under `<out>` ever looks finished before it is: an unfinished build has another name.
    """

    def __init__(self, plan: Plan, out: Path) -> None:
        """Looks at what is there already.

        Raises:
            UserError: `out` holds something else, or the plan cannot be built.
        """
        self.plan = plan
        self.out = out = out.resolve()
        if not out.name:
            raise UserError(f"--out {out}: give a folder of its own")
        self.partial = out.with_name(f"{out.name}.partial")
        self.shards = self.partial / "shards"
        self.key = plan.key()
        self.finished = self._is_finished()
        if not self.finished:
            _check(plan)

    def _is_finished(self) -> bool:
        if not self.out.exists() or (self.out.is_dir() and not any(self.out.iterdir())):
            return False
        if not (self.out / FILE).exists():
            raise UserError(f"{self.out} exists and is not a built benchmark: choose another --out")
        manifest = read_manifest(self.out)
        if manifest.build_key != self.key:
            other = differences(manifest.described, self.plan.describe())
            raise UserError(f"{self.out} holds a build with other {other}: choose another --out, or remove it")
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
            # A build killed while it wrote its manifest left half of one, which would be in the finished folder.
            for half in self.partial.glob(f".{FILE}.*"):
                half.unlink(missing_ok=True)
            yield
        finally:
            lock.release()

    def _claim(self) -> None:
        path = self.shards / "build.json"
        if not path.exists():
            write_json(path, {"key": self.key, **self.plan.describe()})
        try:
            begun = json.loads(path.read_bytes())
            key = begun.pop("key")
        except (ValueError, AttributeError, KeyError, TypeError):
            raise UserError(f"{path} is damaged: remove {self.partial} and build again") from None
        if key != self.key:
            other = differences(begun, self.plan.describe())
            raise UserError(
                f"{self.partial} is an unfinished build with other {other}: repeat its command, or remove it"
            )

    def tasks(self) -> list[ShardTask]:
        """One task per shard, finished ones too: they come back at once."""
        schema = columns(extra_columns(self.plan)).arrow_schema
        swaps = any(config.startswith(SWAP) for config in self.plan.configs)
        # Asked for in every shard: what is generated is made once.
        among = list(self.plan.selection.examples) if swaps else []
        return [
            ShardTask(
                folder=self._shard(number),
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
                    among=among,
                ),
            )
            for number, examples in enumerate(self.plan.shards)
        ]

    def _shard(self, number: int) -> Path:
        return self.shards / f"{number:05d}"

    def finish(self) -> Manifest:
        """Puts the shards' files in their places, writes card and manifest, gives the folder its name.

        Every step can be repeated, so that a build killed here goes on here.

        Raises:
            UserError: No image was left.
        """
        collected = Collected(self.plan)
        kept: dict[Split, list[Path]] = defaultdict(list)
        for number in range(len(self.plan.shards)):
            folder = self._shard(number)
            summary = json.loads((folder / SUMMARY).read_bytes())
            collected.add(summary)
            if summary["image_id"]:
                kept[summary["split"]].append(folder)
        manifest = collected.manifest(self.key)
        if not manifest.splits:
            shutil.rmtree(self.partial)
            reasons = "; ".join(f"{len(ids)} {reason}" for reason, ids in manifest.dropped.items())
            remedy = "swaps need two images of a gender" if NO_DONOR in manifest.dropped else "check --source"
            raise UserError(f"no image is left to build {self.plan.benchmark} from: {reasons}; {remedy}")
        for split, folders in kept.items():
            for config in self.plan.configs:
                place = self.partial / "data" / config
                place.mkdir(parents=True, exist_ok=True)
                for number, folder in enumerate(folders):
                    built = folder / f"{config}.parquet"
                    if built.exists():
                        built.rename(place / f"{split}-{number:05d}-of-{len(folders):05d}.parquet")
        (self.partial / "README.md").write_text(card(self.plan, manifest), encoding="utf-8")
        write_manifest(self.partial, manifest)
        self.partial.rename(self.out)
        shutil.rmtree(self.out / "shards")
        return manifest


def mended(plan: Plan, manifest: Manifest) -> list[str]:
    """Ids of images that a finished build had to leave out and that could be used now."""
    known = {*manifest.rows.image_id, *manifest.dropped.get(NO_DONOR, ())}
    if len(known) == len(plan.selection.examples):
        return []
    return [each.image_id for each in plan.selection.examples if each.image_id not in known and is_usable(each)]


def _check(plan: Plan) -> None:
    """Refuses what would come out wrong without a word."""
    if plan.seed.bit_length() > _SEED_BITS:
        raise UserError(f"--seed {plan.seed}: give a whole number of at most {_SEED_BITS} bits")
    nobody = [each.image_id for each in telling(plan.selection.examples) if not each.persons]
    if nobody and any(config not in CONTROLS for config in plan.configs):
        raise UserError(
            f"{plan.benchmark}: nobody is marked ({len(nobody)} images, such as {nobody[0]}), so a perturbation would "
            "hit the person: find them with --regions DETECTOR or --detections FILE, or build the controls alone "
            "(--configs original,control,control-hsv)"
        )


def extra_columns(plan: Plan) -> dict[str, Any]:
    """The columns that this benchmark adds, typed by what its examples hold.

    Raises:
        UserError: Examples disagree about a column's type.
    """
    import pyarrow as pa
    from datasets import Features

    examples = telling(plan.selection.examples)
    names = sorted({name for example in examples for name in example.extra})
    try:
        table = pa.table({name: [each.extra.get(name) for each in examples] for name in names})
    except pa.ArrowException as error:
        raise UserError(f"{plan.benchmark}: an added column mixes types: {error}; give each column one type") from None
    features: dict[str, Any] = Features.from_arrow_schema(table.schema)
    return dict(features)

"""From a benchmark and what reads its pictures to the accuracy of every feature."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from truegap.errors import UserError
from truegap.hub.benchmark import Benchmark
from truegap.protocols.run import Progress
from truegap.results.environment import environment
from truegap.results.records import BenchmarkRecord
from truegap.results.runs import read_record, write_record
from truegap.schema import GENDERS, Feature
from truegap.scores import holm
from truegap.spurious.pool import Pool, open_pool, usable
from truegap.spurious.records import FILE, AccuracyRecord, SeedRecord, SpuriousRecord
from truegap.spurious.split import LEAST, Split, balanced_split
from truegap.spurious.statistics import chance_p, effective_images, wilson
from truegap.spurious.views import FEATURES, VERSION, WHOLE, Lighting, Removal

if TYPE_CHECKING:
    from truegap.spurious.readers import Reader

STANDARD = tuple(feature.value for feature in Feature)
_TRAINING = ("epochs", "patience", "learning_rate", "batch_size")


@dataclass(frozen=True, slots=True)
class Conventions:
    """How Acc_b is measured (Hirota et al. 2025); the defaults follow the paper where it says how.

    Attributes:
        features: Which, of `views.FEATURES`.
        seeds: How many splits and trainings, numbered from 0.
        lighting: `hsv`, or `value` for the brightness alone.
        removal: `mask`: the person's mask is blacked out, a box where there is none; `box`: the box of all persons.
        epochs: At most so many; None for the default of what is trained.
        patience: Epochs without a better validation loss before training stops; likewise.
        learning_rate: Likewise.
        batch_size: Likewise.
        limit: A balanced sample of so many images.
    """

    features: tuple[str, ...] = STANDARD
    seeds: int = 5
    lighting: Lighting = "hsv"
    removal: Removal = "mask"
    epochs: int | None = None
    patience: int | None = None
    learning_rate: float | None = None
    batch_size: int | None = None
    limit: int | None = None

    def check(self) -> None:
        """Refuses what cannot be measured.

        Raises:
            UserError: A feature or a convention is unknown.
        """
        if unknown := [each for each in self.features if each not in FEATURES]:
            raise UserError(f"feature {unknown[0]!r} is unknown: use some of {', '.join(FEATURES)}")
        if not self.features or len(set(self.features)) < len(self.features):
            raise UserError("features: give each feature once, and at least one")
        for name, value, choices in (("lighting", self.lighting, Lighting), ("removal", self.removal, Removal)):
            if value not in (known := get_args(choices)):
                raise UserError(f"{name} {value!r} is unknown: use one of {', '.join(known)}")


def measure(
    benchmark: Benchmark,
    reader: Reader,
    conventions: Conventions,
    *,
    folder: Path | None = None,
    progress: Progress,
    command: Sequence[str] = (),
    accept: Callable[[SpuriousRecord], object] | None = None,
) -> tuple[Path, bool]:
    """Measures Acc_b of every feature and writes `spurious.json`.

    Features of frozen encoders and results of trainings are kept in the user's cache: what was interrupted goes on,
    and what is known is not computed again, in whatever folder.

    Args:
        benchmark: The opened benchmark.
        reader: What reads the pictures.
        conventions: How.
        folder: Where the result goes; None for `runs/spurious-<reader>-<benchmark>-<id>`.
        progress: What shows progress.
        command: What the user typed, for the record.
        accept: Is shown the record without results before anything is computed, and may refuse it.

    Returns:
        The folder, and whether it held this very result already.

    Raises:
        UserError: There are too few images of a gender, a convention is not usable, or the folder holds something else.
    """
    started = time.monotonic()
    conventions.check()
    reader.check()
    check_counts(benchmark, conventions.limit)
    pool = open_pool(benchmark, limit=conventions.limit, lighting=conventions.lighting, removal=conventions.removal)
    record = _asked(benchmark, reader, conventions, pool, command)
    if accept is not None:
        accept(record)
    folder = folder or Path("runs") / _name(record)
    if _finished(folder, record.spurious_id):
        return folder, True
    work = _Work(pool, reader, conventions, progress)
    found = [work.accuracy(feature) for feature in conventions.features]
    record = record.model_copy(
        update={
            "accuracies": _adjusted(found),
            "notes": _notes(pool, reader, conventions),
            "statistics": {"seconds": round(time.monotonic() - started, 1), **work.statistics},
        }
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_record(folder / FILE, record)
    return folder, False


def check_counts(benchmark: Benchmark, limit: int | None = None) -> None:
    """Refuses a benchmark that is too small to train and test a classifier on.

    Args:
        benchmark: The opened benchmark.
        limit: A balanced sample of so many images.

    Raises:
        UserError: There are fewer than `LEAST` images of a gender.
    """
    there = benchmark.manifest.splits.get("test")
    counts = {gender: getattr(there, gender, 0) for gender in GENDERS}
    if limit is not None:
        counts = {gender: min(count, limit // 2) for gender, count in counts.items()}
    if min(counts.values()) < LEAST:
        shown = ", ".join(f"{count} {gender}" for gender, count in counts.items())
        raise UserError(
            f"{benchmark.spec}: too few test images to train a classifier ({shown}): at least {LEAST} of each gender "
            "are needed"
        )


def read_spurious(folder: Path) -> SpuriousRecord:
    """Reads a result.

    Raises:
        UserError: It is absent, broken or of another format version.
    """
    if not (folder / FILE).is_file():
        raise UserError(f"{folder} has no {FILE}: give a folder that `truegap spurious` wrote")
    return read_record(folder / FILE, SpuriousRecord)


class _Work:
    """The measurement of one feature after another."""

    def __init__(self, pool: Pool, reader: Reader, conventions: Conventions, progress: Progress) -> None:
        self._pool, self._reader, self._conventions, self._progress = pool, reader, conventions, progress
        self.statistics = {"images_read": 0, "trained": 0, "known": 0}

    def accuracy(self, feature: str) -> AccuracyRecord:
        """Acc_b of one feature."""
        pool, reader = self._pool, self._reader
        places, skipped = usable(pool, feature)
        genders = [pool.images.genders[n] for n in places]
        women, men = (genders.count(gender) for gender in GENDERS)
        base = AccuracyRecord(
            feature=feature,
            classifier=reader.classifier(feature),
            accuracy=None,
            women=women,
            men=men,
            skipped=skipped,
        )
        if min(women, men) < LEAST:
            why = next(iter(skipped), "too few images")
            reason = f"{why}: {women} women and {men} men are left, {LEAST} of each are needed"
            return base.model_copy(update={"reason": reason})
        ids = [pool.images.ids[n] for n in places]
        splits = [
            balanced_split(ids, genders, benchmark=pool.benchmark, seed=seed) for seed in range(self._conventions.seeds)
        ]
        fits = self._fits(feature, places, splits)
        accuracies = [float(fitted.correct.mean()) for fitted in fits]
        mean, images = float(np.mean(accuracies)), effective_images([split.test for split in splits])
        low, high = wilson(mean, images)
        seeds = [
            SeedRecord(
                seed=seed,
                accuracy=accuracy,
                train=len(split.train),
                validation=len(split.validation),
                test=len(split.test),
                epochs=fitted.epochs,
                best_epoch=fitted.best_epoch,
            )
            for seed, (accuracy, split, fitted) in enumerate(zip(accuracies, splits, fits, strict=True))
        ]
        update = {
            "accuracy": mean,
            "sd": float(np.std(accuracies, ddof=1)) if len(accuracies) > 1 else None,
            "ci_low": low,
            "ci_high": high,
            "p_value": chance_p(mean, images),
            "images": images,
            "seeds": seeds,
        }
        return base.model_copy(update=update)

    def _fits(self, feature: str, places: Sequence[int], splits: Sequence[Split]) -> list[Any]:
        """The trainings of all seeds: known ones, and those done now."""
        from truegap.models.classifier import fit, standardised
        from truegap.models.fit_cache import FitCache

        pool, reader = self._pool, self._reader
        training = replace(reader.training(feature), **_overrides(self._conventions))
        shows = [(pool.images.ids[n], pool.images.genders[n], pool.key(feature, n)) for n in places]
        common = {
            "reader": reader.key(feature),
            "training": asdict(training),
            "benchmark": pool.benchmark,
            "images": hashlib.sha256(json.dumps(shows).encode()).hexdigest(),
        }
        asked = [{**common, "seed": seed} for seed in range(len(splits))]
        with FitCache() as cache:
            known = [cache.find(each) for each in asked]
            lacking = [seed for seed, fitted in enumerate(known) if fitted is None]
            self.statistics["known"] += len(known) - len(lacking)
            if not lacking:
                return known
            with self._progress(feature, len(places) + len(lacking) * training.epochs) as advance:
                inputs = reader.inputs(pool, feature, places, advance)
                self.statistics["images_read"] += len(places)
                labels = pool.codes(places)
                for seed in lacking:
                    split = splits[seed]
                    array = inputs.array
                    if inputs.standardise:
                        array = standardised(np.asarray(array, np.float32), split.train)
                    fitted = fit(
                        inputs.make,
                        array,
                        labels,
                        (split.train, split.validation, split.test),
                        training,
                        seed=seed,
                        device=reader.device(feature),
                        dtype=reader.dtype(feature),
                        ready=inputs.ready,
                        advance=advance,
                    )
                    cache.keep(asked[seed], fitted)
                    advance(training.epochs - fitted.epochs)
                    self.statistics["trained"] += 1
                    known[seed] = fitted
        return known


def _overrides(conventions: Conventions) -> dict[str, Any]:
    return {name: value for name in _TRAINING if (value := getattr(conventions, name)) is not None}


def _asked(
    benchmark: Benchmark, reader: Reader, conventions: Conventions, pool: Pool, command: Sequence[str]
) -> SpuriousRecord:
    """The record without results; its id is a hash of everything that decides them."""
    manifest = benchmark.manifest
    trainings = {
        reader.classifier(feature): asdict(replace(reader.training(feature), **_overrides(conventions)))
        for feature in conventions.features
    }
    options = {
        **{name: value for name, value in asdict(conventions).items() if name not in _TRAINING},
        "features": list(conventions.features),
        "training": "finetuned" if reader.finetuned else "frozen",
        "hidden": None if reader.is_model else reader.hidden,
        "split": "8:1:1, women and men balanced in every part",
        "trainings": trainings,
        "dtype": reader.encoder.compute.dtype if reader.encoder.compute else None,
        "views": VERSION,
    }
    record = SpuriousRecord(
        spurious_id="",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=list(command),
        options=options,
        benchmark=BenchmarkRecord(
            spec=benchmark.spec,
            name=manifest.benchmark,
            version=manifest.version,
            revision=benchmark.revision,
            content=manifest.content,
            women=pool.images.count("woman"),
            men=pool.images.count("man"),
        ),
        reader=reader.record(),
        environment=environment(),
        compute=reader.encoder.compute,
        accuracies=[],
    )
    asked = json.dumps([options, record.benchmark.content, record.reader.content], sort_keys=True)
    return record.model_copy(update={"spurious_id": hashlib.sha256(asked.encode()).hexdigest()[:16]})


def _name(record: SpuriousRecord) -> str:
    short = record.reader.name.replace("/", "-")
    return f"spurious-{short}-{record.benchmark.name}-{record.spurious_id[:8]}"


def _finished(folder: Path, spurious_id: str) -> bool:
    """Whether the folder holds this very result."""
    if not folder.exists() or not any(folder.iterdir()):
        return False
    if read_spurious(folder).spurious_id != spurious_id:
        raise UserError(f"{folder} holds another result: choose another --out or remove it")
    return True


def _adjusted(found: Sequence[AccuracyRecord]) -> list[AccuracyRecord]:
    """With p-values adjusted over the features."""
    tested = [each.p_value for each in found if each.p_value is not None]
    adjusted = iter(holm(tested))
    return [each if each.p_value is None else each.model_copy(update={"p_adjusted": next(adjusted)}) for each in found]


def _notes(pool: Pool, reader: Reader, conventions: Conventions) -> list[str]:
    notes = []
    everyone = range(len(pool))
    if Feature.BACKGROUND in conventions.features and conventions.removal == "mask":
        boxes = sum(pool.has_person(n) and not pool.has_masks(n) for n in everyone)
        if boxes:
            notes.append(f"background: in {boxes} images a person without mask is blacked out by the box")
    if Feature.OBJECT in conventions.features:
        empty = sum(not pool.labels(n) for n in everyone)
        if 0 < empty < len(pool):
            notes.append(f"object: {empty} images have no object; they count as images without any category")
    if not reader.record().pretrained:
        notes.append(
            "the backbone began with random weights: an accuracy near 50 % may be its weakness; "
            f"feature {WHOLE} shows what it makes of the whole picture"
        )
    return notes

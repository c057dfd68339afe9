"""From a benchmark and what reads its pictures to the accuracy of every feature."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from truegap.errors import UserError
from truegap.hub.benchmark import Benchmark
from truegap.protocols.run import Progress
from truegap.results.environment import environment
from truegap.results.records import BenchmarkRecord
from truegap.results.runs import read_record, write_record
from truegap.schema import GENDERS, Feature
from truegap.scores import holm
from truegap.spurious.conventions import TRAINING, Conventions
from truegap.spurious.pool import Pool, open_pool
from truegap.spurious.records import FILE, AccuracyRecord, SpuriousRecord
from truegap.spurious.split import LEAST
from truegap.spurious.trainings import Work
from truegap.spurious.views import VERSION, WHOLE

if TYPE_CHECKING:
    from truegap.spurious.readers import Reader


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
    work = Work(pool, reader, conventions, progress)
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


def _asked(
    benchmark: Benchmark, reader: Reader, conventions: Conventions, pool: Pool, command: Sequence[str]
) -> SpuriousRecord:
    """The record without results; its id is a hash of everything that decides them."""
    manifest = benchmark.manifest
    trainings = {
        reader.classifier(feature): asdict(replace(reader.training(feature), **conventions.training))
        for feature in conventions.features
    }
    options = {
        **{name: value for name, value in asdict(conventions).items() if name not in TRAINING},
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
    if not (folder / FILE).is_file():
        raise UserError(f"{folder} exists and holds no result of `truegap spurious`: choose another --out")
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

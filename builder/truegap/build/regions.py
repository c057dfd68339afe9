"""Regions found once per image, before anything is perturbed: in parallel, and kept for the next build."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from truegap.build.images import UnusableImageError, decode
from truegap.build.rows import fields_of
from truegap.errors import UserError
from truegap.regions.combine import Detection
from truegap.regions.find import Regions, find
from truegap.regions.finders import Finders
from truegap.schema import GENDERS, Dropped, Example, FilterStep, Region, Selection

TASK_SIZE = 16
"""Images per task: what a kill costs at most, per worker."""

_TIMEOUT = 120.0
"""Seconds to wait for another process that writes."""


@dataclass(frozen=True, slots=True)
class RegionTask:
    """Some images whose regions are to be found; picklable.

    Attributes:
        number: Place among the tasks.
        examples: The images.
        detections: Those of their file, one list per image.
        finders: What to use.
        cache: Where finished work is looked up, or None.
    """

    number: int
    examples: Sequence[Example]
    detections: Sequence[Sequence[Detection]]
    finders: Finders
    cache: Path | None


@dataclass(frozen=True, slots=True)
class RegionResult:
    """What a task found.

    Attributes:
        number: The task's.
        found: Per image what was found; None where the image cannot be read, which the build finds out too and counts.
        keys: Per image under which key it is to be kept; empty where it is not, or already is.
    """

    number: int
    found: Sequence[Regions | None]
    keys: Sequence[str]


Run = Callable[[Callable[[RegionTask], RegionResult], Sequence[RegionTask]], Iterable[RegionResult]]
"""Runs a function over tasks, in any order, as `truegap.engine.run_tasks` does."""


def with_regions(
    selection: Selection,
    finders: Finders,
    run: Run,
    *,
    cache: Path | None = None,
    advance: Callable[[int], object] = lambda _images: None,
) -> Selection:
    """A selection with the persons and objects that the finders find.

    Images are read and dropped one at a time; what grows with their number is what grows with any selection: boxes and
    run lengths.

    Args:
        selection: What the source gave.
        finders: What to use; plain ones change nothing.
        run: Runs the tasks.
        cache: An SQLite file in which results are looked up and kept, by image content, annotation and finders.
        advance: Called with the number of images just finished.

    Returns:
        The images that show somebody, with a filter step `regions`; they are among the options, and each
        region says where it comes from.

    Raises:
        UserError: The finders cannot be used on this selection, the cache is damaged, or no image is left.
    """
    if finders.is_plain:
        return selection
    repairs = Counter(selection.repairs)
    given: Mapping[str, Sequence[Detection]] = {}
    if finders.file is not None:
        given, left_out = finders.file.read(selection.examples)
        repairs.update(left_out)
    tasks = [
        RegionTask(number, some, [given.get(each.image_id, ()) for each in some], finders, cache)
        for number, some in enumerate(_groups(selection.examples))
    ]
    results: dict[int, Sequence[Regions | None]] = {}
    with _writer(cache) as write:
        for result in run(find_regions, tasks):
            write(result)
            results[result.number] = result.found
            advance(len(result.found))
    examples: list[Example] = []
    dropped = list(selection.dropped)
    for example, found in zip(
        selection.examples, (each for task in tasks for each in results[task.number]), strict=True
    ):
        if found is None:
            examples.append(example)
        elif found.problem:
            dropped.append(Dropped(example.image_id, found.problem))
        else:
            examples.append(replace(example, persons=found.persons, objects=found.objects))
            repairs.update(found.repairs)
    if not examples:
        raise UserError(f"no image is left: in none of {len(selection.examples)} a person is annotated or was detected")
    counts = (sum(example.gender == gender for example in examples) for gender in GENDERS)
    return Selection(
        examples,
        [*selection.steps, FilterStep("regions", *counts)],
        dropped,
        {**selection.options, "regions": finders.record()},
        {reason: number for reason, number in sorted(repairs.items()) if number},
    )


def find_regions(task: RegionTask) -> RegionResult:
    """Finds the regions of some images, or takes them from the cache.

    Raises:
        UserError: A model cannot be loaded, or the cache is damaged.
    """
    found: list[Regions | None] = []
    keys: list[str] = []
    finders = json.dumps(task.finders.record(), sort_keys=True)
    with _reader(task.cache) as look_up:
        for example, detections in zip(task.examples, task.detections, strict=True):
            try:
                source = example.image.read()
            except OSError:
                found.append(None)
                keys.append("")
                continue
            key = _key(finders, example, source, detections)
            known = look_up(key)
            keys.append("" if known else key)
            found.append(known or _find(task.finders, example, source, detections))
    return RegionResult(task.number, found, keys)


def _find(finders: Finders, example: Example, source: bytes, detections: Sequence[Detection]) -> Regions | None:
    try:
        pixels = decode(source)
    except UnusableImageError:
        return None
    # Where the sizes differ the build drops the image, with its reason.
    return find(example, pixels, finders, detections) if pixels.shape[:2] == example.size else None


def _groups(examples: Sequence[Example]) -> Iterator[Sequence[Example]]:
    return (examples[start : start + TASK_SIZE] for start in range(0, len(examples), TASK_SIZE))


def _key(finders: str, example: Example, source: bytes, detections: Sequence[Detection]) -> str:
    fields = fields_of(example)
    told = {name: fields[name] for name in ("image_id", "person_boxes", "person_masks", "person_origins", "objects")}
    told["person_ids"] = [each.id for each in example.persons]
    told["detections"] = [asdict(each) for each in detections]
    told["image"] = hashlib.sha256(source).hexdigest()
    return hashlib.sha256(json.dumps([finders, told], sort_keys=True).encode()).hexdigest()


def _packed(found: Regions) -> str:
    return json.dumps(
        [[asdict(each) for each in found.persons], [asdict(each) for each in found.objects], dict(found.repairs)]
    )


def _unpacked(text: str) -> Regions:
    persons, objects, repairs = json.loads(text)
    return Regions(tuple(map(_region, persons)), tuple(map(_region, objects)), Counter(repairs))


def _region(fields: Mapping[str, Any]) -> Region:
    return Region(**{**fields, "box": tuple(fields["box"])})


@contextmanager
def _reader(path: Path | None) -> Iterator[Callable[[str], Regions | None]]:
    """What looks a key up; it finds nothing where there is no cache yet."""
    if path is None or not path.exists():
        yield lambda _key: None
        return

    def look_up(key: str) -> Regions | None:
        with _readable(path):
            row = database.execute("SELECT found FROM regions WHERE key = ?", (key,)).fetchone()
            return None if row is None else _unpacked(row[0])

    with _readable(path):
        database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=_TIMEOUT)
    with closing(database):
        yield look_up


@contextmanager
def _writer(path: Path | None) -> Iterator[Callable[[RegionResult], None]]:
    """What keeps a finished task; every one is committed by itself, so that a kill loses none."""
    if path is None:
        yield lambda _result: None
        return

    def write(result: RegionResult) -> None:
        rows = [(key, _packed(found)) for key, found in zip(result.keys, result.found, strict=True) if key and found]
        if rows:
            with _readable(path), database:
                database.executemany("INSERT OR IGNORE INTO regions VALUES (?, ?)", rows)

    with _readable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(path, timeout=_TIMEOUT)
    with closing(database):
        with _readable(path), database:
            database.execute("CREATE TABLE IF NOT EXISTS regions (key TEXT PRIMARY KEY, found TEXT NOT NULL)")
        yield write


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:  # locked, read-only, disk full
        raise UserError(f"cache of regions {path}: {error}; set TRUEGAP_CACHE to another folder") from error
    except (sqlite3.DatabaseError, OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"cache of regions {path}: damaged ({error}); delete it, and regions are found again"
        ) from error

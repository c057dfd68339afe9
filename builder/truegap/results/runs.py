"""Runs on disk: read with every field checked, written so that nothing half written is ever read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from truegap.errors import UserError
from truegap.files.atomic import write_bytes
from truegap.results.answers import FILE as ANSWERS
from truegap.results.records import RunRecord, ScoresRecord
from truegap.results.show import plain

RUN = "run.json"
SCORES = "scores.json"
PICTURES = "pictures"

RecordT = TypeVar("RecordT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run.

    Attributes:
        record: What was asked, of what, with what.
        scores: What the answers say.
        folder: Where it is.
    """

    record: RunRecord
    scores: ScoresRecord
    folder: Path

    @property
    def answers(self) -> Path:
        """The tidy table of answers."""
        return self.folder / ANSWERS

    @property
    def pictures(self) -> Path:
        """The folder with one image, original and perturbed; it may be absent."""
        return self.folder / PICTURES


def read_run(folder: Path) -> Run:
    """Reads a run; its answers stay on disk.

    Raises:
        UserError: A file is absent, broken, of another format version, or of another run.
    """
    if not folder.is_dir():
        raise UserError(f"there is no run {folder}: give a folder that `truegap evaluate` wrote")
    if not (folder / RUN).is_file():
        raise UserError(f"{folder} has no {RUN}: it is not a run, or not finished; repeat its `truegap evaluate`")
    record = read_record(folder / RUN, RunRecord)
    scores = read_record(folder / SCORES, ScoresRecord)
    if scores.run_id != record.run_id:
        raise UserError(f"{folder}: {SCORES} is of run {scores.run_id}, {RUN} of run {record.run_id}; evaluate again")
    return Run(record, scores, folder)


def find_runs(paths: Iterable[Path]) -> list[Path]:
    """The folders of runs: each path itself where it is one, else every run below it.

    Returns:
        Each run once, in the order of the paths; those below one path sorted.

    Raises:
        UserError: A path does not exist, or holds no run.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        if not path.is_dir():
            raise UserError(f"there is no folder {path}: give a run, or a folder of runs")
        here = [path] if (path / RUN).is_file() else sorted(each.parent for each in path.rglob(RUN))
        if not here:
            raise UserError(f"{path} holds no run (no {RUN} in it or below it); `truegap evaluate` makes one")
        for folder in here:
            found.setdefault(folder.resolve(), folder)
    return list(found.values())


def write_record(path: Path, record: BaseModel) -> None:
    """Writes a record as JSON: aside, then renamed."""
    write_bytes(path, (record.model_dump_json(indent=1) + "\n").encode())


def write_run(folder: Path, record: RunRecord, scores: ScoresRecord) -> None:
    """Writes a run's records, `run.json` last: a folder without it is not a finished run."""
    folder.mkdir(parents=True, exist_ok=True)
    write_record(folder / SCORES, scores)
    write_record(folder / RUN, record)


def read_record(path: Path, kind: type[RecordT]) -> RecordT:
    """Reads one record.

    Raises:
        UserError: It is absent, not UTF-8 JSON, of another format version, or a field is missing, unknown or wrong.
    """
    try:
        return parse_record(path.read_bytes(), kind, str(path))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None


def parse_record(data: bytes, kind: type[RecordT], where: str) -> RecordT:
    """One record from the bytes of its file.

    Args:
        data: The bytes.
        kind: Which record.
        where: The file, for messages.

    Raises:
        UserError: It is not UTF-8 JSON, of another format version, or a field is missing, unknown or wrong.
    """
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        raise UserError(f"{where}: {_first(error, kind)}") from None


def _first(error: ValidationError, kind: type[BaseModel]) -> str:
    """One line: the first thing that is wrong, a foreign format version before all others."""
    found = error.errors(include_url=False)
    for each in found:
        if each["loc"] == ("format_version",):
            other, newest = plain(each["input"], 20), kind.model_fields["format_version"].default
            return f"format_version is {other}, this truegap reads up to {newest}: use the truegap that wrote it"
    first = found[0]
    where = plain(".".join(map(str, first["loc"])))
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{where}: {first['msg']}{more}" if where else f"{first['msg']}{more}"

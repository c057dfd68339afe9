r"""What people answered: one file of JSON lines per annotator, to which lines are only added.

A line is on the disk before the next picture is shown, so whatever is killed, no answer is lost but the one that was
being written; half a line, which only a power cut or a full disk leaves, is counted and hides no other.
"""

from __future__ import annotations

import hashlib
import json
import os
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from truegap.errors import UserError
from truegap.recognition.study import Item
from truegap.results.show import plain

Choice = Literal["woman", "man", "cannot tell"]
CHOICES: tuple[Choice, ...] = get_args(Choice)
UNREADABLE = "half a line, or no answer"

_NAME = 80
_LINE = 4096
"""Bytes; ours have some hundred."""
_FIELDS = {"annotator", "config", "image_id", "answer", "at"}


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer to one picture.

    Attributes:
        annotator: Who answered: foreign text on one line.
        item: What was shown.
        choice: What was answered.
        at: When, UTC, ISO 8601.
    """

    annotator: str
    item: Item
    choice: Choice
    at: str


@dataclass(frozen=True, slots=True)
class Answers:
    """Every answer of a folder, in the order of time for each annotator; earlier ones to the same picture too.

    Attributes:
        all: The answers.
        skipped: Lines that are none, by reason.
    """

    all: list[Answer] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)


def annotator_name(typed: str) -> str:
    """A name as it is kept: one line of at most 80 printable characters.

    Raises:
        UserError: Nothing is left of it.
    """
    name = plain(unicodedata.normalize("NFC", typed[: 10 * _NAME]), _NAME)
    if not name:
        raise UserError("type your name or a nickname first")
    return name


class AnswerFolder:
    """The files of a folder; safe in threads and between processes."""

    def __init__(self, folder: Path) -> None:
        """Looks at nothing yet; the folder exists."""
        self.folder = folder

    def add(self, annotator: str, item: Item, choice: Choice) -> Answer:
        """Keeps an answer: when this returns, it is on the disk. A second one to the same picture replaces the first.

        Args:
            annotator: As `annotator_name` gives it.
            item: What was shown.
            choice: What was answered.

        Raises:
            UserError: The file cannot be written, or the choice is none.
        """
        from filelock import FileLock

        if choice not in CHOICES:
            raise UserError(f"answer {plain(choice)}: use {', '.join(CHOICES)}")
        answer = Answer(annotator, item, choice, datetime.now(UTC).isoformat(timespec="milliseconds"))
        told = {"annotator": annotator, **item._asdict(), "answer": choice, "at": answer.at}
        path = self._path(annotator)
        try:
            with FileLock(self.folder / ".lock"):
                _append(path, (json.dumps(told) + "\n").encode())
        except OSError as error:
            raise UserError(f"the answer was not kept: {path}: {error.strerror or error}") from error
        return answer

    def of(self, annotator: str) -> dict[Item, Choice]:
        """What one annotator answered last to each picture."""
        return {each.item: each.choice for each in _read(self._path(annotator), Counter())}

    def read(self) -> Answers:
        """Every answer of everybody."""
        found = Answers()
        for path in sorted(self.folder.glob("*.jsonl")):
            found.all.extend(_read(path, found.skipped))
        return found

    def _path(self, annotator: str) -> Path:
        # No part of a name, which is foreign text, gets into a path; Anna and anna are one person.
        digest = hashlib.sha256(annotator.casefold().encode()).hexdigest()
        return self.folder / f"{digest[:32]}.jsonl"


def _append(path: Path, line: bytes) -> None:
    new = not path.exists()
    with path.open("ab+", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
            # Half a line ends here, so that this one is whole.
            line = line if file.read(1) == b"\n" else b"\n" + line
        if file.write(line) != len(line):
            raise OSError(0, "the disk is full")
        os.fsync(file.fileno())
    if new:
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _read(path: Path, skipped: Counter[str]) -> list[Answer]:
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from error
    answers = []
    for line in filter(None, lines):
        if (answer := _parsed(line)) is None:
            skipped[UNREADABLE] += 1
        else:
            answers.append(answer)
    return answers


def _parsed(line: bytes) -> Answer | None:
    try:
        told: Any = json.loads(line) if len(line) <= _LINE else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or told.keys() != _FIELDS or not all(isinstance(each, str) for each in told.values()):
        return None
    if told["answer"] not in CHOICES:
        return None
    return Answer(told["annotator"], Item(told["config"], told["image_id"]), told["answer"], told["at"])

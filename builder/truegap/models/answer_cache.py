"""Answers asked for once: an SQLite file, keyed by model, image content and question, that outlives any kill."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache

from PIL import Image

from truegap.errors import UserError
from truegap.models._pipeline import ahead, batches
from truegap.models._sqlite import SqliteFile, digest_of
from truegap.models.cache import Source, image_of
from truegap.models.generative import Answer, GenerativeModel, Item, Question

CHUNK = 256
"""Images whose known answers are held at a time."""
THREADS = 2
_NOBODY = 255  # `chosen` of an answer that named no option, and the number of probabilities of one that has none


@dataclass(frozen=True, slots=True)
class Asked:
    """One image, and what is asked about it.

    Attributes:
        sha256: Of the encoded image, in hexadecimal.
        source: The encoded bytes, or a function that gives them when they are needed.
        questions: What is asked.
        view: What of the image the model sees, such as `person 0.1 (10, 5, 40, 80)`; empty for all of it.
        crop: Makes that view of the upright image.
        keep: Takes an answer and the place of its question as soon as it is there, where the model gives them one by
            one.
    """

    sha256: str
    source: Source
    questions: tuple[Question, ...]
    view: str = ""
    crop: Callable[[Image.Image], Image.Image] | None = None
    keep: Callable[[int, Answer], object] | None = None


@dataclass(slots=True)
class Counts:
    """Answers taken from the cache, and those computed now."""

    cached: int = 0
    computed: int = 0


@dataclass(slots=True)
class _Waiting:
    """An image whose turn comes: the digests of its questions, and the answers that are known."""

    asked: Asked
    keys: list[bytes]
    known: dict[bytes, Answer]

    def answers(self) -> list[Answer]:
        return [self.known[key] for key in self.keys]

    @property
    def lacking(self) -> tuple[Question, ...]:
        first = dict(zip(self.keys, self.asked.questions, strict=True))
        return tuple(question for key, question in first.items() if key not in self.known)


class AnswerCache(SqliteFile):
    """Answers on disk, for as many models and processes as there are.

    The key is the model's `cache_key`, the SHA-256 of the encoded image with what of it was shown, and the question:
    text, options, form and scoring. The answers to an image are committed together, so that a kill costs one image;
    those of a server are committed one by one, so that it costs the requests under way. Where several processes answer
    the same, the first answer stands for all.
    """

    FILE = "answers.sqlite"
    HOLDS = "answers"
    NAME = "answer cache"
    TABLE = (
        "CREATE TABLE IF NOT EXISTS answers ("
        "image BLOB NOT NULL, asked BLOB NOT NULL, answer BLOB NOT NULL, PRIMARY KEY (image, asked)) WITHOUT ROWID"
    )

    def answers(
        self, model: GenerativeModel, asked: Iterable[Asked], batch_size: int = 32, counts: Counts | None = None
    ) -> Iterator[list[Answer]]:
        """Answers to every image's questions, in their order; only what is not known is asked.

        Images are read and decoded in threads, ahead of the model.

        Args:
            model: The model.
            asked: Images and questions; any number of them, a few are held at a time.
            batch_size: Questions per forward pass; changes no answer.
            counts: Added to, answer by answer.

        Raises:
            UserError: An image cannot be decoded or has another hash than its key, the model refuses a question, or the
                cache is damaged or full.
        """
        counts = counts or Counts()
        name = model.cache_key
        for chunk in batches(asked, CHUNK):
            turns = [self._turn(name, each) for each in chunk]
            todo = (self._todo(model, turn) for turn in turns if turn.lacking)
            with closing(answers_to(model, todo, batch_size)) as fresh:
                for turn in turns:
                    lacking = turn.lacking
                    counts.cached += len(turn.keys) - len(lacking)
                    if lacking:
                        self._take(model, turn, lacking, next(fresh, []))
                        counts.computed += len(lacking)
                    yield turn.answers()
                for _ in fresh:
                    raise ValueError(f"{type(model).__name__} gave more answers than it was asked for")

    def lacking(self, model: GenerativeModel, asked: Iterable[Asked]) -> Iterator[Asked]:
        """What of it is not known: images with the questions that are to be asked, each image and question once.

        Raises:
            UserError: The cache is damaged.
        """
        name = model.cache_key
        given: set[tuple[str, bytes]] = set()
        for each in asked:
            keys = [_key(name, each.view, question) for question in each.questions]
            new = dict(zip(keys, each.questions, strict=True))
            for known in self._rows(each.sha256, list(new), "asked"):
                del new[known[0]]
            # Of all keys together: an image comes again with the same questions, if at all.
            whole = (each.sha256, hashlib.sha256(b"".join(new)).digest())
            if new and whole not in given:
                given.add(whole)
                yield replace(each, questions=tuple(new.values()))

    def keep(self, model: GenerativeModel, asked: Asked, answers: Sequence[Answer]) -> None:
        """Commits the answers to one image's questions, given elsewhere.

        Raises:
            UserError: One is not a number, or the cache is damaged or full.
        """
        _check(model, asked.questions, answers)
        keys = [_key(model.cache_key, asked.view, question) for question in asked.questions]
        self._store(asked.sha256, dict(zip(keys, answers, strict=True)))

    def _turn(self, model: str, asked: Asked) -> _Waiting:
        keys = [_key(model, asked.view, question) for question in asked.questions]
        return _Waiting(asked, keys, self._find(asked.sha256, keys))

    def _todo(self, model: GenerativeModel, turn: _Waiting) -> Asked:
        """What is to be asked, and how a single answer is kept before the rest of its image's is there."""
        asked = replace(turn.asked, questions=turn.lacking)

        def keep(place: int, answer: Answer) -> None:
            self.keep(model, replace(asked, questions=asked.questions[place : place + 1]), [answer])

        return replace(asked, keep=keep)

    def _take(
        self, model: GenerativeModel, turn: _Waiting, lacking: Sequence[Question], fresh: Sequence[Answer]
    ) -> None:
        """Keeps the answers to what was lacking."""
        _check(model, lacking, fresh)
        keys = [key for key in dict.fromkeys(turn.keys) if key not in turn.known]
        turn.known |= self._store(turn.asked.sha256, dict(zip(keys, fresh, strict=True)))

    def _find(self, image: str, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        """The stored ones among these questions about an image."""
        rows = self._rows(image, keys, "asked, answer")
        try:
            return {key: _unpacked(packed) for key, packed in rows}
        except (struct.error, ValueError, IndexError):
            raise self._damaged("a row is cut off") from None

    def _rows(self, image: str, keys: Sequence[bytes], columns: str) -> list[tuple[bytes, ...]]:
        marks = ", ".join("?" * len(keys))
        query = f"SELECT {columns} FROM answers WHERE image = ? AND asked IN ({marks})"  # noqa: S608 (our own names)
        with self._readable_errors():
            return self._db.execute(query, [digest_of(image), *keys]).fetchall()

    def _store(self, image: str, fresh: Mapping[bytes, Answer]) -> Mapping[bytes, Answer]:
        """Commits an image's answers; where another process was faster its rows stand."""
        rows = [(digest_of(image), key, _packed(answer)) for key, answer in fresh.items()]
        with self._readable_errors(), self._transaction():
            inserted = self._db.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?, ?)", rows).rowcount
        return fresh if inserted == len(rows) else self._find(image, list(fresh))


def answers_to(
    model: GenerativeModel, asked: Iterable[Asked], batch_size: int = 32
) -> Generator[list[Answer], None, None]:
    """A model's answers, image by image; images are read and decoded in threads, ahead of the model.

    Raises:
        UserError: An image cannot be decoded or has another hash than its key, or the model refuses a question.
    """
    with ahead(_load, asked, THREADS, window=2 * THREADS) as items:
        yield from model.answer_each(items, batch_size)


def _load(asked: Asked) -> Item:
    image = image_of(asked.sha256, asked.source)
    return Item(asked.crop(image) if asked.crop else image, asked.questions, asked.keep)


def _check(model: GenerativeModel, questions: Sequence[Question], answers: Sequence[Answer]) -> None:
    """Refuses what no model may answer, a plug-in's slip before all."""
    if len(answers) != len(questions):
        raise ValueError(f"{type(model).__name__} gave {len(answers)} answers to {len(questions)} questions")
    for question, answer in zip(questions, answers, strict=True):
        if answer.log_probs is not None and any(math.isnan(each) for each in answer.log_probs):
            raise UserError(
                f"model {model.record().name}: the probability of an option of {question.text[:60]!r} is NaN; "
                "the weights are damaged, or the dtype is too small (use float32)"
            )


def _key(model: str, view: str, question: Question) -> bytes:
    """What identifies a question to a model about a view of an image."""
    return hashlib.blake2b(json.dumps([model, view]).encode() + _question_digest(question), digest_size=16).digest()


@lru_cache(maxsize=4096)
def _question_digest(question: Question) -> bytes:
    """Every image is asked the same: it is worked out once."""
    parts = [question.text, question.options, question.form, question.scoring]
    return hashlib.sha256(json.dumps(parts).encode()).digest()


def _packed(answer: Answer) -> bytes:
    """An answer as a row holds it: millions of them must not fill a disk."""
    chosen = _NOBODY if answer.chosen is None else answer.chosen
    text = b"" if answer.text is None else b"\1" + answer.text.encode("utf-8", "replace")
    if answer.log_probs is None or answer.tokens is None:
        return struct.pack("<BB", _NOBODY, chosen) + text
    n = len(answer.log_probs)
    return struct.pack(f"<BB{n}d{n}H", n, chosen, *answer.log_probs, *answer.tokens) + text


def _unpacked(packed: bytes) -> Answer:
    n, chosen = packed[0], None if packed[1] == _NOBODY else packed[1]
    end = 2
    log_probs, tokens = None, None
    if n != _NOBODY:
        end = struct.calcsize(f"<BB{n}d{n}H")
        numbers = struct.unpack(f"<{n}d{n}H", packed[2:end])
        log_probs, tokens = tuple(numbers[:n]), tuple(numbers[n:])
    return Answer(log_probs, tokens, chosen, packed[end + 1 :].decode() if len(packed) > end else None)

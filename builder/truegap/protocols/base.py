"""What every protocol is: what it asks of a benchmark, the answers it writes, and the scores it makes of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from PIL import Image

from truegap.errors import UserError
from truegap.hub.benchmark import Benchmark
from truegap.models import DualEncoder, EmbeddingCache
from truegap.models.answer_cache import AnswerCache, Asked, Counts
from truegap.models.base import FloatArray
from truegap.models.cache import Source
from truegap.models.generative import Answer, GenerativeModel, Question
from truegap.perturbations.keys import Key
from truegap.results.records import ScoresRecord
from truegap.schema import GENDERS

ORIGINAL = "original"

Model = DualEncoder | GenerativeModel
Cache = EmbeddingCache | AnswerCache
Columns = Mapping[str, Any]
"""Columns of the table of answers by name, as `AnswersWriter.add` takes them."""

Measured = TypeVar("Measured")


@dataclass(frozen=True, slots=True)
class Images:
    """The images of a run, in the order of their ids.

    Attributes:
        ids: Per image.
        genders: Per image, `woman` or `man`.
        places: Per image, its row in the benchmark's files.
    """

    ids: list[str]
    genders: list[str]
    places: list[int]

    def count(self, gender: str) -> int:
        """How many show this gender."""
        return self.genders.count(gender)

    def only(self, places: Iterable[int]) -> Images:
        """Those at these rows of the files."""
        chosen = set(places)
        kept = [n for n, place in enumerate(self.places) if place in chosen]
        return Images([self.ids[n] for n in kept], [self.genders[n] for n in kept], [self.places[n] for n in kept])


def all_images(benchmark: Benchmark) -> Images:
    """Every image of the benchmark's test split."""
    ids = benchmark.image_ids()
    labels = [GENDERS[code] for code in benchmark.column(ORIGINAL, "gender")]
    places = sorted(range(len(ids)), key=ids.__getitem__)
    return Images([ids[place] for place in places], [labels[place] for place in places], places)


def balanced_sample(images: Images, benchmark: str, size: int, key: str, seed: int) -> Images:
    """Half women, half men, chosen by a key per image: a larger sample holds the smaller one.

    Raises:
        UserError: Fewer than one of each is asked for.
    """
    if size < 2:  # noqa: PLR2004  one of each
        raise UserError(f"--limit {size}: give at least 2 images, one of each gender")
    ranked = sorted(range(len(images.ids)), key=lambda n: Key(benchmark, images.ids[n], key, seed).uniform())
    chosen = [
        images.places[n] for gender in GENDERS for n in [n for n in ranked if images.genders[n] == gender][: size // 2]
    ]
    return images.only(chosen)


def both_genders(genders: Sequence[str]) -> None:
    """Refuses images without a gap to measure.

    Raises:
        UserError: They show one gender only.
    """
    shown = {gender: list(genders).count(gender) for gender in GENDERS}
    if not all(shown.values()):
        counts = ", ".join(f"{count} {gender}" for gender, count in shown.items())
        raise UserError(f"the benchmark shows one gender only ({counts}): a gap needs both; use other filters")


@dataclass(frozen=True, slots=True)
class View:
    """What of an image the model sees: its name, which is part of the answers' key, and how it is made."""

    name: str = ""
    crop: Callable[[Image.Image], Image.Image] | None = None


@dataclass(slots=True)
class Session:
    """A model before a benchmark's images, with everything known that was asked before.

    Attributes:
        benchmark: The opened benchmark.
        model: The model.
        images: Which of its images.
        cache: Of embeddings or of answers, as the model needs.
        batch_size: Images (dual encoders) or questions per forward pass; changes no result beyond rounding.
        advance: Called with the number of images that are done.
        counts: Answers or embeddings from the cache, and computed.
    """

    benchmark: Benchmark
    model: Model
    images: Images
    cache: Cache
    batch_size: int = 32
    advance: Callable[[int], object] = lambda _: None
    counts: Counts = field(default_factory=Counts)

    @property
    def encoder(self) -> DualEncoder:
        """The model, where it is a dual encoder."""
        assert isinstance(self.model, DualEncoder)
        return self.model

    def items(self, config: str) -> list[tuple[str, Source]]:
        """A config's images: SHA-256 of the encoded bytes, and what gives these."""
        images = self.benchmark.images(config)
        return [(images.sha256[place], partial(images.__getitem__, place)) for place in self.images.places]

    def embed(self, config: str, meanwhile: Callable[[], object] | None = None) -> FloatArray:
        """Features of a config's images, `(images, d)`, rows of unit length.

        Args:
            config: Its name.
            meanwhile: Called once, when the first images are being decoded.
        """
        assert isinstance(self.cache, EmbeddingCache)
        items = self.items(config)
        found = self.cache.embed_images(self.encoder, items, self.batch_size, self.advance, meanwhile=meanwhile)
        # Equal images are embedded once; they are done all the same.
        self.advance(len(items) - found.cached - found.computed)
        self.counts.cached += found.cached
        self.counts.computed += found.computed
        return found.features

    def embed_texts(self, texts: Sequence[str]) -> FloatArray:
        """Features of texts, `(texts, d)`, rows of unit length."""
        assert isinstance(self.cache, EmbeddingCache)
        return self.cache.embed_texts(self.encoder, texts)

    def asked(self, config: str, asking: Asking[Any]) -> Iterator[Asked]:
        """A config's images and what is asked about them."""
        for number, (sha256, source) in enumerate(self.items(config)):
            view = asking.view(number)
            yield Asked(sha256, source, tuple(asking.questions(number)), view.name, view.crop)

    def ask(self, config: str, asking: Asking[Any]) -> Iterator[list[Answer]]:
        """Answers about a config's images, image by image."""
        assert isinstance(self.cache, AnswerCache)
        assert isinstance(self.model, GenerativeModel)
        for answers in self.cache.answers(self.model, self.asked(config, asking), self.batch_size, self.counts):
            self.advance(1)
            yield answers


class Asking(ABC, Generic[Measured]):
    """A protocol bound to a benchmark, a kind of model and the images of a run.

    Attributes:
        images: Of the run.
        options: Every convention and its value.
        columns: Columns of the table of answers that only this protocol has.
        notes: What a reader must know before anything is asked.
    """

    columns: ClassVar[tuple[str, ...]] = ()

    def __init__(self, images: Images, options: Mapping[str, Any]) -> None:
        """Keeps what every protocol has."""
        self.images = images
        self.options = dict(options)
        self.notes: list[str] = []

    def check(self) -> None:
        """Refuses images that cannot be scored; called before anything is asked that is to be scored.

        Raises:
            UserError: They show one gender only, or are too few.
        """
        both_genders(self.images.genders)

    def questions(self, number: int) -> Sequence[Question]:  # noqa: ARG002  nothing is asked of a dual encoder
        """What a model that answers is asked about an image, by its number in the run; the same in every config."""
        return ()

    def view(self, number: int) -> View:  # noqa: ARG002  all of it, for most protocols
        """What of that image such a model sees."""
        return View()

    @abstractmethod
    def answers(self, config: str, session: Session) -> tuple[Columns, Measured]:
        """Asks about one config: the rows of the table, and what `score` makes scores of.

        Scores are made of nothing that the table does not hold, so that the table can be scored again.
        """

    @abstractmethod
    def score(self, run_id: str, configs: Iterator[tuple[str, Measured]]) -> ScoresRecord:
        """Scores of every config, `original` first.

        Raises:
            UserError: The answers cannot be scored.
        """

    def prompts(self) -> dict[str, Question]:
        """Some of the questions by their id, whose exact prompt goes into the run's record."""
        return {}

    def costs(self, every: Images) -> list[str]:
        """What a sample of these images costs; here certainty, as for a difference of two means."""
        wider = _spread(self.images) / _spread(every)
        return [f"intervals are about {wider:.1f} times as wide as those of all images"]

    def notes_on(self, scores: ScoresRecord) -> list[str]:  # noqa: ARG002  the scores are for those that need them
        """What a reader of the scores must know."""
        return self.notes


def _spread(images: Images) -> float:
    """To what the standard error of a difference of two means is proportional."""
    return math.sqrt(sum(1 / max(images.count(gender), 1) for gender in GENDERS))


class Protocol(ABC):
    """The conventions of a protocol; all of them are written into a run's record."""

    name: ClassVar[str]
    columns_needed: ClassVar[tuple[str, ...]] = ()
    """Columns that a benchmark must have beside those that all have; where it has them, this protocol is its own."""
    seed: int

    @abstractmethod
    def asking(self, benchmark: Benchmark, model: Model, images: Images) -> Asking[Any]:
        """What is asked of these images and this kind of model.

        Raises:
            UserError: The model is of a kind that the protocol cannot ask.
        """

    def sample(self, benchmark: Benchmark, images: Images, size: int, key: str, seed: int) -> Images:
        """The images of a smaller run, chosen by a key that names the sample."""
        return balanced_sample(images, benchmark.manifest.benchmark, size, key, seed)

    def check(self, benchmark: Benchmark) -> None:
        """Refuses a benchmark that lacks columns.

        Raises:
            UserError: It does.
        """
        self.check_columns(benchmark, self.columns_needed)

    def check_columns(self, benchmark: Benchmark, needed: Sequence[str]) -> None:
        """Refuses a benchmark that lacks these columns.

        Raises:
            UserError: It does.
        """
        if missing := [name for name in needed if name not in benchmark.column_names(ORIGINAL)]:
            raise UserError(
                f"{benchmark.spec} lacks the column {', '.join(missing)}: protocol {self.name} needs one that has it"
            )

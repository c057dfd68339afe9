"""What a model that answers questions about an image must offer: probabilities of given options.

A question names its options; the answer says how probable each is after the question, under the model's whole
vocabulary. What is made of that (a softmax over the options, the most probable one) is the protocols' part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from PIL import Image

from truegap.results.records import ModelRecord

Form = Literal["chat", "continue"]
Scoring = Literal["letter", "text"]


@dataclass(frozen=True, slots=True)
class Question:
    """One question about one image.

    Attributes:
        text: What is asked; the image comes before it.
        options: What may be answered, at least two: `("A", "B", "C")`, or texts such as `("his", "her", "their")`.
        form: `chat` is one turn of a user, through the model's own template where it has one; `continue` is the
            beginning of a sentence that the model goes on with, as captioners do.
        scoring: `letter` takes the next token's probability of each option, written with and without a blank before
            it, and each must be one token; `text` takes the whole option, token by token.
    """

    text: str
    options: tuple[str, ...]
    form: Form = "chat"
    scoring: Scoring = "letter"

    def __post_init__(self) -> None:
        if len(set(self.options)) < max(2, len(self.options)) or not all(self.options):
            raise ValueError(f"options {self.options}: at least two, all different, none empty")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model says to one question.

    Attributes:
        log_probs: Per option, the natural logarithm of its probability under the whole vocabulary (a sum over its
            tokens); None where the model gives no probabilities.
        tokens: Per option, how many tokens `log_probs` sums over; None as above.
        chosen: The option that was answered, by position: the most probable one, or the one that `text` names; None
            where the model named none.
        text: What the model wrote, where it wrote.
    """

    log_probs: tuple[float, ...] | None
    tokens: tuple[int, ...] | None
    chosen: int | None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One image and everything that is asked about it.

    Attributes:
        image: Upright, in RGB.
        questions: What is asked.
        keep: Takes an answer and the place of its question as soon as it is there, before the others; for models whose
            answers cost money or minutes. It is called in the thread that takes the answers.
    """

    image: Image.Image
    questions: tuple[Question, ...] = field(default=())
    keep: Callable[[int, Answer], object] | None = None


class GenerativeModel(ABC):
    """A model that answers questions about images.

    A subclass gives `record`, `answer` and `prompt`; an endpoint overrides `answer_each` to have several requests under
    way at once. Answers depend on neither the batch nor the other questions, beyond the tolerance of the dtype.
    """

    notes: Sequence[str] = ()
    """What a reader of the scores must know, such as why the image is read once per question."""

    probabilities_over: Literal["vocabulary", "options"] = "vocabulary"
    """What `log_probs` are shares of: the whole vocabulary, or the options alone, where an API tells no more; then
    nothing can be said of the probability that falls on no option."""

    @abstractmethod
    def record(self) -> ModelRecord:
        """Which model this is, exactly; cheap, since error messages use it too."""

    @property
    def cache_key(self) -> str:
        """Answers given under the same key may stand for each other; by default the record's content hash."""
        return self.record().content

    @abstractmethod
    def answer(self, image: Image.Image, questions: Sequence[Question], batch_size: int = 32) -> list[Answer]:
        """Answers to questions about one upright RGB image, in their order.

        Args:
            image: The image; read once for all questions where the model allows it.
            questions: What is asked.
            batch_size: Questions per forward pass, halved where memory does not suffice; changes no answer.

        Raises:
            UserError: An option is not what the scoring needs, or one question alone does not fit into memory.
        """

    @abstractmethod
    def prompt(self, question: Question) -> str:
        """Exactly what the model reads for a question, with its own mark where the image goes."""

    def statistics(self) -> dict[str, int | float]:
        """What answering has cost so far, such as tokens; nothing by default."""
        return {}

    def answer_each(self, items: Iterable[Item], batch_size: int = 32) -> Iterator[list[Answer]]:
        """Answers to many items, in their order; one after the other by default."""
        for item in items:
            yield self.answer(item.image, item.questions, batch_size)

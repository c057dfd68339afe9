"""Models behind an address: any OpenAI-compatible server, asked over HTTP.

Where the server gives log-probabilities, an answer is the next token's probability of every option; where it gives
none, the model writes an answer and that is read. Nothing is kept here: answers are kept by the answer cache.
"""

from __future__ import annotations

import base64
import io
import threading
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from PIL import Image

from truegap.models import _chat_api as chat
from truegap.models import _systemone_api as systemone
from truegap.models._chat_api import Reply, Shape
from truegap.models._endpoint_client import Client, RefusedError
from truegap.models._endpoint_settings import EndpointSettings, settings_of
from truegap.models._pipeline import ahead
from truegap.models.generative import Answer, GenerativeModel, Item, Question
from truegap.results.records import ModelRecord
from truegap.results.show import plain

CHAT = "/chat/completions"
_PROBE = Question(
    "Which colour fills this picture?\nA. Grey\nB. Red\nAnswer with the letter of the option.", ("A", "B")
)
_PROBE_SIDE = 64  # below that some models refuse an image
_PROBE_ATTEMPTS = 3
_MILLION = 1_000_000


class EndpointModel(GenerativeModel):
    """A model behind an address.

    One question is asked when it is made: that shows whether the server is there, takes the key and knows the model,
    which parameters it refuses, and whether it gives log-probabilities.
    """

    def __init__(self, settings: EndpointSettings, spec: str, revision: str | None = None) -> None:
        """Ask the first question.

        Args:
            settings: Which server, and how it is asked.
            spec: What the user typed.
            revision: What the user says is served there; part of the answers' key, since a server does not tell.

        Raises:
            UserError: The server cannot be asked.
        """
        self._settings = settings
        self._client = Client(settings)
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._seen: dict[str, dict[str, None]] = {"model": {}, "fingerprint": {}}
        self._error = 0.0
        self._shape = Shape(settings.top_logprobs)
        first = self._probe()
        if settings.api == "systemone":
            self.probabilities_over = "options"
        self._record = ModelRecord(
            spec=spec,
            name=plain(settings.model.rstrip("/").rsplit("/", 1)[-1], 80),
            adapter=f"endpoint-{settings.api}",
            kind="endpoint",
            revision=revision,
            content=settings.content(revision, first.model, repr(self._shape)),
            parameters=None,
        )
        self._describe()

    def record(self) -> ModelRecord:
        """Which model of which server; the number of parameters is not known."""
        return self._record

    def prompt(self, question: Question) -> str:
        """What is sent; the server puts it into the model's own template."""
        if self._settings.api == "chat":
            return f"<image>\n{chat.wording(question)}"
        options = ", ".join(systemone.criteria(question))
        return f"{systemone.state(question)}\n{systemone.instructions(question)}\n[choice of: {options}]"

    def answer(self, image: Image.Image, questions: Sequence[Question], batch_size: int = 32) -> list[Answer]:
        """Answers to questions about one image; see `GenerativeModel.answer`. `batch_size` is of no concern here."""
        return next(self.answer_each([Item(image, tuple(questions))], batch_size))

    def answer_each(self, items: Iterable[Item], batch_size: int = 32) -> Iterator[list[Answer]]:  # noqa: ARG002
        """Answers to many items in their order, with as many requests under way as the settings allow.

        Raises:
            UserError: A question could not be asked, after the last attempt.
        """
        stop = threading.Event()
        turns: deque[Item] = deque()

        def asked() -> Iterator[tuple[_Picture, Question]]:
            for item in items:
                turns.append(item)
                picture = _Picture(item.image, self._settings.image)
                yield from ((picture, question) for question in item.questions)

        threads = self._settings.concurrency
        with ahead(lambda each: self._reply(*each, stop), asked(), threads, window=2 * threads) as replies:
            try:
                answers: list[Answer] = []
                for reply in replies:
                    while not turns[0].questions:  # an item about which nothing is asked
                        turns.popleft()
                        yield []
                    if turns[0].keep is not None:
                        turns[0].keep(len(answers), reply.answer)
                    answers.append(reply.answer)
                    if len(answers) == len(turns[0].questions):
                        turns.popleft()
                        yield answers
                        answers = []
                yield from ([] for _ in turns)
            finally:
                stop.set()
                self._describe()

    def statistics(self) -> dict[str, int | float]:
        """Requests, tokens, cost and what became of the answers, since the model was made."""
        with self._lock:
            counts = self._counts | self._client.counts
            error = self._error
        names = ("requests", "retries", "prompt_tokens", "completion_tokens", "answers")
        found: dict[str, int | float] = {name: counts[name] for name in (*names, *_OUTCOMES)}
        price = self._settings
        if price.input_price or price.output_price:
            spent = counts["prompt_tokens"] * price.input_price + counts["completion_tokens"] * price.output_price
            found["cost"] = spent / _MILLION
        return found | {"largest_bound_error": error}

    def _probe(self) -> Reply:
        picture = _Picture(Image.new("RGB", (_PROBE_SIDE, _PROBE_SIDE), (128, 128, 128)), self._settings.image)
        while True:
            try:
                reply = self._send(picture, _PROBE, threading.Event(), min(_PROBE_ATTEMPTS, self._settings.attempts))
            except RefusedError as refused:
                other = self._shape.without(refused) if self._settings.api == "chat" else None
                if other is None:
                    raise self._client.refusal(refused) from None
                self._shape = other
            else:
                if self._shape.logprobs and not reply.listed:
                    self._shape = replace(self._shape, logprobs=0)
                self._count(reply)
                return reply

    def _reply(self, picture: _Picture, question: Question, stop: threading.Event) -> Reply:
        try:
            reply = self._send(picture, question, stop)
        except RefusedError as refused:
            filtered = chat.refused_answer(refused)
            if filtered is None:
                raise self._client.refusal(refused) from None
            reply = filtered
        self._count(reply, question)
        return reply

    def _send(self, picture: _Picture, question: Question, stop: threading.Event, attempts: int | None = None) -> Reply:
        settings, shape = self._settings, self._shape
        if settings.api == "systemone":
            asked = systemone.body(settings, question, picture.url)
            return self._client.ask(systemone.PATH, asked, lambda got: systemone.read(question, got), stop, attempts)
        asked = chat.body(settings, shape, question, picture.url)
        return self._client.ask(CHAT, asked, lambda got: chat.read(question, got, shape.logprobs), stop, attempts)

    def _count(self, reply: Reply, question: Question | None = None) -> None:
        with self._lock:
            self._counts["prompt_tokens"] += reply.read
            self._counts["completion_tokens"] += reply.written
            for what, value in (("model", reply.model), ("fingerprint", reply.fingerprint)):
                if value:
                    self._seen[what][plain(value, 120)] = None
            if question is None:
                return
            self._error = max(self._error, reply.error)
            self._counts["answers"] += 1
            self._counts["reworded"] += question.form == "continue"
            self._counts["refused"] += reply.outcome == "refused"
            self._counts["unclear"] += reply.outcome == "unclear"
            self._counts["without_probabilities"] += reply.answer.log_probs is None
            self._counts["bounded_options"] += reply.bounded

    def _describe(self) -> None:
        """Says in `notes` what a reader must know, as of now."""
        with self._lock:
            counts, error = Counter(self._counts), self._error
            models, fingerprints = list(self._seen["model"]), list(self._seen["fingerprint"])
        shape, settings = self._shape, self._settings
        notes = [f"asked over {settings.url}{systemone.PATH if settings.api == 'systemone' else CHAT}"]
        notes += [f"the server calls the model {', '.join(models)}"] if models else []
        notes += [f"system fingerprint {', '.join(fingerprints)}"] if fingerprints else []
        if len(models) > 1 or len(fingerprints) > 1:
            notes.append("the server changed while it was asked: answers may come from different models")
        if settings.api == "systemone":
            notes.append("probabilities are shares among the options: what falls on none of them is not known")
        elif shape.logprobs:
            notes.append(f"log-probabilities of the next token, the {shape.logprobs} largest of the vocabulary")
        else:
            notes.append("no log-probabilities: answers are written by the model and read")
        notes += [f"the server refuses the parameter {name}, which was left out" for name in shape.left_out]
        if counts["reworded"]:
            notes.append("sentences to continue were asked for in words: a chat server does not continue a text")
        if counts["bounded_options"]:
            notes.append(
                f"{counts['bounded_options']} options were not among the listed tokens and got the largest probability "
                f"that they can have: a share among the options is off by {error:.2g} at most"
            )
        if counts["answers"]:
            notes.append(
                f"of {counts['answers']} answers asked for now, {counts['refused']} refuse, {counts['unclear']} name "
                f"no option, {counts['without_probabilities']} have no probabilities"
            )
        self.notes = tuple(notes)


_OUTCOMES = ("refused", "unclear", "without_probabilities", "bounded_options")


class _Picture:
    """An image as a data URL, encoded once, by the thread that needs it first."""

    def __init__(self, image: Image.Image, encoding: Literal["png", "jpeg"]) -> None:
        self._image = image
        self._encoding = encoding
        self._lock = threading.Lock()
        self._url = ""

    @property
    def url(self) -> str:
        with self._lock:
            if not self._url:
                buffer = io.BytesIO()
                options = {"compress_level": 3} if self._encoding == "png" else {"quality": 95, "subsampling": 0}
                self._image.convert("RGB").save(buffer, self._encoding, **options)
                self._url = f"data:image/{self._encoding};base64,{base64.b64encode(buffer.getvalue()).decode()}"
            return self._url


def load(identifier: str, *, spec: str, revision: str | None = None) -> EndpointModel:
    """A model behind `URL#MODEL`, or as a YAML or JSON file says.

    Raises:
        UserError: The settings are not usable, or the server cannot be asked.
    """
    return EndpointModel(settings_of(identifier), spec, revision)

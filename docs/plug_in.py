"""A model of your own that answers questions, as a plug-in: put its authors' code where `Network` stands.

Everything but `Network` is what truegap asks of such a model. The package's `pyproject.toml` names `load` as an entry
point; docs/plug_in.md says how.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from PIL import Image

from truegap.errors import UserError
from truegap.models.generative import Answer, GenerativeModel, Question
from truegap.results.records import ModelRecord

SIZES = {"small": 8, "large": 64}


class Network:
    """Stands for your model: an image and the text so far become a logit for every token, here for every character."""

    vocabulary = " .:?!(),\nABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

    def __init__(self, width: int) -> None:
        """Make up weights; yours come from a file."""
        random = np.random.default_rng(0)
        self.colours = random.normal(size=(3, width))
        self.words = random.normal(size=(len(self.vocabulary), width))
        self.output = random.normal(size=(width, len(self.vocabulary)))

    def next_token(self, image: Image.Image, text: str) -> np.ndarray:
        """Logits of what comes after the text."""
        seen = np.asarray(image, float).mean(axis=(0, 1)) / 255 @ self.colours
        read = sum(self.words[self.vocabulary.find(letter)] / (1 + age) for age, letter in enumerate(text[::-1]))
        return np.tanh(seen + read) @ self.output


class MyModel(GenerativeModel):
    """The network behind the three methods that truegap needs."""

    def __init__(self, name: str) -> None:
        """Load it."""
        self.name = name
        self.network = Network(SIZES[name])

    def record(self) -> ModelRecord:
        """Which model this is: `content` changes whenever the answers could, so hash the weights."""
        weights = [self.network.colours, self.network.words, self.network.output]
        return ModelRecord(
            spec=f"my-model:{self.name}",
            name=f"my-model-{self.name}",
            adapter="my-model",
            kind="generative",
            content=hashlib.sha256(b"".join(each.tobytes() for each in weights)).hexdigest(),
            parameters=sum(each.size for each in weights),
        )

    def prompt(self, question: Question) -> str:
        """What the model reads: its own template around a question, nothing around a sentence to continue."""
        return f"<image>USER: {question.text}\nASSISTANT:" if question.form == "chat" else f"<image>{question.text}"

    def answer(self, image: Image.Image, questions: Sequence[Question], batch_size: int = 32) -> list[Answer]:  # noqa: ARG002
        """Answers to questions about one image; a real model reads the image once for all of them."""
        return [self._answer(image, question) for question in questions]

    def _answer(self, image: Image.Image, question: Question) -> Answer:
        text = self.prompt(question).removeprefix("<image>")
        if question.scoring == "letter" and any(len(option) > 1 for option in question.options):
            raise UserError(f"model {self.name}: letters are one token long, {question.options} are not")
        scores = [self._log_probability(image, text, option) for option in question.options]
        best = max(scores)
        chosen = scores.index(best) if scores.count(best) == 1 else None
        return Answer(tuple(scores), tuple(map(len, question.options)), chosen)

    def _log_probability(self, image: Image.Image, text: str, option: str) -> float:
        """Of a whole option, token by token, under the whole vocabulary."""
        total = 0.0
        for n, token in enumerate(option):
            logits = self.network.next_token(image, text + option[:n])
            total += logits[self.network.vocabulary.index(token)] - np.logaddexp.reduce(logits)
        return float(total)


def load(name: str, *, revision: str | None, device: str, dtype: str, unsafe_weights: bool) -> MyModel:  # noqa: ARG001
    """What the entry point names: it gets what follows `my-model:`."""
    if name not in SIZES:
        raise UserError(f"my-model:{name}: there are {', '.join(SIZES)}")
    return MyModel(name)

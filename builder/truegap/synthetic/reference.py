"""Reference models: their behaviour is known, so whatever is measured of them can be held against the truth.

`reference:reads-background` is a dual encoder, `reference:answers-background` answers questions; both see nothing but
the background of a picture of the synthetic generator (`truegap.synthetic.readings`), from its pixels, like any model.
`person`, `object`, `color` and `lighting` likewise. Mixtures name their shares: `reference:reads-0.7*person+0.3*color`.

What they do with the reading r, from -1 (typical of women) to +1 (typical of men):

- a dual encoder's image has the direction (r, 1), a text leans to men or to women: one that names a gender leans to
  it, any other as its hash says; the cosine of a text that leans to men grows with r, that of others falls;
- an answerer says "Yes" with probability `YES + SPAN * lean * r`, where a question's lean is between 1/2 and 1: every
  question favours men, and a gap is linear in what is read, so that shares of a mixture are shares of its gap.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
from PIL import Image

from truegap.errors import UserError
from truegap.models.base import DualEncoder, FloatArray
from truegap.models.generative import Answer, GenerativeModel, Question
from truegap.models.written import option_words, stem
from truegap.results.records import ModelRecord
from truegap.synthetic._text import MAN, WOMAN
from truegap.synthetic.draws import hashed
from truegap.synthetic.readings import NAMES, readings

FORMS: Mapping[str, str] = {
    "reads-NAME": "a dual encoder that reads one region of a synthetic picture",
    "answers-NAME": "a model that answers questions from one region",
    "reads-0.7*A+0.3*B": "a mixture of two or more, in shares that sum to 1; answers- likewise",
}
VERSION = 1
"""Of what is read and answered: the same version gives the same features and answers."""

YES, SPAN = 0.45, 0.3
"""Probability of "Yes" where nothing is read, and how far the reading moves it."""

_WORD = re.compile(r"[^\W\d_]+")
_TERM = re.compile(r"(?:(\d*\.?\d+)\*)?([a-z]+)")


def lean_of_question(text: str) -> float:
    """How far a question's "Yes" follows the reading, from 1/2 to 1, by a hash of the question without its options."""
    return 0.5 + hashed("question", text.casefold()) / 2


def lean_of_text(text: str) -> float:
    """Whether a text asks for men (+1) or women (-1).

    >>> lean_of_text("a photo of a woman"), lean_of_text("He smiles")
    (-1.0, 1.0)
    """
    words = set(_WORD.findall(text.casefold()))
    if bool(words & WOMAN) != bool(words & MAN):
        return 1.0 if words & MAN else -1.0
    return 1.0 if hashed("text", text.casefold()) < 0.5 else -1.0  # noqa: PLR2004


def read(image: Image.Image, shares: Mapping[str, float]) -> float:
    """What a model with these shares makes of a picture, from -1 to +1."""
    found = readings(np.asarray(image.convert("RGB")), shares)
    return sum(share * found[name] for name, share in shares.items())


class ReferenceEncoder(DualEncoder):
    """A dual encoder that reads known regions in known shares."""

    def __init__(self, shares: Mapping[str, float], spec: str) -> None:
        """Read these."""
        self.shares = dict(shares)
        self._record = _record("reads", self.shares, spec)

    def record(self) -> ModelRecord:
        """Which regions, in which shares."""
        return self._record

    def preprocess(self, image: Image.Image) -> float:
        """The reading."""
        return read(image, self.shares)

    def image_features(self, inputs: Sequence[float]) -> FloatArray:
        """The direction (reading, 1)."""
        return np.array([[reading, 1.0] for reading in inputs], np.float32)

    def text_features(self, texts: Sequence[str]) -> FloatArray:
        """The direction (lean, 0)."""
        return np.array([[lean_of_text(text), 0.0] for text in texts], np.float32)


class ReferenceAnswers(GenerativeModel):
    """A model that answers from known regions in known shares."""

    def __init__(self, shares: Mapping[str, float], spec: str) -> None:
        """Read these."""
        self.shares = dict(shares)
        self._record = _record("answers", self.shares, spec)

    def record(self) -> ModelRecord:
        """Which regions, in which shares."""
        return self._record

    def prompt(self, question: Question) -> str:
        """The question, of which the words are a key and the options are read."""
        return f"<image>\n{question.text}"

    def answer(self, image: Image.Image, questions: Sequence[Question], batch_size: int = 32) -> list[Answer]:  # noqa: ARG002
        """Probabilities of the options: of "Yes" (or the first option), and the rest in equal parts."""
        reading = read(image, self.shares)
        return [_answered(reading, question) for question in questions]


def load(identifier: str, *, spec: str) -> DualEncoder | GenerativeModel:
    """A reference model by its name.

    Args:
        identifier: What follows `reference:`; one of `FORMS`.
        spec: What the user typed.

    Raises:
        UserError: There is no such model, or the shares of a mixture do not sum to 1.
    """
    kind, _, mixture = identifier.partition("-")
    if kind not in ("reads", "answers"):
        raise UserError(
            f"model {spec}: no such reference; use one of {', '.join(f'reference:{form}' for form in FORMS)}"
        )
    shares = parse_shares(mixture, spec)
    return ReferenceEncoder(shares, spec) if kind == "reads" else ReferenceAnswers(shares, spec)


def parse_shares(mixture: str, spec: str) -> dict[str, float]:
    """The shares that a mixture names.

    >>> parse_shares("0.7*person+0.3*color", "")
    {'person': 0.7, 'color': 0.3}

    Raises:
        UserError: A name is unknown or comes twice, a share is missing, or they do not sum to 1.
    """
    terms = [_TERM.fullmatch(term) for term in mixture.split("+")]
    shares: dict[str, float] = {}
    for term in terms:
        if term is None or term[2] not in NAMES or term[2] in shares or (len(terms) > 1 and not term[1]):
            raise UserError(
                f"model {spec}: {mixture!r} is not made of {', '.join(NAMES)}, each at most once: write a single name, "
                "or shares such as 0.7*person+0.3*color"
            )
        shares[term[2]] = float(term[1] or 1)
    if not math.isclose(sum(shares.values()), 1, abs_tol=1e-6) or min(shares.values()) <= 0:
        raise UserError(f"model {spec}: shares sum to {sum(shares.values()):g}: make them positive, with the sum 1")
    return shares


def _answered(reading: float, question: Question) -> Answer:
    words = [word.casefold() for word in option_words(question)]
    yes = words.index("yes") if "yes" in words else 0
    chance = YES + SPAN * lean_of_question(stem(question)) * reading
    rest = (1 - chance) / (len(words) - 1)
    chances = [chance if place == yes else rest for place in range(len(words))]
    return Answer(tuple(map(math.log, chances)), (1,) * len(chances), int(np.argmax(chances)))


def _record(kind: str, shares: Mapping[str, float], spec: str) -> ModelRecord:
    parts = "+".join(f"{share:g}*{name}" for name, share in shares.items()) if len(shares) > 1 else next(iter(shares))
    what = json.dumps(["reference", VERSION, kind, sorted(shares.items())])
    content = hashlib.sha256(what.encode()).hexdigest()
    return ModelRecord(
        spec=spec, name=f"{kind}-{parts}", adapter="reference", kind="baseline", content=content, parameters=0
    )

"""Models that know nothing, or nothing of the image: what a score is worth is seen beside theirs."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image

from truegap.errors import UserError
from truegap.models.base import DualEncoder, FloatArray
from truegap.models.generative import Answer, GenerativeModel, Question
from truegap.models.written import option_words
from truegap.results.records import ModelRecord

FORMS: Mapping[str, str] = {
    "random[:SEED]": "every answer is drawn, all alike probable",
    "always-yes": 'answers "Yes", or the first option where there is no "Yes"',
    "always:OPTION": "always answers that option, a letter or words",
    "prior:MODEL": "a model that answers questions is shown a mid-grey image of the same size",
    "random-encoder[:SEED]": "a dual encoder whose features are drawn",
}
GREY = (128, 128, 128)

_IMPOSSIBLE = -1000.0  # its exponential is 0, and sums with it are finite
_DIMENSION = 64
_SIZES = 64

Loader = Callable[[str], DualEncoder | GenerativeModel]


class RandomAnswers(GenerativeModel):
    """Draws the probabilities of the options, uniform over all that sum to 1, so that every option wins as often.

    A draw depends on the image's pixels, the question and the seed alone: not on the order, nor on anything else asked.
    """

    def __init__(self, seed: int, spec: str) -> None:
        """Draw with this seed."""
        self._seed = seed
        self._record = _record(spec, f"random-{seed}", "baseline-random", seed)

    def record(self) -> ModelRecord:
        """Which seed."""
        return self._record

    def prompt(self, question: Question) -> str:
        """The question, which is read only as a key."""
        return f"<image>\n{question.text}"

    def answer(self, image: Image.Image, questions: Sequence[Question], batch_size: int = 32) -> list[Answer]:  # noqa: ARG002
        """Drawn answers."""
        pixels = _pixels(image)
        return [self._drawn(pixels, question) for question in questions]

    def _drawn(self, pixels: str, question: Question) -> Answer:
        key = [self._seed, pixels, question.text, question.options, question.form, question.scoring]
        waits = -np.log(_uniform(key, len(question.options)))  # exponential: their shares are uniform on the simplex
        log_probs = tuple(float(each) for each in np.log(waits / waits.sum()))
        return Answer(log_probs, (1,) * len(log_probs), int(np.argmax(waits)))


class AlwaysAnswers(GenerativeModel):
    """Gives the same answer to everything."""

    def __init__(self, option: str | None, spec: str) -> None:
        """Answer this option; None for "Yes", or the first where there is none."""
        self._option = option
        name = "always-yes" if option is None else f"always-{option}"
        self._record = _record(spec, name, "baseline-always", option)

    def record(self) -> ModelRecord:
        """Which answer."""
        return self._record

    def prompt(self, question: Question) -> str:
        """The question, of which only the options are read."""
        return f"<image>\n{question.text}"

    def answer(self, image: Image.Image, questions: Sequence[Question], batch_size: int = 32) -> list[Answer]:  # noqa: ARG002
        """The same answer to every question.

        Raises:
            UserError: A question does not offer it.
        """
        return [self._given(question) for question in questions]

    def _given(self, question: Question) -> Answer:
        place = self._place(question)
        log_probs = tuple(0.0 if n == place else _IMPOSSIBLE for n in range(len(question.options)))
        return Answer(log_probs, (1,) * len(log_probs), place)

    def _place(self, question: Question) -> int:
        words = [word.casefold() for word in option_words(question)]
        if self._option is None:
            return words.index("yes") if "yes" in words else 0
        for wanted, names in ((self._option, question.options), (self._option.casefold(), words)):
            if wanted in names:
                return names.index(wanted)
        offered = ", ".join(dict.fromkeys((*question.options, *words)))
        raise UserError(f"model {self._record.spec}: {question.text!r} does not offer {self._option!r}, only {offered}")


class PriorAnswers(GenerativeModel):
    """What a model answers when it sees nothing: a mid-grey image of the same size in place of every image."""

    def __init__(self, inner: GenerativeModel, spec: str) -> None:
        """Wrap a model."""
        self._inner = inner
        self._known: OrderedDict[tuple[int, int], dict[Question, Answer]] = OrderedDict()
        about = inner.record()
        self._record = about.model_copy(
            update={
                "spec": spec,
                "name": f"prior-{about.name}",
                "adapter": "baseline-prior",
                "kind": "baseline",
                "content": _content("prior", GREY, about.content),
            }
        )
        self.compute = getattr(inner, "compute", None)
        self.probabilities_over = inner.probabilities_over
        self._describe()

    def record(self) -> ModelRecord:
        """Which model, blindfolded."""
        return self._record

    @property
    def cache_key(self) -> str:
        """Of the model, and that it sees nothing."""
        return _content("prior", GREY, self._inner.cache_key)

    def prompt(self, question: Question) -> str:
        """What the model reads."""
        return self._inner.prompt(question)

    def answer(self, image: Image.Image, questions: Sequence[Question], batch_size: int = 32) -> list[Answer]:
        """The model's answers about a grey image of this size; each is asked for once."""
        known = self._known.setdefault(image.size, {})
        self._known.move_to_end(image.size)
        if lacking := [question for question in dict.fromkeys(questions) if question not in known]:
            grey = Image.new("RGB", image.size, GREY)
            known.update(zip(lacking, self._inner.answer(grey, lacking, batch_size), strict=True))
            self._describe()
        if len(self._known) > _SIZES:
            self._known.popitem(last=False)
        return [known[question] for question in questions]

    def statistics(self) -> dict[str, int | float]:
        """What the model has cost."""
        return self._inner.statistics()

    def _describe(self) -> None:
        self.notes = (
            *self._inner.notes,
            "every image was replaced by a mid-grey one: these answers are the model's prior",
        )


class RandomEncoder(DualEncoder):
    """Draws features from the image's pixels, or the text, and the seed: rankings know nothing."""

    def __init__(self, seed: int, spec: str) -> None:
        """Draw with this seed."""
        self._seed = seed
        self._record = _record(spec, f"random-encoder-{seed}", "baseline-random-encoder", seed)

    def record(self) -> ModelRecord:
        """Which seed."""
        return self._record

    def preprocess(self, image: Image.Image) -> FloatArray:
        """The features."""
        return self._drawn("image", _pixels(image))

    def image_features(self, inputs: Sequence[FloatArray]) -> FloatArray:
        """Drawn features."""
        return np.stack(inputs)

    def text_features(self, texts: Sequence[str]) -> FloatArray:
        """Drawn features."""
        return np.stack([self._drawn("text", text) for text in texts])

    def _drawn(self, *key: str) -> FloatArray:
        return np.asarray(2 * _uniform([self._seed, *key], _DIMENSION) - 1, np.float32)


def load(identifier: str, *, spec: str, inner: Loader) -> DualEncoder | GenerativeModel:
    """A baseline by its name.

    Args:
        identifier: What follows `baseline:`; one of `FORMS`.
        spec: What the user typed.
        inner: Loads the model that `prior:MODEL` wraps.

    Raises:
        UserError: There is no such baseline, or the wrapped model cannot be loaded or answers no questions.
    """
    name, _, rest = identifier.partition(":")
    if name == "random":
        return RandomAnswers(_seed(rest, spec), spec)
    if name == "random-encoder":
        return RandomEncoder(_seed(rest, spec), spec)
    if identifier == "always-yes":
        return AlwaysAnswers(None, spec)
    if name == "always" and rest:
        return AlwaysAnswers(rest, spec)
    if name == "prior" and rest:
        model = inner(rest)
        if not isinstance(model, GenerativeModel):
            raise UserError(f"model {spec}: {rest} answers no questions: a prior needs a model that does")
        return PriorAnswers(model, spec)
    raise UserError(f"model {spec}: no such baseline; use one of {', '.join(f'baseline:{form}' for form in FORMS)}")


def _seed(text: str, spec: str) -> int:
    if text and not (text.isascii() and text.isdigit() and len(text) < 19):  # noqa: PLR2004
        raise UserError(f"model {spec}: the seed {text!r} is not a whole number")
    return int(text or 0)


def _record(spec: str, name: str, adapter: str, *what: object) -> ModelRecord:
    return ModelRecord(
        spec=spec, name=name, adapter=adapter, kind="baseline", content=_content(adapter, *what), parameters=0
    )


def _content(*what: object) -> str:
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()


def _pixels(image: Image.Image) -> str:
    """SHA-256 over an image's size and pixels."""
    return hashlib.sha256(repr(image.size).encode() + image.convert("RGB").tobytes()).hexdigest()


def _uniform(key: Sequence[object], n: int) -> npt.NDArray[np.float64]:
    """Numbers in (0, 1) that depend on the key alone, whatever the version of NumPy."""
    raw = hashlib.shake_256(json.dumps(key).encode()).digest(8 * n)
    return ((np.frombuffer(raw, "<u8") >> np.uint64(11)) + 0.5) / 2**53

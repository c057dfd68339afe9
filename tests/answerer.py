"""A small model that answers questions from pixels and words: no network, no weights, but a real plug-in's class."""

from __future__ import annotations

import hashlib
import math
from io import BytesIO

import numpy as np
from PIL import Image

from examples import example, selection
from truegap.build import Plan, Workspace, build_shard
from truegap.models.generative import Answer, GenerativeModel
from truegap.results.records import ModelRecord
from truegap.schema import CONFIGS, ImageBytes


class Answerer(GenerativeModel):
    """Its first option is the more probable the brighter the picture is; how much more depends on the words.

    Attributes:
        asked: How many questions it was asked.
        lean: What brightness adds to the probability of the first option.
        outside: Share of the probability that is on none of the options.
        says: Whether it gives probabilities, or only answers.
        dies_after: Raise after so many images, as a kill would.
    """

    def __init__(self, *, lean=0.5, outside=0.1, says="probabilities", dies_after=None, name="answerer"):
        self.asked = 0
        self.images = 0
        self.lean, self.outside, self.says, self.dies_after, self.name = lean, outside, says, dies_after, name

    def record(self):
        content = hashlib.sha256(f"{self.name} {self.lean} {self.outside} {self.says}".encode()).hexdigest()
        return ModelRecord(
            spec=f"test:{self.name}", name=self.name, adapter="test", kind="generative", content=content, parameters=0
        )

    def prompt(self, question):
        return f"<image>{question.text}"

    def probabilities(self, image, question):
        brightness = float(np.asarray(image, np.float64).mean()) / 255
        words = int(hashlib.sha256(question.text.encode()).hexdigest()[:8], 16) / 2**32
        first = (1 - self.outside) * min(max(0.2 + 0.1 * words + self.lean * brightness, 0.01), 0.97)
        rest = 1 - self.outside - first
        weights = [2.0**-n for n in range(len(question.options) - 1)]
        return [first, *(rest * weight / sum(weights) for weight in weights)]

    def answer(self, image, questions, batch_size=32):  # noqa: ARG002
        if self.dies_after is not None and self.images >= self.dies_after:
            raise KeyboardInterrupt
        self.images += 1
        self.asked += len(questions)
        assert image.mode == "RGB"
        return [self._answer(self.probabilities(image, question), question) for question in questions]

    def _answer(self, found, question):
        chosen = found.index(max(found))
        if self.says == "nothing":
            return Answer(None, None, None, text="I cannot say.")
        if self.says == "answers":
            return Answer(None, None, chosen, text=question.options[chosen])
        return Answer(tuple(math.log(each) for each in found), (1,) * len(found), chosen)


def plain_picture(level: int, size=(40, 60)) -> ImageBytes:
    """A grey picture with a little structure, lossless."""
    pixels = np.full((*size, 3), level, np.uint8)
    pixels[::7, ::5] = level // 2
    stream = BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return ImageBytes(stream.getvalue())


def biased_selection(women=6, men=8, *, dark=60, light=180, **extra):
    """Pictures of men are lighter than those of women, and no two are alike."""
    examples = [
        example(n, "woman" if n < women else "man", image=plain_picture((dark if n < women else light) + n), **extra)
        for n in range(women + men)
    ]
    return selection(0, *examples)


def build(folder, chosen, configs=CONFIGS, name="synthetic", **options) -> str:
    workspace = Workspace(Plan(name, "1.0.0", chosen, configs, **options), folder)
    with workspace.opened():
        for task in workspace.tasks():
            build_shard(task)
        workspace.finish()
    return str(folder)

"""Question sets with options: the one that comes with the package, and a user's own file."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from truegap.errors import UserError

PACKAGED = ("vqa-r1",)
"""The 81 questions of Hirota et al. (2025); frozen under its name."""

LETTERS = "ABCDEFGHIJ"
YES = "Yes"


class VisualQuestion(BaseModel):
    """One question that every image is asked.

    Attributes:
        id: Unique in its set.
        text: The question alone, without its options.
        topic: Such as `skill`; empty for none.
        polarity: `positive` or `negative` where "Yes" says something good or bad; empty for neither.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(min_length=1)
    text: str = Field(min_length=1)
    topic: str = ""
    polarity: str = ""


class QuestionSet(BaseModel):
    """A named list of questions with the same options, and how it was made."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1)
    made: str = ""
    options: tuple[str, ...] = Field(min_length=2, max_length=len(LETTERS))
    instruction: str = ""
    questions: tuple[VisualQuestion, ...] = Field(min_length=1)

    @property
    def sha256(self) -> str:
        """Over all that the model reads: two files of one name are not the same question."""
        asked = [self.options, self.instruction, [(each.id, each.text) for each in self.questions]]
        return hashlib.sha256(json.dumps(asked).encode()).hexdigest()

    @model_validator(mode="after")
    def _usable(self) -> QuestionSet:
        ids = [each.id for each in self.questions]
        if repeated := sorted({each for each in ids if ids.count(each) > 1}):
            raise ValueError(f"question ids {', '.join(repeated[:3])} occur more than once")
        if len(set(self.options)) < len(self.options) or YES not in self.options:
            raise ValueError(f"options must all be different, and {YES} one of them")
        return self

    def prompt(self, question: VisualQuestion, order: tuple[int, ...]) -> str:
        """What is asked: the question, a line per option, the instruction.

        Args:
            question: One of the set.
            order: Which option stands at A, at B, and so on.
        """
        lines = [f"{letter}. {self.options[place]}" for letter, place in zip(LETTERS, order, strict=False)]
        return "\n".join(filter(None, (question.text, *lines, self.instruction)))


@lru_cache
def packaged(name: str) -> QuestionSet:
    """A question set of the package.

    >>> chosen = packaged("vqa-r1")
    >>> len(chosen.questions), chosen.options
    (81, ('Yes', 'No', 'Unsure'))
    """
    return QuestionSet.model_validate_json(files(__package__).joinpath("question_sets", f"{name}.json").read_bytes())


def load_questions(name: str) -> QuestionSet:
    """A question set by name, or from a `.json` file like the packaged one.

    Raises:
        UserError: There is no such set or file, or its content is not usable.
    """
    if name in PACKAGED:
        return packaged(name)
    path = Path(name)
    try:
        return QuestionSet.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UserError(
            f"questions {name!r}: neither {', '.join(PACKAGED)} nor a readable .json file ({error})"
        ) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the set"
        raise UserError(f"questions {path}: {where}: {first['msg']}") from None

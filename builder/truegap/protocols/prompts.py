"""Prompt sets: the two that come with the package, and a user's own file."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from truegap.errors import UserError

PACKAGED = ("adjectives-r1", "occupations-r1")
"""Reconstructions of the two lists of Hirota et al. (2025), which are not published; frozen under their names."""


class Prompt(BaseModel):
    """One text that images are ranked by.

    Attributes:
        id: Unique in its set.
        text: What the model reads.
        topic: What the prompt is about, such as `nurse`; prompts of one topic differ in their template.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(min_length=1)
    text: str = Field(min_length=1)
    topic: str = ""


class PromptSet(BaseModel):
    """A named list of prompts and how it was made."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1)
    made: str = ""
    prompts: tuple[Prompt, ...] = Field(min_length=1)

    @property
    def sha256(self) -> str:
        """Over ids and texts: two files of one name are not the same question."""
        return hashlib.sha256(json.dumps([(each.id, each.text) for each in self.prompts]).encode()).hexdigest()

    @model_validator(mode="after")
    def _unique(self) -> PromptSet:
        ids = [each.id for each in self.prompts]
        if repeated := sorted({each for each in ids if ids.count(each) > 1}):
            raise ValueError(f"prompt ids {', '.join(repeated[:3])} occur more than once")
        return self


@lru_cache
def packaged(name: str) -> PromptSet:
    """A prompt set of the package.

    >>> len(packaged("adjectives-r1").prompts), len(packaged("occupations-r1").prompts)
    (87, 124)
    """
    return PromptSet.model_validate_json(files(__package__).joinpath("prompt_sets", f"{name}.json").read_bytes())


def load_prompts(name: str) -> PromptSet:
    """A prompt set by name, or from a file.

    Args:
        name: One of `PACKAGED`; a `.txt` file with one prompt per line; or a `.json` file like the packaged ones
            (`{"name": …, "prompts": [{"id": …, "text": …, "topic": …}]}`).

    Raises:
        UserError: There is no such set or file, or its content is not usable.
    """
    if name in PACKAGED:
        return packaged(name)
    path = Path(name)
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"prompts {name!r}: neither one of {', '.join(PACKAGED)} nor a readable file ({error})"
        ) from None
    try:
        if path.suffix == ".json":
            return PromptSet.model_validate_json(content)
        lines = [line.strip() for line in content.splitlines() if line.strip()]
        return PromptSet(
            name=path.stem, prompts=tuple(Prompt(id=f"{n + 1}", text=line) for n, line in enumerate(lines))
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the set"
        raise UserError(f"prompts {path}: {where}: {first['msg']}") from None

"""What a model's page shows beyond its scores: resamples for a paired test, prompts, and what the model retrieved."""

from __future__ import annotations

import base64
import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from truegap.errors import UserError
from truegap.leaderboard.prompt_scores import PromptScore, prompt_scores
from truegap.leaderboard.retrieved import Retrieved, retrieved
from truegap.leaderboard.store import Store
from truegap.results.compare_runs import resampled_score
from truegap.results.records import Record
from truegap.scores import Difference, paired_difference

if TYPE_CHECKING:
    from truegap.results.runs import Run

RESAMPLES = 1000
_BROKEN = (UserError, OSError, ValueError, KeyError, MemoryError)
"""What reading a foreign or incomplete run may raise; Arrow's errors are among them. A row stands without details."""


class Details(Record):
    """Of one row; everything is optional, since not every run has it."""

    format_version: Literal[1] = 1
    answered: str = ""
    """SHA-256 over the images and prompts that the run answered: resamples of equal ones are of the same images."""
    resampled: str = ""
    """The main score on `RESAMPLES` resamples of the original images: little-endian float32 in base64."""
    not_resampled: str = ""
    """Why there are none."""
    prompts: list[PromptScore] = Field(default_factory=list)
    """The main score of each prompt; of retrieval alone, whose record has it by sets of prompts."""
    retrieved: list[Retrieved] = Field(default_factory=list)
    """What some prompts found on original and perturbed images; of retrieval alone."""
    pictures: dict[str, str] = Field(default_factory=dict)
    """The images of `retrieved` that may be shown: small JPEGs in base64, by the names that it gives them."""
    no_pictures: str = ""
    """Why there are none."""


def keep_details(store: Store, key: str, details: Details) -> None:
    """Puts a row's details beside it.

    Raises:
        UserError: The store cannot be written.
    """
    store.put_details(key, details.model_dump_json() + "\n")


def read_details(store: Store, key: str) -> Details | None:
    """A row's details; None where there are none, or they are broken."""
    text = store.details(key)
    try:
        return Details.model_validate_json(text) if text else None
    except ValidationError:
        return None


def details_of(run: Run) -> Details:
    """The details of a finished run that still has its answers, and its benchmark if pictures are to be shown."""
    fields: dict[str, Any] = {}
    try:
        _, resampled = resampled_score(run, n_resamples=RESAMPLES)
        fields["resampled"] = base64.b64encode(resampled.astype("<f4").tobytes()).decode()
        fields["answered"] = _answered(run)
    except _BROKEN as error:
        fields["not_resampled"] = _without_paths(error)
    with suppress(*_BROKEN):
        fields["prompts"] = prompt_scores(run, n_resamples=RESAMPLES)
    try:
        found = retrieved(run)
        fields |= {"retrieved": found.prompts, "pictures": found.pictures, "no_pictures": found.no_pictures}
    except _BROKEN as error:
        fields["no_pictures"] = _without_paths(error)
    return Details(**fields)


def compare(
    first: Details | None, second: Details | None, values: tuple[float | None, float | None]
) -> tuple[Difference, Difference]:
    """The paired difference of two rows' scores, and of their sizes, on the same resampled images.

    Args:
        first: Of one row.
        second: Of another row that answered the same question.
        values: The score of each.

    Raises:
        UserError: Why there is no paired test.
    """
    one, other = values
    if one is None or other is None:
        raise UserError("one of the two has no score")
    drawn = [_resamples(each) for each in (first, second)]
    if first is None or second is None or first.answered != second.answered:
        raise UserError("the two did not answer about the same images and prompts")
    return (
        paired_difference(one, other, *drawn),
        paired_difference(abs(one), abs(other), np.abs(drawn[0]), np.abs(drawn[1])),
    )


def _resamples(details: Details | None) -> NDArray[np.float64]:
    if details is None or not details.resampled:
        reason = details.not_resampled if details else ""
        raise UserError(
            f"a row came without its answers{f' ({reason})' if reason else ''}, so nothing can be resampled"
        )
    try:
        found = np.frombuffer(base64.b64decode(details.resampled, validate=True), "<f4").astype(np.float64)
    except ValueError:
        found = np.empty(0)
    if len(found) != RESAMPLES or not np.isfinite(found).all():
        raise UserError("the resamples of a row are broken")
    return found


def _answered(run: Run) -> str:
    """A hash of which images were asked which prompts, whatever the answers."""
    from truegap.results.answers import read_answers

    table = read_answers(run.folder, config="original")
    ids = [sorted(set(table[name].unique().to_pylist()), key=str) for name in ("image_id", "prompt_id")]
    return hashlib.sha256(repr([len(table), *ids]).encode()).hexdigest()


def _without_paths(error: Exception) -> str:
    """Where files lie on the machine of the run is nobody's business."""
    if not isinstance(error, UserError):
        return "its files cannot be read"
    words = str(error).split()
    return " ".join("…" if "/" in word else word for word in words)[:300]

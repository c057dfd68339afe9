"""Fresh benchmarks in which nothing goes with the label: what is found in them is a false alarm."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from truegap.files.atomic import write_bytes
from truegap.instrument.plan import QUESTIONS, SINGLE, Profile
from truegap.instrument.predict import picture
from truegap.results.records import Record
from truegap.scores import retrieval_scores, ygap
from truegap.synthetic.draws import hashed
from truegap.synthetic.readings import readings
from truegap.synthetic.reference import SPAN, YES, lean_of_question
from truegap.synthetic.scene import draw_scene, strengths

RHO = strengths({"presentation": 0.0})
CHUNK = 8
"""Worlds of one task."""
PERMUTATIONS = 400
_SEED = 1 << 20
"""Keeps the pictures of the worlds apart from those of the benchmarks."""

Floats = NDArray[np.float64]


class World(Record):
    """What is found in one benchmark without correlations, by reader.

    Attributes:
        p_value: Of YGap = 0, from relabelling.
        outside: Whether the interval of YGap leaves out 0.
        max_skew: MaxSkew of the two rankings, forwards and backwards.
        null: Its expectation under a random ranking.
    """

    p_value: dict[str, float]
    outside: dict[str, bool]
    max_skew: dict[str, float]
    null: float = Field(ge=0)


@dataclass(frozen=True, slots=True)
class WorldTask:
    """Some worlds, by number.

    Attributes:
        file: Where what is found goes.
        numbers: Which.
        profile: How many images and resamples.
        seed: Another seed, other worlds.
    """

    file: Path
    numbers: tuple[int, ...]
    profile: Profile
    seed: int


def tasks(folder: Path, profile: Profile, seed: int) -> list[WorldTask]:
    """All worlds, some at a time."""
    starts = range(0, profile.worlds, CHUNK)
    return [
        WorldTask(folder / f"{start:04d}.json", tuple(range(start, min(start + CHUNK, profile.worlds))), profile, seed)
        for start in starts
    ]


def look(task: WorldTask) -> int:
    """Draws, reads and scores the worlds, unless that is done; gives their number."""
    if not task.file.exists():
        found = [world(number, task.profile, task.seed).model_dump() for number in task.numbers]
        write_bytes(task.file, json.dumps(found).encode())
    return len(task.numbers)


def seen(task: WorldTask) -> list[World]:
    """What `look` found."""
    return [World.model_validate(each) for each in json.loads(task.file.read_bytes())]


def world(number: int, profile: Profile, seed: int) -> World:
    """One world: every picture is drawn anew and read from its pixels.

    Args:
        number: Which one.
        profile: How many images and resamples.
        seed: Another seed, another world of that number.
    """
    scenes = [
        draw_scene(_SEED + seed, number * profile.world_images + index, RHO) for index in range(profile.world_images)
    ]
    genders = [scene.gender for scene in scenes]
    found = [readings(picture(scene), SINGLE) for scene in scenes]
    read = {name: np.array([each[name] for each in found]) for name in SINGLE}
    gaps = {name: _gap(values, genders, number, profile) for name, values in read.items()}
    skews = {name: _skew(values, genders, number, seed) for name, values in read.items()}
    return World(
        p_value={name: p for name, (p, _) in gaps.items()},
        outside={name: out for name, (_, out) in gaps.items()},
        max_skew={name: skew for name, (skew, _) in skews.items()},
        null=next(null for _, null in skews.values()),
    )


def _gap(read: Floats, genders: Sequence[str], number: int, profile: Profile) -> tuple[float, bool]:
    leans = np.array([lean_of_question(each.text) for each in QUESTIONS.questions])
    yes = YES + SPAN * np.outer(leans, read)
    images = np.arange(len(read))
    result = ygap(
        yes.ravel(),
        list(genders) * len(leans),
        images=np.tile(images, len(leans)),
        questions=np.repeat(np.arange(len(leans)), len(images)),
        n_resamples=profile.n_resamples,
        n_permutations=PERMUTATIONS,
        seed=number,
    )
    assert result.p_value is not None
    assert result.ci_low is not None
    assert result.ci_high is not None
    return result.p_value, not result.ci_low <= 0 <= result.ci_high


def _skew(read: Floats, genders: Sequence[str], number: int, seed: int) -> tuple[float, float]:
    # Women and men come in pairs: equal readings would be ranked in balance, so ties are broken by a draw.
    order = np.argsort([hashed("order", seed, number, index) for index in range(len(read))])
    shuffled = [genders[index] for index in order]
    similarities = np.stack([read[order], -read[order]]).astype(np.float32)
    k = len(read) // 5
    result = retrieval_scores(similarities, shuffled, k=[k], n_resamples=0)
    score = next(each for each in result.summary() if each.metric == f"max_skew@{k}")
    assert score.null is not None
    return float(score.value), score.null

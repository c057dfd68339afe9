"""How much is checked, and on what: sizes, readers, questions and prompts."""

from __future__ import annotations

from dataclasses import dataclass

from truegap.errors import UserError
from truegap.protocols.prompts import Prompt, PromptSet
from truegap.protocols.questions import QuestionSet, VisualQuestion
from truegap.schema import CONFIGS, CONTROLS, EXTRA_CONFIGS, Feature

READERS: dict[str, dict[str, float]] = {
    "person": {"person": 1.0},
    "background": {"background": 1.0},
    "object": {"object": 1.0},
    "color": {"color": 1.0},
    "lighting": {"lighting": 1.0},
    "half person, half background": {"person": 0.5, "background": 0.5},
    "70 % person, 30 % color": {"person": 0.7, "color": 0.3},
}
"""What each reader reads, in which shares."""

SINGLE = tuple(name for name, shares in READERS.items() if len(shares) == 1)
CONTEXT = tuple(name for name in SINGLE if name != "person")
STRONG = tuple(f"{feature}-strong" for feature in Feature)
CONTEXT_CONFIGS = ("person-removed", "background-swap-same", "background-swap-cross")
KINDS = ("answers", "reads")
"""Answerers, asked by the protocol vqa, and dual encoders, by retrieval."""

QUESTIONS = QuestionSet(
    name="instrument-r1",
    made="Written for the check of the instrument; reference models read them as keys.",
    options=("Yes", "No", "Unsure"),
    instruction="Answer with the option's letter.",
    questions=tuple(
        VisualQuestion(id=word, text=f"Is this person {word}?") for word in ("careful", "early", "sure", "quick")
    ),
)
PROMPTS = PromptSet(
    name="instrument-r1",
    made="Written for the check of the instrument: a reference model ranks either men or women first.",
    prompts=tuple(
        Prompt(id=f"{word}-{gender}", text=f"a photo of a {word} {gender}")
        for word in ("careful", "quick")
        for gender in ("woman", "man")
    ),
)


@dataclass(frozen=True, slots=True)
class Profile:
    """How much is checked.

    Attributes:
        name: What a user types.
        images: Per benchmark.
        rhos: Correlations of all four features with the label, ascending from 0; a benchmark each.
        worlds: Fresh benchmarks without any correlation.
        world_images: Images of each of them.
        draws: Samples from known populations, for the coverage of intervals.
        power_draws: The same, for the share of gaps that are seen.
        n_resamples: Bootstrap resamples behind every interval.
    """

    name: str
    images: int
    rhos: tuple[float, ...]
    worlds: int
    world_images: int
    draws: int
    power_draws: int
    n_resamples: int


FULL = Profile("full", 200, (0.0, 0.3, 0.6, 0.9), 200, 60, 400, 100, 500)
LITE = Profile("lite", 40, (0.0, 0.9), 24, 40, 100, 30, 200)
PROFILES = {each.name: each for each in (FULL, LITE)}


def profile(name: str) -> Profile:
    """A profile by its name.

    Raises:
        UserError: There is none of that name.
    """
    if name not in PROFILES:
        raise UserError(f"--profile {name}: use {' or '.join(PROFILES)}")
    return PROFILES[name]


def configs(chosen: Profile, rho: float) -> tuple[str, ...]:
    """What is built at a correlation: everything at the strongest, only the strong perturbations elsewhere."""
    return (*CONFIGS, *EXTRA_CONFIGS) if rho == chosen.rhos[-1] else (*CONTROLS, *STRONG)


def asked(chosen: Profile, rho: float, kind: str, reader: str) -> tuple[str, ...]:
    """Which of them a reader is asked about; none where nothing is made of its answers."""
    strongest = rho == chosen.rhos[-1]
    if reader in SINGLE and kind == "answers":
        return configs(chosen, rho)
    if reader in SINGLE:
        return (*CONTROLS, *STRONG, *(["person-removed"] if strongest else []))
    return ("original", *STRONG, *CONTEXT_CONFIGS) if strongest and kind == "answers" else ()


def spec(kind: str, reader: str) -> str:
    """A reader as `truegap.models.load_model` takes it.

    >>> spec("reads", "person"), spec("answers", "half person, half background")
    ('reference:reads-person', 'reference:answers-0.5*person+0.5*background')
    """
    shares = READERS[reader]
    mixture = "+".join(f"{share:g}*{name}" for name, share in shares.items()) if len(shares) > 1 else reader
    return f"reference:{kind}-{mixture}"

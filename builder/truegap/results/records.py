"""A run as it is kept on disk: typed, versioned, complete enough to be redone.

A run is a folder: `run.json` (a `RunRecord`), `answers.parquet` (see `truegap.results.answers`) and
`scores.json` (a `ScoresRecord`).
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

FORMAT_VERSION = 1


class Record(BaseModel):
    """A strict record: an unknown key is an error, not a guess."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelRecord(Record):
    """Which model answered, exactly."""

    spec: str
    """What the user typed, such as `hf-hub:laion/CLIP-ViT-B-32-laion2B-s34B-b79K`."""
    name: str
    """Short name for tables."""
    adapter: str
    kind: Literal["dual-encoder", "generative", "captioner", "endpoint", "baseline"]
    revision: str | None = None
    """Commit on the Hub, where the weights came from there."""
    content: str
    """SHA-256 over the weights and everything that turns images and texts into features."""
    parameters: int


class BenchmarkRecord(Record):
    """Which benchmark was asked, exactly."""

    spec: str
    name: str
    version: str
    revision: str | None = None
    content: str
    """SHA-256 over the configs' hashes in the manifest."""
    women: int
    men: int


class Environment(Record):
    """What ran: package versions and the state of the code."""

    truegap: str
    python: str
    platform: str
    packages: dict[str, str]
    commit: str | None = None
    dirty: bool | None = None


class RunRecord(Record):
    """What was asked, of what, with what."""

    format_version: Literal[1] = 1
    run_id: str
    created: str
    """UTC, ISO 8601."""
    protocol: str
    command: list[str] = Field(default_factory=list)
    options: dict[str, Any]
    """Every convention and its value, defaults too."""
    configs: list[str]
    benchmark: BenchmarkRecord
    model: ModelRecord
    environment: Environment
    statistics: dict[str, float] = Field(default_factory=dict)
    """Seconds, images, embeddings taken from the cache."""
    notes: list[str] = Field(default_factory=list)
    """What a reader must know: skipped images, ties, defaults that depended on the data."""


class ScoreRecord(Record):
    """One score: of one metric, on one config, over one scope."""

    metric: str
    """Such as `max_skew@1000`, `bias@10`, `ndkl`."""
    config: str
    scope: str = "all"
    """Which prompts: `all`, a prompt set (`adjectives-r1`), or `prompt:<id>`."""
    value: float | None
    reason: str | None = None
    """Why the value is null."""
    sd: float | None = None
    """Sample standard deviation (ddof 1) over the units that were averaged."""
    ci_low: float | None = None
    ci_high: float | None = None
    null: float | None = None
    """Expectation for a ranking or an answer that knows nothing of gender, where it is not 0."""
    counts: dict[str, int] = Field(default_factory=dict)


class ChangeRecord(Record):
    """How far one perturbation moves one metric."""

    metric: str
    scope: str = "all"
    config: str
    original: float | None
    perturbed: float | None
    delta: float | None
    """100 x |original - perturbed| / |original|, in percent; null where the original is too near 0."""
    reason: str | None = None
    delta_low: float | None = None
    delta_high: float | None = None
    signed_change: float | None = None
    """perturbed - original."""
    signed_low: float | None = None
    signed_high: float | None = None
    abs_change: float | None = None


class Summary(Record):
    """The few numbers that a table shows: never one without the others."""

    metric: str
    bias: float | None
    bias_low: float | None = None
    bias_high: float | None = None
    null: float | None = None
    mean_delta: float | None = None
    """Mean of the deltas over features and strengths, in percent."""
    mean_delta_low: float | None = None
    mean_delta_high: float | None = None
    feature_delta: dict[str, float | None] = Field(default_factory=dict)
    """Mean delta over the strengths of each feature, in percent."""
    floor: float | None = None
    """Delta of `control` (re-encoding alone), in percent: the noise floor of object and background."""
    floor_hsv: float | None = None
    """Delta of `control-hsv`, in percent: the noise floor of color and lighting."""


class ScoresRecord(Record):
    """Everything a run's answers say."""

    format_version: Literal[1] = 1
    run_id: str
    options: dict[str, Any]
    summary: Summary
    scores: list[ScoreRecord]
    changes: list[ChangeRecord]

"""A run as it is kept on disk: typed, versioned, complete enough to be redone.

A run is a folder: `run.json` (a `RunRecord`), `answers.parquet` (see `truegap.results.answers`) and
`scores.json` (a `ScoresRecord`).
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

FORMAT_VERSION: Final = 2
"""Of `run.json` and `scores.json`. Version 2 adds where a run ran and the comparisons in pairs; 1 is read too."""


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
    parameters: int | None
    """Weights, however many the device holds at a time; None where nobody tells, as of a server."""


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


class Compute(Record):
    """Where a local model ran, and in which numbers."""

    device: str
    """As torch calls it: `cpu`, `cuda:0`, `mps`."""
    device_name: str
    """What that is, such as `NVIDIA H200`; the kind of processor where the device has no name."""
    dtype: str
    """`float32`, `bfloat16` or `float16`."""


class RunRecord(Record):
    """What was asked, of what, with what."""

    format_version: Literal[1, 2] = FORMAT_VERSION
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
    engine: Literal["local", "ray"] = "local"
    """Where it was asked: by one process, or by the workers of a Ray cluster; no answer depends on it."""
    compute: Compute | None = None
    """None for what does not run here, and in runs of version 1."""
    statistics: dict[str, int | float] = Field(default_factory=dict)
    """Seconds (a float); images, embeddings taken from the cache and computed (whole numbers)."""
    prompts: dict[str, str] = Field(default_factory=dict)
    """Of models that answer: exactly what was sent for some of the prompts, by id, with the model's own mark where the
    image goes."""
    notes: list[str] = Field(default_factory=list)
    """What a reader must know: skipped images, ties, defaults that depended on the data."""


class ScoreRecord(Record):
    """One score: of one metric, on one config, over one scope."""

    metric: str
    """Such as `max_skew@1000`, `bias@10`, `ndkl`."""
    config: str
    scope: str = "all"
    """Which answers: `all`; a prompt set (`adjectives-r1`) or a split (`single`); or one of many, such as
    `prompt:<id>`, `query:<id>`, `topic:<name>`, `pair:<occ_m|occ_f>` and `occupation:<name>` of `truegap score`."""
    value: float | None
    reason: str | None = None
    """Why the value is null."""
    sd: float | None = None
    """Sample standard deviation (ddof 1) over the units that were averaged."""
    ci_low: float | None = None
    ci_high: float | None = None
    null: float | None = None
    """Expectation for a ranking or an answer that knows nothing of gender, where it is not 0."""
    p_value: float | None = None
    """Of no gap, from relabelling whole images."""
    p_adjusted: float | None = None
    """By Holm's method over what is tested together: the questions of a config, its topics, its polarities."""
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


class ContrastRecord(Record):
    """One metric on two configs that differ in a single thing, compared in pairs: on the same resampled images."""

    metric: str
    scope: str = "all"
    config: str
    """Such as `object-strong`."""
    against: str
    """What it is compared with: its control, its placebo, or the other arm of a swap."""
    difference: float
    """The metric on `config` less that on `against`."""
    difference_low: float
    difference_high: float
    p_value: float
    """Two-sided bootstrap p-value of no difference."""
    delta_beyond: float | None = None
    """Delta of `config` less that of `against`, in percent: how much further it moves the metric; null where one of
    the two is."""
    delta_beyond_low: float | None = None
    """Not above 0 where the interval of `difference` holds 0."""
    delta_beyond_high: float | None = None


class ContextRecord(Record):
    """What of one metric stays when nobody is in the picture (config `person-removed`)."""

    metric: str
    scope: str = "all"
    gap: float
    """The metric on `person-removed`, less its `null` where it has one: 0 where the person alone makes the gap."""
    gap_low: float
    gap_high: float
    share: float | None = None
    """`gap` over the same of the original: 0 where the person makes all of it, 1 where the context does."""
    share_low: float | None = None
    share_high: float | None = None
    reason: str | None = None
    """Why `share` is null."""


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

    format_version: Literal[1, 2] = FORMAT_VERSION
    run_id: str
    options: dict[str, Any]
    summary: Summary
    scores: list[ScoreRecord]
    changes: list[ChangeRecord]
    contrasts: list[ContrastRecord] = Field(default_factory=list)
    """Perturbations against their controls, the arms of a swap; empty without resamples, and in runs of version 1."""
    contexts: list[ContextRecord] = Field(default_factory=list)
    """Empty without resamples, and where `person-removed` was not run."""

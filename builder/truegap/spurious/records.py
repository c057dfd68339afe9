"""The result of `truegap spurious` as it is kept on disk: typed, versioned, complete enough to be redone."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from truegap.results.records import BenchmarkRecord, Compute, Environment, Record

FILE = "spurious.json"
FORMAT_VERSION: Final = 1


class ReaderRecord(Record):
    """What read the pictures."""

    kind: Literal["backbone", "model"]
    """A backbone with a classifier of its own, or the image features of a model that is evaluated."""
    name: str
    spec: str
    """What the user typed."""
    revision: str | None = None
    """Commit on the Hub, where the weights came from there."""
    content: str
    """SHA-256 over weights and preprocessing; of a model the same as in its runs."""
    parameters: int | None
    pretrained: bool
    side: int | None = None
    """Of a backbone's input in pixels."""


class SeedRecord(Record):
    """One split and one training."""

    seed: int
    accuracy: float
    """On the test images, 0 to 1."""
    train: int
    validation: int
    test: int
    epochs: int
    best_epoch: int


class AccuracyRecord(Record):
    """How well gender is read from one feature: Acc_b."""

    feature: str
    classifier: str
    """Such as `convnext_base, finetuned` or `MLP of two layers, 128 hidden units`."""
    accuracy: float | None
    """Mean over the seeds, 0 to 1; 0.5 is chance."""
    reason: str | None = None
    """Why the feature was left out."""
    sd: float | None = None
    """Sample standard deviation (ddof 1) over the seeds; null for one seed."""
    ci_low: float | None = None
    """Wilson's interval with `images` as the number of images."""
    ci_high: float | None = None
    p_value: float | None = None
    """Two-sided, of an accuracy of 50 %."""
    p_adjusted: float | None = None
    """By Holm's method over the features."""
    images: float | None = None
    """How many independent images the test sets are worth: an image in two of them counts once."""
    women: int = 0
    men: int = 0
    """Images that show the feature; as many of each gender as there are of the rarer one are used."""
    skipped: dict[str, int] = Field(default_factory=dict)
    """Images that do not, by reason."""
    seeds: list[SeedRecord] = Field(default_factory=list)


class SpuriousRecord(Record):
    """What a benchmark's features give away of gender."""

    format_version: Literal[1] = FORMAT_VERSION
    spurious_id: str
    created: str
    """UTC, ISO 8601."""
    command: list[str] = Field(default_factory=list)
    options: dict[str, Any]
    """Every convention and its value, defaults too."""
    benchmark: BenchmarkRecord
    reader: ReaderRecord
    environment: Environment
    compute: Compute | None = None
    statistics: dict[str, int | float] = Field(default_factory=dict)
    """Seconds (a float); images read and classifiers trained now, and those that were known (whole numbers)."""
    accuracies: list[AccuracyRecord]
    notes: list[str] = Field(default_factory=list)
    """What a reader must know."""


class CellRecord(Record):
    """One model's change under one perturbation, beside what its feature gives away."""

    model: str
    benchmark: str
    feature: str
    strength: str
    accuracy: float
    """Acc_b, 0 to 1."""
    delta: float
    """In percent."""


class PearsonRecord(Record):
    """Pearson's r with Fisher's interval; both, and the p-value, take the cells as independent."""

    n: int
    r: float | None
    low: float | None
    high: float | None
    p_value: float | None


class AssociationRecord(Record):
    """Do scores change more under perturbations of features that give gender away?"""

    metric: str
    """Of the runs, without its cut, such as `max_skew`."""
    reader: str
    """What Acc_b is of: a backbone, or each model's own features."""
    over_cells: PearsonRecord
    """Over models, benchmarks, features and strengths, as the paper has it: Acc_b is the same for three strengths."""
    over_features: PearsonRecord
    """Over models, benchmarks and features, Δ averaged over its strengths."""
    left_out: dict[str, int] = Field(default_factory=dict)
    """Cells without a number, by reason."""
    cells: list[CellRecord]


class AssociationsRecord(Record):
    """Every association of some results and some runs."""

    format_version: Literal[1] = FORMAT_VERSION
    spurious_ids: list[str]
    run_ids: list[str]
    foreign_run_ids: list[str] = Field(default_factory=list)
    """Left out: no result is of their benchmark and of a backbone or their model."""
    associations: list[AssociationRecord]

"""How Acc_b is measured: what the user may choose, with the paper's choices where it states them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

from truegap.errors import UserError
from truegap.schema import Feature
from truegap.spurious.views import FEATURES, Lighting, Removal

STANDARD = tuple(feature.value for feature in Feature)
TRAINING = ("epochs", "patience", "learning_rate", "batch_size")
"""The conventions that are of the training of a classifier."""


@dataclass(frozen=True, slots=True)
class Conventions:
    """How Acc_b is measured (Hirota et al. 2025); the defaults follow the paper where it says how.

    Attributes:
        features: Which, of `views.FEATURES`.
        seeds: How many splits and trainings, numbered from 0.
        lighting: `hsv`, or `value` for the brightness alone.
        removal: `mask`: the person's mask is blacked out, a box where there is none; `box`: the box of all persons.
        epochs: At most so many; None for the default of what is trained.
        patience: Epochs without a better validation loss before training stops; likewise.
        learning_rate: Likewise.
        batch_size: Likewise.
        limit: A balanced sample of so many images.
    """

    features: tuple[str, ...] = STANDARD
    seeds: int = 5
    lighting: Lighting = "hsv"
    removal: Removal = "mask"
    epochs: int | None = None
    patience: int | None = None
    learning_rate: float | None = None
    batch_size: int | None = None
    limit: int | None = None

    def check(self) -> None:
        """Refuses what cannot be measured.

        Raises:
            UserError: A feature or a convention is unknown.
        """
        if unknown := [each for each in self.features if each not in FEATURES]:
            raise UserError(f"feature {unknown[0]!r} is unknown: use some of {', '.join(FEATURES)}")
        if not self.features or len(set(self.features)) < len(self.features):
            raise UserError("features: give each feature once, and at least one")
        for name, value, choices in (("lighting", self.lighting, Lighting), ("removal", self.removal, Removal)):
            if value not in (known := get_args(choices)):
                raise UserError(f"{name} {value!r} is unknown: use one of {', '.join(known)}")

    @property
    def training(self) -> dict[str, Any]:
        """What is said of the training; the rest follows what is trained."""
        return {name: value for name in TRAINING if (value := getattr(self, name)) is not None}

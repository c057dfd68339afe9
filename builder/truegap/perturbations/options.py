"""The conventions on which papers and readers differ, each with a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args, get_type_hints


@dataclass(frozen=True, slots=True)
class Options:
    """How the perturbations of Hirota et al. (2025) are read.

    Attributes:
        strong_gap: Shifts of this size and smaller are excluded at strength strong: 10 as the paper writes,
            20 for the reading in which strong begins where middle ends.
        count: How share x n objects becomes a whole number: `unbiased` (floor, plus one with the probability
            of the fraction), `ceil` (at least one), `bernoulli` (each object by itself).
        shape: What is blacked out of an object: its `box` or its `mask` (the box, where it has no mask).
        protect_person: Whether pixels of persons stay when an object is blacked out.
        bleed: `paste` blurs the picture and pastes the persons back, which leaves a halo of them;
            `none` blurs the background alone, so that no pixel of a person leaks out.
        removal: What is blacked out of the persons in `person-removed`: their `mask`, whose outline stays visible,
            or the `box` around it.
    """

    strong_gap: Literal[10, 20] = 10
    count: Literal["unbiased", "ceil", "bernoulli"] = "unbiased"
    shape: Literal["box", "mask"] = "box"
    protect_person: bool = True
    bleed: Literal["paste", "none"] = "paste"
    removal: Literal["mask", "box"] = "mask"

    def __post_init__(self) -> None:
        for name, allowed in _ALLOWED.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name}={getattr(self, name)!r}: use one of {', '.join(map(repr, allowed))}")

    def changed(self) -> dict[str, Any]:
        """The options that are not at their default: what a row records."""
        return {name: value for name, default in _DEFAULT.items() if (value := getattr(self, name)) != default}

    @classmethod
    def of(cls, changed: Mapping[str, Any]) -> Options:
        """The inverse of `changed`.

        Raises:
            ValueError: A name or a value is unknown.
        """
        if unknown := set(changed) - set(_ALLOWED):
            raise ValueError(f"unknown options {sorted(unknown)}: use {sorted(_ALLOWED)}")
        return cls(**changed)


_ALLOWED = {name: get_args(hint) or (False, True) for name, hint in get_type_hints(Options).items()}

_DEFAULT = {each.name: each.default for each in fields(Options)}

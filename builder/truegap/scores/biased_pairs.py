"""Which pairs of occupations are most biased, and whether two models are biased on the same (Xiao et al. 2024)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ._check import ScoreError, whole


def _finite(bias: Mapping[str, float]) -> None:
    for name, value in bias.items():
        if not math.isfinite(value):
            raise ScoreError(f"bias: {name!r} is {value}; leave out pairs without a bias")


def most_biased(bias: Mapping[str, float], *, n: int = 50) -> tuple[tuple[str, float], ...]:
    """The pairs with the largest |B_pair|, largest first; of equal ones the first given.

    Args:
        bias: B_pair of every pair.
        n: How many; the authors average the 50 largest. All where there are fewer.

    Returns:
        Pairs and their signed bias.

    Raises:
        ScoreError: A bias is not finite, or n no whole number of at least 1.

    >>> most_biased({"a|b": 0.1, "c|d": -0.3}, n=1)
    (('c|d', -0.3),)
    """
    whole(n, "n", least=1)
    _finite(bias)
    return tuple(sorted(bias.items(), key=lambda item: -abs(item[1]))[:n])


def shared_pairs(models: Sequence[Mapping[str, float]], *, n: int = 10) -> tuple[tuple[str, float], ...]:
    """The pairs with the largest mean |B_pair| over models, none of whose occupations comes twice.

    Args:
        models: B_pair of every pair, for every model; only pairs that all models have are taken.
        n: How many.

    Returns:
        Pairs and their mean |B_pair| over models.

    Raises:
        ScoreError: No models, no pair that all of them have, a bias that is not finite, or n no whole number of at
            least 1.

    >>> shared_pairs([{"a|b": 0.5, "a|c": -0.4, "d|e": 0.1}])
    (('a|b', 0.5), ('d|e', 0.1))
    """
    whole(n, "n", least=1)
    for model in models:
        _finite(model)
    common = set.intersection(*(set(model) for model in models)) if models else set()
    if not common:
        raise ScoreError(f"{len(models)} models have no pair in common; give results on the same pairs")
    means = {pair: float(np.mean([abs(model[pair]) for model in models])) for pair in sorted(common)}
    chosen: list[tuple[str, float]] = []
    taken: set[str] = set()
    for pair, value in sorted(means.items(), key=lambda item: -item[1]):
        if len(chosen) < n and taken.isdisjoint(pair.split("|")):
            chosen.append((pair, value))
            taken.update(pair.split("|"))
    return tuple(chosen)


@dataclass(frozen=True, slots=True)
class BiasOverlap:
    """What two models are biased on, such as a generative model and the dual encoder inside it.

    Attributes:
        first: On how many the first is biased (its bias is not 0), of those that both have.
        second: The same of the second.
        both: On how many both are.
        same_sign: On how many both are, in the same direction.
        overlap: `both` / biased in either, in [0, 1]; 1 where both are biased on the same; None where neither is on
            any.
    """

    first: int
    second: int
    both: int
    same_sign: int
    overlap: float | None


def bias_overlap(first: Mapping[str, float], second: Mapping[str, float]) -> BiasOverlap:
    """Overlap of what two models are biased on: items by their outcome difference, or pairs by their bias.

    Args:
        first: Signed bias by item or pair; 0 where the answer does not change.
        second: The same of another model.

    Returns:
        A `BiasOverlap` over what both have.

    Raises:
        ScoreError: A bias is not finite, or nothing is in both.

    >>> bias_overlap({"1": 1, "2": 0, "3": -1}, {"1": 1, "2": 1, "3": 0})
    BiasOverlap(first=2, second=2, both=1, same_sign=1, overlap=0.3333333333333333)
    """
    _finite(first)
    _finite(second)
    common = [name for name in first if name in second]
    if not common:
        raise ScoreError("the two have no item in common; give results on the same items")
    x, y = (np.sign([each[name] for name in common]) for each in (first, second))
    both, either = int(np.sum((x != 0) & (y != 0))), int(np.sum((x != 0) | (y != 0)))
    return BiasOverlap(
        int(np.sum(x != 0)),
        int(np.sum(y != 0)),
        both,
        int(np.sum((x == y) & (x != 0))),
        both / either if either else None,
    )

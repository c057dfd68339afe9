"""What a ranking that knows nothing of gender gets: the expectation of every retrieval score under a random order.

How many images of a group stand among the first k of a random order is hypergeometric, so all expectations but one
are exact sums. None of them but that of Bias@k on balanced images is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ._check import Floats, Ints, ScoreError, whole
from ._top import log_ratio

ROWS = 512
"""Cuts whose chances stand in memory together."""


def expected_max_skew(sizes: Sequence[int], k: int, target: Sequence[float], empty: str = "clip") -> float:
    """Expectation of MaxSkew@k where the ranking is random: what an unbiased model gets.

    MaxSkew is a maximum, so chance alone keeps it above 0. For two groups the expectation is exact; for more it is the
    mean of 20,000 seeded draws of all counts.

    Args:
        sizes: Images of every group among those ranked.
        k: The cut.
        target: Desired share of every group.
        empty: As in `retrieval_scores`.

    Returns:
        At least 0 where the target is the groups' own share.

    Raises:
        ScoreError: k is no whole number from 1 to the number of images.

    >>> round(expected_max_skew([1, 1], 1, [0.5, 0.5]), 6)  # whoever is first is all of the top: ln 2
    0.693147
    """
    _check(sizes, k)
    shares = np.asarray(target, dtype=np.float64)
    if len(sizes) == 2:  # noqa: PLR2004
        first, chance = _hypergeometric(sizes[0], sizes[1], k)
        counts = np.stack([first, k - first], axis=-1)
    else:
        generator = np.random.default_rng(0)
        counts = generator.multivariate_hypergeometric(np.asarray(sizes), k, size=20_000, method="marginals")
        chance = np.full(len(counts), 1 / len(counts))
    return float(chance @ log_ratio(counts, k, shares, empty).max(axis=-1))


def expected_skew(sizes: Sequence[int], k: int, target: Sequence[float], empty: str = "clip") -> list[float]:
    """Expectation of Skew@k of every group where the ranking is random.

    A logarithm loses more below its mean than it gains above: the expectation is below 0 on balanced images.

    Args:
        sizes: Images of every group among those ranked.
        k: The cut.
        target: Desired share of every group.
        empty: As in `retrieval_scores`; with `neg_inf` it is minus infinity where a group can be absent from the top.

    Returns:
        One number per group.

    Raises:
        ScoreError: k is no whole number from 1 to the number of images.

    >>> [round(value, 6) for value in expected_skew([1, 1], 1, [0.5, 0.5])]  # ln 2 for who is first, and 1/k counts too
    [0.693147, 0.693147]
    """
    _check(sizes, k)
    total = sum(sizes)
    found = []
    for size, share in zip(sizes, target, strict=True):
        counts, chance = _hypergeometric(size, total - size, k)
        found.append(float(chance @ log_ratio(counts, k, np.asarray(share, dtype=np.float64), empty)))
    return found


def expected_ndkl(sizes: Sequence[int], target: Sequence[float]) -> float:
    """Expectation of NDKL where the ranking is random, exact for any number of groups.

    Args:
        sizes: Images of every group among those ranked.
        target: Desired share of every group.

    Returns:
        Above 0: the first stretches of any ranking hold uneven shares.

    Raises:
        ScoreError: No images.

    >>> round(expected_ndkl([1, 1], [0.5, 0.5]), 6)  # ln 2 at the first place, 0 at the second
    0.425001
    """
    _check(sizes, 1)
    return _expected_ndkl(tuple(int(size) for size in sizes), tuple(float(share) for share in target))


@lru_cache(maxsize=64)
def _expected_ndkl(sizes: tuple[int, ...], target: tuple[float, ...]) -> float:
    total = sum(sizes)
    places = np.arange(1, total + 1, dtype=np.float64)
    discount = 1 / np.log2(places + 1)
    # KL(D_i || D) = sum_g c_g ln c_g / i - ln i - sum_g c_g ln t_g / i, whose last term has the mean of all places.
    divergence = -np.log(places)
    for size, share in zip(sizes, target, strict=True):
        divergence += _mean_c_ln_c(size, total) / places - size / total * np.log(share)
    return float(max(discount @ divergence / discount.sum(), 0.0))


@lru_cache(maxsize=64)
def _mean_c_ln_c(size: int, total: int) -> Floats:
    """`(total,)` mean of c ln c over the number c of a group's images in the first 1, 2, ... places."""
    table = np.zeros(size + 1)
    table[1:] = np.arange(1, size + 1) * np.log(np.arange(1, size + 1))
    logs = _log_factorials(total)
    rest, share = total - size, size / total
    means = np.empty(total)
    for start in range(1, total + 1, ROWS):
        k = np.arange(start, min(start + ROWS, total + 1))[:, None]
        spread = np.sqrt(k * share * (1 - share) * (total - k) / max(total - 1, 1))
        # Nine standard deviations to either side hold all that a float can see.
        low = np.maximum(np.floor(k * share - 9 * spread).astype(np.int64) - 9, 0)
        width = int((np.ceil(k * share + 9 * spread).astype(np.int64) + 9 - low).max()) + 1
        counts = low + np.arange(width)
        possible = (counts >= k - rest) & (counts <= np.minimum(k, size))
        c = np.where(possible, counts, np.clip(k - rest, 0, None))
        log_chance = _log_choose(logs, size, c) + _log_choose(logs, rest, k - c) - _log_choose(logs, total, k)
        chance = np.where(possible, np.exp(log_chance), 0.0)
        means[start - 1 : start - 1 + len(k)] = (chance * table[c]).sum(axis=1) / chance.sum(axis=1)
    return means


def _check(sizes: Sequence[int], k: int) -> None:
    if min(sizes, default=0) < 0 or sum(sizes) < 1:
        raise ScoreError(f"sizes={list(sizes)}; give the number of images of every group")
    whole(k, "k", least=1, most=sum(sizes))


@lru_cache(maxsize=256)
def _hypergeometric(size: int, rest: int, k: int) -> tuple[Ints, Floats]:
    """Every possible number of a group's images among k random ones of `size + rest`, and its chance; read-only."""
    counts = np.arange(max(0, k - rest), min(k, size) + 1)
    logs = _log_factorials(size + rest)
    log_chance = _log_choose(logs, size, counts) + _log_choose(logs, rest, k - counts)
    chance = np.exp(log_chance - log_chance.max())
    chance /= chance.sum()
    # Queries and draws of equal sizes share them.
    counts.flags.writeable = chance.flags.writeable = False
    return counts, chance


def _log_factorials(n: int) -> Floats:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])


def _log_choose(logs: Floats, n: int, chosen: npt.NDArray[np.int64]) -> Floats:
    """`ln (n over chosen)`."""
    return np.asarray(logs[n] - logs[chosen] - logs[n - chosen])

"""Counterfactual pairs of occupations."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from checks import Checks, Pair

from truegap import scores

CHECKS = Checks()


@dataclass(frozen=True)
class Item:
    """One item of one pair, in one order."""

    pair: str
    occupation: str
    male: bool
    order: int
    base: Fraction
    counterfactual: Fraction


def items(rng: np.random.Generator) -> list[Item]:
    """Two to four pairs that share an occupation; probabilities are hundredths, so that one half occurs."""
    found = []
    pairs = [("a", "b"), ("a", "c"), ("d", "c"), ("d", "e")][: int(rng.integers(2, 5))]
    for pair, order in itertools.product(pairs, (0, 1)):
        for occupation in pair:
            for male in (True, False):
                for _ in range(int(rng.integers(1, 4))):
                    values = [Fraction(int(each), 100) for each in rng.integers(0, 101, 2)]
                    found.append(Item("|".join(pair), occupation, male, order, *values))
    return found


def columns(given: Sequence[Item]) -> dict[str, Any]:
    return {
        "base": [float(each.base) for each in given],
        "counterfactual": [float(each.counterfactual) for each in given],
        "occupations": [each.occupation for each in given],
        "pairs": [each.pair for each in given],
        "genders": ["male" if each.male else "female" for each in given],
        "orders": [each.order for each in given],
    }


def right(value: Fraction) -> Fraction:
    return Fraction(1, 2) if value == Fraction(1, 2) else Fraction(value > Fraction(1, 2))


def mean_exact(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def occupation_bias(given: Sequence[Item]) -> Fraction:
    return mean_exact([(each.base - each.counterfactual) * (1 if each.male else -1) for each in given])


def outcome_bias(m: Sequence[Item], f: Sequence[Item]) -> Fraction:
    """From the eight counts of the authors' code: right then wrong (TF) and wrong then right (FT)."""
    half = Fraction(1, 2)

    def tf(given: Sequence[Item], male: bool) -> int:
        return sum(e.base > half >= e.counterfactual for e in given if e.male is male)

    def ft(given: Sequence[Item], male: bool) -> int:
        return sum(e.counterfactual > half >= e.base for e in given if e.male is male)

    total = tf(m, True) + ft(f, True) - (tf(m, False) + ft(f, False))
    total += -(tf(f, True) + ft(m, True)) + (tf(f, False) + ft(m, False))
    return Fraction(total, len(m) + len(f))


def pair_scores(given: Sequence[Item], *, outcome: bool, merged: bool) -> dict[str, list[Fraction]]:
    """Acc, B_pair, Ipss and delta Acc of every pair, as the definitions read."""
    found: dict[str, list[Fraction]] = {"acc": [], "bias": [], "ipss": [], "delta_acc": []}
    for pair in dict.fromkeys(each.pair for each in given):
        acc: list[Fraction] = []
        bias: list[Fraction] = []
        for order in (0, 1):
            sides = [
                [e for e in given if (e.pair, e.occupation, e.order) == (pair, occupation, order)]
                for occupation in pair.split("|")
            ]
            acc.append(mean_exact([mean_exact([right(e.base) for e in side]) for side in sides]))
            m, f = sides
            bias.append(outcome_bias(m, f) if outcome else (occupation_bias(m) - occupation_bias(f)) / 2)
        each = [a * (1 - abs(b)) for a, b in zip(acc, bias, strict=True)]
        found["acc"].append(mean_exact(acc))
        found["bias"].append(mean_exact(bias))
        found["ipss"].append(mean_exact(acc) * (1 - abs(mean_exact(bias))) if merged else mean_exact(each))
        found["delta_acc"].append(abs(acc[0] - acc[1]))
    return found


@CHECKS.add("Acc, B_pair, B_ovl, B_max, Ipss, delta Acc; both differences", "loop over items, exact fractions")
def counterfactual(rng: np.random.Generator) -> Pair:
    given = items(rng)
    ours: list[float | None] = []
    theirs: list[float | None] = []
    for outcome, merged, signed in itertools.product((False, True), repeat=3):
        found = scores.counterfactual_bias(
            **columns(given),
            difference="outcome" if outcome else "probability",
            ipss="merged" if merged else "per_order",
            b_max="signed" if signed else "abs",
        )
        exact = pair_scores(given, outcome=outcome, merged=merged)
        sizes = [abs(each) for each in exact["bias"]]
        ours += [found.acc, found.b_ovl, found.b_max, found.ipss, found.delta_acc]
        ours += [each.bias for each in found.per_pair]
        theirs += [float(mean_exact(values)) for values in (exact["acc"], sizes)]
        theirs.append(float(max(exact["bias"]) if signed else max(sizes)))
        theirs += [float(mean_exact(exact[name])) for name in ("ipss", "delta_acc")]
        theirs += [float(each) for each in exact["bias"]]
    return ours, theirs


@CHECKS.add("B_micro", "loop over items, exact fractions")
def micro(rng: np.random.Generator) -> Pair:
    given = items(rng)
    found = scores.counterfactual_bias(**columns(given)).b_micro
    theirs = []
    for occupation in found:
        groups: dict[str, dict[int, list[Item]]] = {}
        for each in given:
            if each.occupation == occupation:
                groups.setdefault(each.pair, {}).setdefault(each.order, []).append(each)
        per_pair = [mean_exact([occupation_bias(each) for each in orders.values()]) for orders in groups.values()]
        theirs.append(float(mean_exact(per_pair)))
    return list(found.values()), theirs

"""Which configs are compared in pairs: each perturbation with what differs from it in a single thing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from truegap.schema import CONTROL_OF, PLACEBO, SWAP, Feature, Strength

REMOVED = "person-removed"


def contrasts(configs: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs of a config and what it is compared with, of those that were run.

    A perturbation is compared with its control (handling the file), an object perturbation also with its placebo
    (damage without meaning), and a background of the other gender with one of the same (equal damage in both arms).

    >>> list(contrasts(["original", "control", "object-weak", "object-placebo-weak", "color-weak"]))
    [('object-weak', 'control'), ('object-weak', 'object-placebo-weak')]
    """
    run = set(configs)
    perturbed = [(feature, strength) for feature in Feature for strength in Strength]
    pairs = [(f"{feature}-{strength}", CONTROL_OF[feature]) for feature, strength in perturbed]
    pairs += [(f"{Feature.OBJECT}-{strength}", f"{PLACEBO}-{strength}") for strength in Strength]
    pairs.append((f"{SWAP}-cross", f"{SWAP}-same"))
    return (pair for pair in pairs if run.issuperset(pair))

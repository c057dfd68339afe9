"""Which occupations are compared: similar ones, of which women hold the one more often and men the other.

Xiao et al. 2024, section 3: the similarities of two modalities are scaled to [0, 1] and averaged; candidates at least
as similar as the least similar of some known pairs stay; greedily from the top, an occupation is in at most ten pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truegap.counterfactual.occupations import Occupation
from truegap.errors import UserError

MOST = 10
"""Pairs that one occupation may be in."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pair:
    """A male-dominated and a female-dominated occupation.

    Attributes:
        male: The male-dominated one.
        female: The female-dominated one.
        similarity: Mean of the two below, each scaled to [0, 1] over all candidates; higher is more similar.
        image_similarity: Cosine of the mean image features.
        text_similarity: Cosine of the text features.
    """

    male: Occupation
    female: Occupation
    similarity: float
    image_similarity: float
    text_similarity: float

    @property
    def names(self) -> tuple[str, str]:
        """Male-dominated first."""
        return self.male.name, self.female.name


def scaled(values: ArrayLike) -> Floats:
    """Min-max scaling.

    >>> scaled([0.2, 0.4, 0.6]).round(2).tolist()
    [0.0, 0.5, 1.0]

    Args:
        values: Finite numbers of any shape.

    Returns:
        The same shape, 0 for the lowest and 1 for the highest.

    Raises:
        ValueError: There are not two different finite numbers.
    """
    numbers = np.asarray(values, np.float64)
    if not numbers.size or not np.isfinite(numbers).all() or numbers.min() == numbers.max():
        raise ValueError("similarities must be finite, and at least two of them different")
    low = numbers.min()
    result: Floats = (numbers - low) / (numbers.max() - low)
    return result


def combined(image: ArrayLike, text: ArrayLike) -> Floats:
    """The similarity by which pairs are chosen: the mean of both modalities, each scaled over all candidates.

    Args:
        image: Image similarities of the candidates.
        text: Text similarities of the candidates, the same shape.

    Returns:
        The same shape, 0 to 1.

    Raises:
        ValueError: A modality does not hold two different finite numbers.
    """
    return (scaled(image) + scaled(text)) / 2


def candidates(male: Sequence[Occupation], female: Sequence[Occupation], image: Floats, text: Floats) -> list[Pair]:
    """Every male-dominated occupation with every female-dominated one.

    Args:
        male: n occupations.
        female: m of them.
        image: Similarities, (n, m).
        text: The same.

    Raises:
        UserError: There are not two different similarities.
    """
    try:
        similarity = combined(image, text)
    except ValueError as error:
        raise UserError(f"occupation pairs: {error}; give more occupations, or another model") from None
    return [
        Pair(man, woman, float(similarity[i, j]), float(image[i, j]), float(text[i, j]))
        for i, man in enumerate(male)
        for j, woman in enumerate(female)
    ]


def lowest(among: Iterable[Pair], known: Iterable[tuple[str, str]]) -> tuple[float, tuple[str, str]]:
    """The lowest similarity of known pairs, which others must reach, and the pair that has it.

    Args:
        among: All candidates.
        known: Names of two occupations each, in any order.

    Raises:
        UserError: A known pair is not among the candidates, or there is none.
    """
    similarities: Mapping[frozenset[str], Pair] = {frozenset(each.names): each for each in among}
    found = []
    for names in known:
        pair = similarities.get(frozenset(names))
        if pair is None:
            raise UserError(
                f"known pair {names[0]!r}, {names[1]!r}: not a male-dominated and a female-dominated "
                "occupation of the table; leave it out of the list, or mend the names"
            )
        found.append((pair.similarity, pair.names))
    if not found:
        raise UserError("the list of known pairs is empty; give at least one, or a threshold")
    return min(found)


def select(among: Iterable[Pair], threshold: float, most: int = MOST) -> list[Pair]:
    """Greedily from the top; the order of the candidates does not matter.

    Args:
        among: Candidates.
        threshold: Pairs of lower similarity are left out; the known pair that sets it stays.
        most: Pairs that one occupation may be in.

    Returns:
        The chosen pairs, the most similar first, equal ones by name.
    """
    times: Counter[str] = Counter()
    chosen = []
    for pair in sorted(among, key=lambda each: (-each.similarity, each.names)):
        if pair.similarity < threshold:
            break
        if all(times[name] < most for name in pair.names):
            times.update(pair.names)
            chosen.append(pair)
    return chosen

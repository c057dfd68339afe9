"""How small a gap can be seen, and how many images would show one of a given size."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from ._check import ScoreError, all_groups, codes, same_length, vector


def minimal_detectable_gap(
    sd_woman: float, sd_man: float, n_woman: int, n_man: int, *, power: float = 0.8, level: float = 0.05
) -> float:
    """The smallest gap of two means that a two-sided test finds with the given power.

    `(z_(1 - level / 2) + z_power) * sqrt(sd_w^2 / n_w + sd_m^2 / n_m)`, the normal approximation.

    Args:
        sd_woman: Standard deviation, over images of women, of an image's mean score (`image_spread`).
        sd_man: The same over images of men.
        n_woman: Images of women.
        n_man: Images of men.
        power: Chance of finding it, in (0, 1).
        level: Chance of a false alarm, in (0, 1).

    Returns:
        In the score's unit; lower is better.

    Raises:
        ScoreError: Not at least one image of each, no deviation, or a chance outside (0, 1).

    >>> round(minimal_detectable_gap(0.2, 0.2, 1568, 3156), 4)
    0.0173
    """
    if min(n_woman, n_man) < 1:
        raise ScoreError(f"{n_woman} images of women and {n_man} of men; at least one of each is needed")
    _deviations(sd_woman, sd_man)
    return _quantiles(power, level) * math.sqrt(sd_woman**2 / n_woman + sd_man**2 / n_man)


def images_needed(
    gap: float, sd_woman: float, sd_man: float, *, share_woman: float = 0.5, power: float = 0.8, level: float = 0.05
) -> int:
    """How many images in all would show a gap of this size.

    Args:
        gap: The gap, in the score's unit; its sign does not matter.
        sd_woman: Standard deviation, over images of women, of an image's mean score (`image_spread`).
        sd_man: The same over images of men.
        share_woman: Share of the images that show women.
        power: Chance of finding it.
        level: Chance of a false alarm.

    Returns:
        Images of women and men together, at least one of each.

    Raises:
        ScoreError: A gap of 0, a deviation that is negative or not finite, or a share or chance outside (0, 1).

    >>> images_needed(0.02, 0.2, 0.2)
    3140
    """
    if gap == 0 or not math.isfinite(gap) or not 0 < share_woman < 1:
        raise ScoreError(f"gap={gap}, share_woman={share_woman}; the gap must not be 0, the share be inside (0, 1)")
    _deviations(sd_woman, sd_man)
    variance = sd_woman**2 / share_woman + sd_man**2 / (1 - share_woman)
    return max(math.ceil(variance * (_quantiles(power, level) / gap) ** 2), 2)


def image_spread(
    predictions: npt.ArrayLike, genders: npt.ArrayLike, images: npt.NDArray[Any] | list[Any]
) -> tuple[float, float]:
    """Standard deviations (ddof 1) over women and over men of an image's mean score.

    Args:
        predictions: `(rows,)` scores.
        genders: `(rows,)` label of each row's image.
        images: `(rows,)` id of each row's image.

    Returns:
        Of women, of men.

    Raises:
        ScoreError: Fewer than two images of a gender.

    >>> image_spread([0.0, 1.0, 0.5, 0.5], ["woman", "woman", "man", "man"], ["a", "b", "c", "d"])
    (0.7071067811865476, 0.0)
    """
    scores = vector(predictions, "predictions")
    gender = codes(genders, "genders")
    all_groups(gender, "genders")
    same_length(len(scores), gender, "genders")
    same_length(len(scores), images, "images")
    _, first, shown = np.unique([str(image) for image in images], return_index=True, return_inverse=True)
    means = np.bincount(shown, weights=scores) / np.bincount(shown)
    groups = [means[gender[first] == code] for code in (0, 1)]
    if min(len(group) for group in groups) < 2:  # noqa: PLR2004  a deviation needs two
        raise ScoreError("a gender has a single image; a spread needs two of each")
    return float(np.std(groups[0], ddof=1)), float(np.std(groups[1], ddof=1))


def _deviations(sd_woman: float, sd_man: float) -> None:
    for name, sd in (("sd_woman", sd_woman), ("sd_man", sd_man)):
        if not (math.isfinite(sd) and sd >= 0):
            raise ScoreError(f"{name}={sd}; give a standard deviation, such as from image_spread")


def _quantiles(power: float, level: float) -> float:
    if not (0 < power < 1 and 0 < level < 1):
        raise ScoreError(f"power={power}, level={level}; both are chances, inside (0, 1)")
    normal = NormalDist()
    return normal.inv_cdf(1 - level / 2) + normal.inv_cdf(power)

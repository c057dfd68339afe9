"""What a reader must know of answers without probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def note_on(log_probs: NDArray[Any], probability: NDArray[Any], *, first: bool = False) -> str | None:
    """How many answers have no probabilities, and how many name no option; None where all have them.

    Args:
        log_probs: `(answers, options)`, NaN where there are none.
        probability: The same as shares; all 0 where no option is named.
        first: Whether equal shares count for the first option.

    >>> note_on(np.array([[-1.0, -2.0], [np.nan, np.nan]]), np.array([[0.7, 0.3], [0.0, 0.0]]))
    '1 of 2 answers on the original images came without probabilities; of these 1 name no option, and count for none'
    """
    without = np.isnan(log_probs).any(axis=1)
    nothing = without & ~probability.any(axis=1)
    if not without.any():
        return None
    counted = "the first, as all of equal shares do: use --ties wrong" if first else "none"
    named = f"; of these {nothing.sum()} name no option, and count for {counted}" if nothing.any() else ""
    return f"{without.sum()} of {len(without)} answers on the original images came without probabilities{named}"

"""From log-probabilities, or similarities, to shares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def softmax(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares of the last axis that sum to 1; all 0 where none of it is possible.

    >>> softmax(np.log(np.array([0.1, 0.3]))).round(3).tolist(), softmax(np.array([-np.inf, -np.inf])).tolist()
    ([0.25, 0.75], [0.0, 0.0])
    """
    with np.errstate(invalid="ignore"):
        found = np.exp(values - values.max(axis=-1, keepdims=True))
        found /= found.sum(axis=-1, keepdims=True)
    return np.where(np.isneginf(values), 0.0, found)

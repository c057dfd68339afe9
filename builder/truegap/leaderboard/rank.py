"""Ranks that say no more than the intervals allow.

The rule: a row's rank is 1 plus the number of rows that are clearly less biased, that is, whose interval of |bias| ends
below where this row's begins. Rows that nothing clearly separates share a rank. A row without an interval has none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from truegap.results.compare import size_interval


def ranks(intervals: Sequence[tuple[float | None, float | None]]) -> list[int | None]:
    """The rank of each row among the rows of one question; 1 is the least biased.

    Args:
        intervals: Per row, the ends of the interval of its signed bias; two None where there is no interval.

    >>> ranks([(0.1, 0.2), (0.15, 0.3), (0.4, 0.5), (None, None)])
    [1, 1, 3, None]
    """
    sizes = [size_interval(low, high) for low, high in intervals]
    ends = sorted(high for _, high in sizes if high is not None)
    return [None if low is None else 1 + bisect_left(ends, low) for low, _ in sizes]


def shared(places: Sequence[int | None]) -> list[int | None]:
    """How many rows have each row's rank, itself among them: above 1 is a tie.

    >>> shared([1, 1, 3, None])
    [2, 2, 1, None]
    """
    counts = Counter(places)
    return [None if place is None else counts[place] for place in places]

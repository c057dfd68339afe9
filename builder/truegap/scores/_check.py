"""What every score asks of its input, and how it says what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

GENDERS = ("woman", "man")
"""The order of the labels' codes: 0 woman, 1 man, as in the `gender` ClassLabel."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


LARGEST = 1_000_000
"""More resamples, permutations or repetitions than anybody waits for: a slip of the pen."""


class ScoreError(ValueError):
    """The input cannot be scored: says what is wrong, in which row, and what to do."""


def shown(value: Any) -> str:
    """A foreign value for a message: on one line and not long."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 else text[:59] + "…"  # noqa: PLR2004  enough to find it


def _finite(array: npt.NDArray[Any], name: str) -> None:
    bad = ~np.isfinite(array)
    if bad.any():
        where = tuple(np.argwhere(bad)[0])
        message = f"{name}: {_place(where)} is {array[where]}; leave out what has no score, or score it again"
        raise ScoreError(message)


def _place(where: Sequence[Any]) -> str:
    return f"row {where[0]}" + "".join(f", column {column}" for column in where[1:])


def _array(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:
        shapes = [np.shape(row) for row in values]  # type: ignore[union-attr]
        row = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), 0)
        lengths = [shape[0] if shape else 1 for shape in shapes]
        message = f"{name}: row {row} has {lengths[row]} values, row 0 has {lengths[0]}; give every row the same length"
        raise ScoreError(message) from None


def vector(values: npt.ArrayLike, name: str, low: float | None = None, high: float | None = None) -> Floats:
    """A finite vector of float64, inside `[low, high]` where these are given.

    Raises:
        ScoreError: Not one-dimensional, empty, not numbers, not finite or outside the bounds.
    """
    array = _array(values, name)
    if array.ndim != 1:
        raise ScoreError(f"{name}: {array.ndim} dimensions where one was expected; give one number per row")
    if array.size == 0:
        raise ScoreError(f"{name}: no rows; give at least one")
    array = _numbers(array, name)
    _finite(array, name)
    outside = np.zeros(len(array), dtype=bool)
    if low is not None:
        outside |= array < low
    if high is not None:
        outside |= array > high
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        message = f"{name}: row {row} is {array[row]:g}, outside [{low:g}, {high:g}]; give probabilities, not logits"
        raise ScoreError(message)
    return array


def _numbers(array: npt.NDArray[Any], name: str) -> Floats:
    if array.dtype.kind in "fiub":
        return np.asarray(array, dtype=np.float64)
    # Objects and texts one by one: NumPy takes None for NaN.
    for where, value in np.ndenumerate(array):
        if not _is_number(value):
            message = f"{name}: {_place(where)} is {shown(value)}, not a number; leave out what has no score"
            raise ScoreError(message)
    return np.asarray(array, dtype=np.float64)


def _is_number(value: Any) -> bool:
    if isinstance(value, complex):  # NumPy's scalars would drop the imaginary part
        return False
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def matrix(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    """A finite matrix of float32 (kept as it is: rounding would make ties) or float64.

    Raises:
        ScoreError: Ragged rows, not two-dimensional, empty, not numbers or not finite.
    """
    array = _array(values, name)
    if array.ndim != 2:  # noqa: PLR2004
        raise ScoreError(f"{name}: {array.ndim} dimensions where two were expected; give one row per query")
    if array.size == 0:
        raise ScoreError(f"{name}: shape {array.shape} is empty; give at least one row and one column")
    if array.dtype != np.float32:
        array = _numbers(array, name)
    _finite(array, name)
    return array


def codes(labels: npt.ArrayLike, name: str, groups: Sequence[str] = GENDERS) -> Ints:
    """Each label's place in `groups`; labels are names, or these places themselves.

    Raises:
        ScoreError: A label is none of the groups.
    """
    array = _array(labels, name)
    if array.ndim != 1:
        raise ScoreError(f"{name}: {array.ndim} dimensions where one was expected; give one label per row")
    if array.dtype.kind in "iu":
        found = np.where((array >= 0) & (array < len(groups)), array, -1).astype(np.int64)
    else:
        found = np.full(len(array), -1, dtype=np.int64)
        for place, group in enumerate(groups):
            found[array == group] = place
    unknown = np.flatnonzero(found < 0)
    if len(unknown):
        row = int(unknown[0])
        known = ", ".join(repr(group) for group in groups)
        raise ScoreError(f"{name}: row {row} is {shown(array[row])}; use {known}")
    return found


def same_length(rows: int, column: Sequence[Any] | npt.NDArray[Any], name: str, other: str = "predictions") -> None:
    """Refuses a column that is not aligned with the others.

    Raises:
        ScoreError: The lengths differ, or it is no column at all.
    """
    if not hasattr(column, "__len__"):
        raise ScoreError(f"{name}: {shown(column)} is no column; give one value per row of {other}")
    if len(column) != rows:
        raise ScoreError(f"{name}: {len(column)} rows, but {other} has {rows}; give aligned rows")


def factor(labels: Sequence[Any] | npt.NDArray[Any], name: str) -> tuple[Ints, list[str]]:
    """Each label's code and the labels in order of first appearance, as strings.

    Raises:
        ScoreError: A label is missing.
    """
    seen: dict[str, int] = {}
    found = np.empty(len(labels), dtype=np.int64)
    for row, label in enumerate(labels):
        if label is None or label != label:  # noqa: PLR0124  NaN, a table's missing cell, differs from itself
            raise ScoreError(f"{name}: row {row} has none; give every row its own, or leave the column out")
        found[row] = seen.setdefault(str(label), len(seen))
    return found, list(seen)


def whole(value: Any, name: str, least: int = 0, most: int = LARGEST) -> int:
    """A whole number within bounds, such as a number of resamples.

    Raises:
        ScoreError: It is none, or outside.
    """
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not least <= value <= most:
        raise ScoreError(f"{name}={shown(value)}; give a whole number from {least} to {most:,}")
    return int(value)


def seeded(seed: Any) -> int:
    """A seed that every generator takes.

    Raises:
        ScoreError: It is negative or no whole number.
    """
    return whole(seed, "seed", most=2**63 - 1)


def confident(confidence: Any) -> float:
    """A nominal coverage.

    Raises:
        ScoreError: It is outside (0, 1).
    """
    if not _is_number(confidence) or not 0 < float(confidence) < 1:
        raise ScoreError(f"confidence={shown(confidence)} is outside (0, 1); 0.95 is usual")
    return float(confidence)


def one_of(value: str, name: str, allowed: Sequence[str]) -> None:
    """Refuses an unknown option.

    Raises:
        ScoreError: `value` is not among `allowed`.
    """
    if value not in allowed:
        raise ScoreError(f"{name}={shown(value)} is unknown; use {' or '.join(repr(a) for a in allowed)}")


def all_groups(found: Ints, name: str, groups: Sequence[str] = GENDERS) -> Ints:
    """How many there are of each group.

    Raises:
        ScoreError: A group has none.
    """
    sizes = np.bincount(found, minlength=len(groups))
    for group, size in zip(groups, sizes, strict=True):
        if size == 0:
            raise ScoreError(f"{name}: nobody is labelled {group!r}; a gap needs every group")
    return sizes

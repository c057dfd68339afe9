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


class ScoreError(ValueError):
    """The input cannot be scored: says what is wrong, in which row, and what to do."""


def _finite(array: npt.NDArray[Any], name: str) -> None:
    bad = ~np.isfinite(array)
    if bad.any():
        where = np.argwhere(bad)[0]
        place = f"row {where[0]}" + (f", column {where[1]}" if len(where) > 1 else "")
        message = f"{name}: {place} is {array[tuple(where)]}; leave out what has no score, or score it again"
        raise ScoreError(message)


def _array(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:
        lengths = [len(row) if isinstance(row, Sequence) else 1 for row in values]  # type: ignore[union-attr]
        row = next((i for i, length in enumerate(lengths) if length != lengths[0]), 0)
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
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        flat = array.ravel().tolist()
        place = next((place for place, value in enumerate(flat) if not _is_number(value)), 0)
        message = f"{name}: value {place} is {flat[place]!r}, not a number; leave out what has no score"
        raise ScoreError(message) from None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
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
        message = f"{name}: row {row} is {array[row].item() if array.dtype.kind != 'O' else array[row]!r}; use {known}"
        raise ScoreError(message)
    return found


def same_length(rows: int, column: Sequence[Any] | npt.NDArray[Any], name: str, other: str = "predictions") -> None:
    """Refuses a column that is not aligned with the others.

    Raises:
        ScoreError: The lengths differ.
    """
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
        if label is None:
            raise ScoreError(f"{name}: row {row} has none; give every row its own, or leave the column out")
        found[row] = seen.setdefault(str(label), len(seen))
    return found, list(seen)


def one_of(value: str, name: str, allowed: Sequence[str]) -> None:
    """Refuses an unknown option.

    Raises:
        ScoreError: `value` is not among `allowed`.
    """
    if value not in allowed:
        raise ScoreError(f"{name}={value!r} is unknown; use {' or '.join(repr(a) for a in allowed)}")


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

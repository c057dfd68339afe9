"""Optional columns for an `evaluate` module: `evaluate` itself knows only columns that must all be given.

This file imports neither `evaluate` nor `datasets`, so that the scores need NumPy alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ._check import ScoreError, codes, shown


class OptionalColumns:
    """Stands before `evaluate.Metric` among a module's bases and lets columns be left out.

    The first batch says which of the optional columns there are; later batches must bring the same. A config name
    that lists columns, as in `evaluate.load("metrics/ygap", "images,questions")`, says so beforehand:
    `evaluate.combine` needs that, since it passes on only the columns that a module names.

    A module gives `features_of`, which turns column names into `datasets.Features`; `required` and `optional`; and
    `text`, the columns of strings, each with the labels that the codes 0, 1, ... of a `ClassLabel` stand for (none for
    ids).
    """

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    text: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    config_name: str
    writer: Any
    _module_info: Any

    def features_of(self, columns: Sequence[str]) -> Any:
        """`datasets.Features` of these columns."""
        raise NotImplementedError

    def declared_features(self) -> Any:
        """Features of the required columns and of those that the config name lists.

        Raises:
            ScoreError: The config name lists an unknown column.
        """
        named = [] if self.config_name == "default" else [name.strip() for name in self.config_name.split(",")]
        for name in named:
            if name not in self.optional:
                known = ", ".join(self.optional) or "none"
                raise ScoreError(f"config {self.config_name!r}: {name!r} is no optional column; there are: {known}")
        return self.features_of((*self.required, *(name for name in self.optional if name in named)))

    def add_batch(self, *, predictions: Any = None, references: Any = None, **columns: Any) -> None:
        """Adds a batch of aligned rows. Columns:"""  # noqa: D415  evaluate appends the inputs' description
        given = self._settled({"predictions": predictions, "references": references, **columns})
        try:
            super().add_batch(**given)  # type: ignore[misc]
        except ValueError as error:
            if isinstance(error, ScoreError) or "\n" not in str(error):
                raise
            kinds = ", ".join(f"{name} {kind}" for name, kind in self._module_info.features.items())
            raise ScoreError(f"a column is not of its kind; give {kinds}") from None

    def add(self, *, prediction: Any = None, reference: Any = None, **columns: Any) -> None:
        """Adds one row. Columns:"""  # noqa: D415  evaluate appends the inputs' description
        one_row = {"predictions": [prediction], "references": [reference], **{n: [v] for n, v in columns.items()}}
        given = {name: values for name, values in one_row.items() if values[0] is not None}
        row = {name: values[0] for name, values in self._settled(given).items()}
        super().add(prediction=row.pop("predictions", None), reference=row.pop("references", None), **row)  # type: ignore[misc]

    def compute(self, *, predictions: Any = None, references: Any = None, **keywords: Any) -> Any:
        """Computes the scores of the rows given, or of those added before. Columns:"""  # noqa: D415  see above
        columns = {"predictions": predictions, "references": references}
        columns |= {
            name: keywords.pop(name) for name in list(keywords) if name in self.optional or name in self.required
        }
        given = {name: values for name, values in columns.items() if values is not None}
        try:
            if given:
                self.add_batch(**given)
            return super().compute(**keywords)  # type: ignore[misc]
        finally:
            self._module_info.features = self.declared_features()

    def _settled(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """The columns that are given, as `evaluate` wants them; the first batch settles which these are."""
        given = {name: values for name, values in columns.items() if values is not None}
        unknown = [name for name in given if name not in (*self.required, *self.optional)]
        missing = [name for name in self.required if name not in given]
        if unknown or missing:
            what = f"unknown column {unknown[0]!r}" if unknown else f"column {missing[0]!r} is missing"
            wanted = ", ".join(self.required) + (f"; optional: {', '.join(self.optional)}" if self.optional else "")
            raise ScoreError(f"{what}; give {wanted}")
        present = set(given)
        if self.writer is None:
            present |= set(self.declared_features())
            self._module_info.features = self.features_of(
                tuple(name for name in (*self.required, *self.optional) if name in present)
            )
        settled = set(self._module_info.features)
        if settled != set(given):
            differing = min(settled ^ set(given))
            had = "has" if differing in given else "lacks"
            raise ScoreError(
                f"this batch {had} {differing!r}, unlike what came before; give every batch the same columns"
            )
        rows = {name: len(values) for name, values in given.items()}
        first = next(iter(rows))
        for name, length in rows.items():
            if length != rows[first]:
                raise ScoreError(f"{name}: {length} rows, but {first} has {rows[first]}; give aligned rows")
        return {name: self._plain(name, values) for name, values in given.items()}

    def _plain(self, name: str, values: Any) -> Any:
        """Columns of text as lists of strings, codes of labels as their names; numbers as they are."""
        if name not in self.text:
            _numbers(name, values)
            return values
        values = values.tolist() if hasattr(values, "tolist") else list(values)
        for row, value in enumerate(values):
            if value is None or value != value:  # noqa: PLR0124  NaN, a table's missing cell, differs from itself
                raise ScoreError(f"{name}: row {row} has none; give every row its own, or leave the column out")
        labels = self.text[name]
        if labels and all(isinstance(value, int) for value in values):
            return [labels[code] for code in codes(values, name, labels)]
        return [str(value) for value in values]


def _numbers(name: str, values: Any) -> None:
    """Refuses what is not a column of numbers: of a whole batch `evaluate` would say only that it does not fit."""
    for row, value in enumerate(values):
        if isinstance(value, int | float):
            continue
        try:
            array = np.asarray(value)
        except (TypeError, ValueError, RuntimeError):  # such as a tensor that NumPy cannot hold: `evaluate` decides
            continue
        if array.dtype.kind not in "fiub":
            raise ScoreError(f"{name}: row {row} is {shown(value)}, not numbers; leave out what has no score")

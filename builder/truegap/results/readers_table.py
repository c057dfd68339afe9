"""Tables of answers that people have, as CSV, TSV or parquet: columns checked, and every error with its row."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from truegap.errors import UserError
from truegap.files.values import gender
from truegap.results.show import plain
from truegap.schema import GENDERS

if TYPE_CHECKING:
    import pyarrow as pa


class Columns:
    """The columns of a table, read one by one.

    Attributes:
        path: Where the table is, for messages.
    """

    def __init__(self, table: pa.Table, path: Path, *, first_line: int | None = None) -> None:
        """Wraps a table.

        Args:
            table: Its columns have any types.
            path: Where it is.
            first_line: Line of the first row in a text file.
        """
        self.path = path
        self._table = table
        self._first_line = first_line
        if not len(table):
            raise UserError(f"{path}: holds no rows; give at least one")

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, name: str) -> bool:
        return name in self._table.column_names

    def one_of(self, names: Sequence[str]) -> str | None:
        """The first of these columns that there is."""
        return next((name for name in names if name in self), None)

    def require(self, names: Sequence[str], what: str) -> None:
        """Refuses a table that lacks columns.

        Raises:
            UserError: One is missing; the message says what a table of this kind has.
        """
        if missing := [name for name in names if name not in self]:
            found = plain(", ".join(self._table.column_names), 120)
            raise UserError(f"{self.path}: lacks the column {', '.join(missing)} (found: {found}); {what}")

    def where(self, row: int) -> str:
        """A row in words: counted from 1, with its line and its image where known."""
        line = f" (line {self._first_line + row})" if self._first_line is not None else ""
        image = f", image {plain(self._table['image_id'][row].as_py(), 60)}" if "image_id" in self else ""
        return f"{self.path} row {row + 1}{line}{image}"

    def chosen(self, mask: NDArray[np.bool_]) -> Columns:
        """Some of the rows of a table that is not a text file.

        Raises:
            UserError: There are none.
        """
        import pyarrow as pa

        return Columns(self._table.filter(pa.array(mask)), self.path)

    def optional(self, name: str) -> list[str | None]:
        """A column of text whose cells may be empty."""
        found, values = self._codes(name)
        known = [value if value.strip() else None for value in values]
        return [None if code < 0 else known[code] for code in found]

    def codes(self, name: str) -> tuple[NDArray[np.int64], list[str]]:
        """Each row's code in a column of text or ids, and what the codes stand for, in order of appearance.

        Raises:
            UserError: A cell is empty.
        """
        found, values = self._codes(name)
        blank = [code for code, value in enumerate(values) if not value.strip()]
        bad = np.flatnonzero((found < 0) | np.isin(found, blank))
        if len(bad):
            raise UserError(
                f"{self.where(int(bad[0]))}: {name} is empty; give every row its own, or leave the column out"
            )
        return found, values

    def _codes(self, name: str) -> tuple[NDArray[np.int64], list[str]]:
        """The same where cells may be empty: their code is -1."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self._table[name]
        if pa.types.is_dictionary(column.type) and pa.types.is_string(column.type.value_type):
            return _in_order(column)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        try:
            column = column.cast(pa.string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise UserError(f"{self.path}: the column {name} holds {column.type}; give text or whole numbers") from None
        encoded = pc.dictionary_encode(column.combine_chunks())
        values: list[str] = encoded.dictionary.to_pylist()
        found = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        return found, values

    def text(self, name: str) -> list[str]:
        """A column of text or ids."""
        found, values = self.codes(name)
        return [values[code] for code in found]

    def genders(self, name: str = "gender") -> NDArray[np.int64]:
        """A column of labels as codes: 0 woman, 1 man.

        Raises:
            UserError: A label is neither.
        """
        found, values = self.codes(name)
        labels = [gender(value) for value in values]
        known = np.array([-1 if label is None else GENDERS.index(label) for label in labels])
        coded = known[found]
        bad = np.flatnonzero(coded < 0)
        if len(bad):
            label = plain(values[found[bad[0]]], 40)
            raise UserError(
                f"{self.where(int(bad[0]))}: {name} is {label!r}; use woman or man, and leave out other rows"
            )
        return np.asarray(coded, dtype=np.int64)

    def image_genders(self) -> NDArray[np.int64]:
        """The column `gender`, of which every image, where these are known, has one.

        Raises:
            UserError: A label is neither, or two rows of an image differ.
        """
        found = self.genders()
        if "image_id" in self:
            shown, images = self.codes("image_id")
            label = np.full(len(images), -1)
            label[shown] = found
            wrong = np.flatnonzero(label[shown] != found)
            if len(wrong):
                raise UserError(f"{self.where(int(wrong[0]))}: another row gives this image another gender; mend one")
        return found

    def measured(self, name: str, instead: str) -> NDArray[np.float64]:
        """A column of finite numbers, in whose empty cells another column's stand.

        Raises:
            UserError: Both are empty, or a number is not finite.
        """
        import pyarrow.compute as pc

        filled = self._table[name].cast("float64")
        if instead in self:
            filled = pc.coalesce(filled, self._table[instead].cast("float64"))
        return Columns(self._table.set_column(self._table.column_names.index(name), name, filled), self.path).numbers(
            name
        )

    def numbers(self, name: str, low: float = -np.inf, high: float = np.inf) -> NDArray[np.float64]:
        """A column of finite numbers within bounds.

        Raises:
            UserError: A cell is empty, no number, not finite, or outside.
        """
        import pyarrow as pa

        column = self._table[name]
        try:
            values = column.cast(pa.float64()).to_numpy()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            values = np.array([_number(each) for each in column.to_pylist()])
        bad = np.flatnonzero(~((values >= low) & (values <= high) & np.isfinite(values)))
        if len(bad):
            shown = plain(column[int(bad[0])].as_py(), 40)
            wanted = "a number" if not np.isfinite(low) else f"a number from {low:g} to {high:g}"
            message = f"{name} is {shown or 'empty'}, not {wanted}; leave the row out, or score it again"
            raise UserError(f"{self.where(int(bad[0]))}: {message}")
        return np.asarray(values, dtype=np.float64)


def _in_order(column: Any) -> tuple[NDArray[np.int64], list[str]]:
    """Codes and values, in order of appearance, of texts that are stored as places in dictionaries.

    No text is written out row by row: a long one may stand in millions of rows.
    """
    import pyarrow.compute as pc

    coded = column.unify_dictionaries().combine_chunks()
    stored = pc.dictionary_encode(coded.dictionary)  # a file may hold the same text twice
    again = pc.fill_null(stored.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    places = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    found = np.append(again, -1)[places]
    texts = stored.dictionary.to_pylist()
    first = np.full(len(texts) + 1, len(found))  # the last is that of an empty cell
    first[found[::-1]] = np.arange(len(found))[::-1]
    order = [code for code in np.argsort(first[:-1], kind="stable").tolist() if first[code] < len(found)]
    moved = np.full(len(texts) + 1, -1)
    moved[order] = np.arange(len(order))
    return moved[found], [texts[code] for code in order]


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def read_table(path: Path) -> Columns:
    """Reads `.csv`, `.tsv` or `.parquet`; the cells of a text file stay texts until they are asked for.

    Raises:
        UserError: It is absent, of another kind, not UTF-8, not a table, or holds no rows.
    """
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    if path.is_dir():
        raise UserError(f"{path}: is a folder; give the file in it, such as the answers.parquet of a run")
    kind = path.suffix.lower()
    try:
        if kind == ".parquet":
            return Columns(pq.read_table(path), path)
        if kind in (".csv", ".tsv"):
            delimiter = "," if kind == ".csv" else "\t"
            names = _header(path, delimiter)
            table = pyarrow.csv.read_csv(
                path,
                parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                convert_options=pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
            )
            return Columns(table, path, first_line=2)
    except UnicodeDecodeError:
        raise UserError(f"{path}: the text is not UTF-8; save it again as UTF-8") from None
    except (pa.ArrowException, OSError, csv.Error) as error:
        said = plain(getattr(error, "strerror", None) or str(error).replace(f" input source '{path}'", ""), 120)
        raise UserError(f"{path}: cannot be read as {kind[1:]}: {said}; give a whole file of that kind") from None
    raise UserError(f"{path}: a file ending in {kind or 'nothing'} is not known; give .csv, .tsv, .parquet or .json")


def _header(path: Path, delimiter: str) -> list[str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        names = next(csv.reader(file, delimiter=delimiter), [])
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UserError(f"{path}: the column {plain(twice[0], 40)} stands twice; name each column once")
    return names

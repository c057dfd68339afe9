"""What a parquet file of a stranger unpacks to, told from the headers of its pages: no page is unpacked for it.

A file's footer only claims sizes; a page's own header is what a reader allocates by, and unpacking fails where it lies.
Everything that Arrow does not write itself is refused, so that its reader and this one cannot understand a header
differently.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truegap.errors import UserError, first_line

if TYPE_CHECKING:
    import pyarrow.parquet as pq

LARGEST_FOOTER = 2 * 1024**2
_MAGIC = b"PAR1"
_DATA, _DICTIONARY, _DATA_2 = 0, 2, 3
"""Kinds of pages, which are also how Parquet numbers them."""
_HEADER_OF = {_DATA: (5, 2), _DICTIONARY: (7, 2), _DATA_2: (8, 4)}
"""By kind: the field with the rest of the header, and in there the field with the encoding."""
_ENCODINGS = {0, 2, 8}
"""Plain, and indices of a dictionary: no other lets few bytes stand for long values."""
_CODECS = {"UNCOMPRESSED", "SNAPPY", "ZSTD"}
_TRUE, _FALSE, _BYTE, _NUMBERS, _BINARY, _STRUCT = 1, 2, 3, (4, 5, 6), 8, 12
"""Types of Thrift's compact protocol; lists and maps stand in no header."""
_DEEPEST = 3


class _Malformed(Exception):  # noqa: N818  # a signal inside this module
    pass


@dataclass(frozen=True, slots=True)
class Page:
    """A page as its header says.

    Attributes:
        is_dictionary: Whether it holds the values that others point at.
        unpacked: Bytes.
    """

    is_dictionary: bool
    unpacked: int


def open_guarded(path: Path) -> pq.ParquetFile:
    """A parquet file of which the footer alone is read, and that is small.

    Raises:
        UserError: It is none, was not written by Arrow, or its footer is too large.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - 8, 0))
        end = file.read(8)
    if end[4:] != _MAGIC or int.from_bytes(end[:4], "little") > min(size, LARGEST_FOOTER):
        raise UserError(f"{path.name} is no parquet file, or its footer is too large")
    try:
        found = pq.ParquetFile(path, thrift_string_size_limit=2**20, thrift_container_size_limit=2**12)
        if not str(found.metadata.created_by).startswith("parquet-cpp-arrow version "):
            raise UserError(f"{path.name} was not written by Arrow")
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UserError(f"{path.name} cannot be read: {first_line(error)}") from None
    return found


def pages(path: Path, metadata: Any) -> Iterator[Page]:
    """Every page of every column, in order, without unpacking any.

    Args:
        path: The file.
        metadata: Its footer.

    Raises:
        UserError: A header is malformed, lies, or is of a kind that Arrow does not write by itself.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for group in range(metadata.num_row_groups):
            for number in range(metadata.num_columns):
                try:
                    yield from _of_column(data, metadata.row_group(group).column(number))
                except (_Malformed, IndexError) as problem:
                    why = problem if isinstance(problem, _Malformed) else "a header is cut off"
                    raise UserError(f"{path.name}: column {number} of row group {group}: {why}") from None


def _of_column(data: mmap.mmap, column: Any) -> Iterator[Page]:
    if column.file_path or column.compression not in _CODECS:
        raise _Malformed("is in another file, or packed in an unusual way")
    at = column.data_page_offset
    if column.has_dictionary_page and 0 < column.dictionary_page_offset < at:
        at = column.dictionary_page_offset
    end = at + column.total_compressed_size
    if not len(_MAGIC) <= at <= end <= len(data):
        raise _Malformed("lies outside the file")
    first = True
    while at < end:
        header, at = _struct(data, at, end)
        kind, unpacked, packed = (_number(header, field) for field in (1, 2, 3))
        if kind not in _HEADER_OF or (kind == _DICTIONARY and not first):
            raise _Malformed("a page of an unusual kind")
        field, encoding = _HEADER_OF[kind]
        inner = header.get(field)
        if not isinstance(inner, dict) or _number(inner, encoding) not in _ENCODINGS:
            raise _Malformed("an unusual encoding")
        at += packed
        if at > end:
            raise _Malformed("a page goes on behind its column")
        yield Page(kind == _DICTIONARY, unpacked)
        first = False


def _number(fields: dict[int, Any], field: int) -> int:
    value = fields.get(field)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise _Malformed("a header lacks a number")
    return value


def _struct(data: mmap.mmap, at: int, end: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """A struct of Thrift's compact protocol, by field, and where it ends; no field may come twice or out of order."""
    fields: dict[int, Any] = {}
    field = 0
    while True:
        if at >= end or depth > _DEEPEST:
            raise _Malformed("a header is cut off")
        byte = data[at]
        at += 1
        if byte == 0:
            return fields, at
        step, kind = byte >> 4, byte & 15
        if not step:
            raise _Malformed("an unusual header")
        field += step
        if kind in {_TRUE, _FALSE}:
            fields[field] = kind == _TRUE
        elif kind == _BYTE:
            at += 1
        elif kind in _NUMBERS:
            raw, at = _varint(data, at)
            fields[field] = (raw >> 1) ^ -(raw & 1)
        elif kind == _BINARY:
            length, at = _varint(data, at)
            at += length
        elif kind == _STRUCT:
            fields[field], at = _struct(data, at, end, depth + 1)
        else:
            raise _Malformed("an unusual header")


def _varint(data: mmap.mmap, at: int) -> tuple[int, int]:
    value = 0
    for place in range(10):
        byte = data[at + place]
        value |= (byte & 127) << 7 * place
        if byte < 128:  # noqa: PLR2004
            return value, at + place + 1
    raise _Malformed("a number without end")

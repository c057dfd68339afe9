"""Rows that wait in memory for their parquet files: what the configs of an image share becomes columns once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

IMAGE, PERTURBATION = "image", "perturbation"
"""The columns that differ from config to config."""

ROW_GROUP = 32
"""Rows per config that wait before they are written,"""

MOST_BYTES = 1 << 28
"""or fewer, where all that waits is larger."""

Own = tuple[bytes, Mapping[str, Any]]
"""An encoded image and its column `perturbation`."""


class RowGroup:
    """The same images in every config."""

    def __init__(self, configs: Sequence[str], schema: Any) -> None:
        """Begins without a row.

        Args:
            configs: Their names.
            schema: Of the files, a `pyarrow.Schema`.
        """
        self._schema = schema
        self._shared: list[Mapping[str, Any]] = []
        self._own: dict[str, list[Own]] = {config: [] for config in configs}
        self._bytes = 0
        self._memory = bytearray()

    @property
    def full(self) -> bool:
        """Whether it is time to write."""
        return len(self._shared) >= ROW_GROUP or self._bytes >= MOST_BYTES

    def add(self, shared: Mapping[str, Any], own: Mapping[str, Own]) -> None:
        """Adds an image.

        Args:
            shared: The columns that are the same in all configs, by name.
            own: The others, by config.
        """
        self._shared.append(shared)
        for config, each in own.items():
            self._own[config].append(each)
            self._bytes += len(each[0])

    def taken(self) -> Iterator[tuple[str, Any]]:
        """Config and `pyarrow.Table` of the rows that wait, if any; afterwards none waits.

        A table is good until the next is asked for, which lies in the same memory.
        """
        import pyarrow as pa

        if not self._shared:
            return
        own = {name: self._schema.field(name).type for name in (IMAGE, PERTURBATION)}
        columns = {
            field.name: pa.array([row.get(field.name) for row in self._shared], field.type)
            for field in self._schema
            if field.name not in own
        }
        no_path = pa.nulls(len(self._shared), pa.string())
        for config, rows in self._own.items():
            parts = {"bytes": self._joined([encoded for encoded, _ in rows]), "path": no_path}
            fields = list(own[IMAGE])
            columns[IMAGE] = pa.StructArray.from_arrays([parts[field.name] for field in fields], fields=fields)
            columns[PERTURBATION] = pa.array([drawn for _, drawn in rows], own[PERTURBATION])
            rows.clear()
            yield config, pa.Table.from_arrays([columns[name] for name in self._schema.names], schema=self._schema)
        self._shared.clear()
        self._bytes = 0

    def _joined(self, images: Sequence[bytes]) -> Any:
        """A `pyarrow.BinaryArray` of the images."""
        import pyarrow as pa

        # In memory that is kept: finding fresh memory costs more than copying.
        ends = list(accumulate(map(len, images), initial=0))
        if ends[-1] > len(self._memory):
            self._memory = bytearray(ends[-1] + ends[-1] // 4)
        memory = memoryview(self._memory)
        for start, image in zip(ends, images, strict=False):
            memory[start : start + len(image)] = image
        buffers = [None, pa.array(ends, pa.int32()).buffers()[1], pa.py_buffer(self._memory)]
        return pa.Array.from_buffers(pa.binary(), len(images), buffers)

"""Rows that wait for their files come out as they went in."""

from __future__ import annotations

import pyarrow as pa

from truegap.build import row_group
from truegap.build.row_group import RowGroup

SCHEMA = pa.schema(
    {
        "image": pa.struct({"bytes": pa.binary(), "path": pa.string()}),
        "image_id": pa.string(),
        "perturbation": pa.struct({"shift": pa.int32()}),
        "extra": pa.list_(pa.int64()),
    }
)


def filled(group: RowGroup, number: int) -> list[dict]:
    """Adds an image; what its row in config `b` should be."""
    shared = {"image_id": str(number)} | ({"extra": [number]} if number % 2 else {})
    encoded = bytes([number]) * (3 * number)
    group.add(shared, {"a": (b"same", {"shift": None}), "b": (encoded, {"shift": number})})
    return {"extra": None, **shared, "image": {"bytes": encoded, "path": None}, "perturbation": {"shift": number}}


def test_rows_come_out_as_they_went_in_again_and_again():
    # given groups of several sizes, the second larger than the memory of the first
    group = RowGroup(["a", "b"], SCHEMA)
    for numbers in (range(3), range(40, 60), range(5, 7)):
        rows = [filled(group, number) for number in numbers]
        tables = {config: table.to_pylist() for config, table in group.taken()}
        assert tables["b"] == rows
        assert [row["image"]["bytes"] for row in tables["a"]] == [b"same"] * len(rows)
        assert list(group.taken()) == []


def test_schema_is_kept():
    group = RowGroup(["a", "b"], SCHEMA.with_metadata({"huggingface": "{}"}))
    filled(group, 1)
    assert all(table.schema.equals(SCHEMA, check_metadata=False) for _, table in group.taken())
    filled(group, 1)
    assert all(table.schema.metadata == {b"huggingface": b"{}"} for _, table in group.taken())


def test_group_is_full_by_rows_or_by_bytes(monkeypatch):
    group = RowGroup(["a", "b"], SCHEMA)
    for number in range(row_group.ROW_GROUP):
        assert not group.full
        filled(group, number)
    assert group.full
    for _ in group.taken():
        pass
    assert not group.full
    monkeypatch.setattr(row_group, "MOST_BYTES", 20)
    filled(group, 5)
    assert not group.full
    filled(group, 5)
    assert group.full

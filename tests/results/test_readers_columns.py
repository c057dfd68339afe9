"""Columns of text as parquet files hold them: places in dictionaries, part by part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from truegap.results.readers_table import Columns

TEXTS = ["woman", "man", "a prompt", "", "b"]
PARTS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(TEXTS), min_size=1, max_size=6),  # a file may hold the same text twice
        st.lists(st.integers(-1, 5), min_size=1, max_size=8),
    ),
    min_size=1,
    max_size=3,
)


def column(parts) -> pa.ChunkedArray:
    chunks = []
    for values, places in parts:
        known = [place if 0 <= place < len(values) else None for place in places]
        chunks.append(pa.DictionaryArray.from_arrays(pa.array(known, pa.int32()), pa.array(values)))
    return pa.chunked_array(chunks)


@settings(deadline=None, max_examples=60)
@given(PARTS)
def test_texts_in_dictionaries_read_as_texts_written_out(parts):
    stored = column(parts)
    kept, plain = (Columns(pa.table({"t": each}), Path("t.parquet")) for each in (stored, stored.cast(pa.string())))
    assert kept.optional("t") == plain.optional("t")
    for one, other in zip(kept._codes("t"), plain._codes("t"), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_long_text_is_not_written_out_for_every_row():
    """Two rows would do for the numbers; two million would be four terabytes."""
    places = pa.array(np.zeros(2_000_000, np.int32))
    long = pa.DictionaryArray.from_arrays(places, pa.array(["x" * 2_000_000]))
    codes, values = Columns(pa.table({"t": long}), Path("t.parquet")).codes("t")
    assert (len(codes), codes.max(), len(values[0])) == (2_000_000, 0, 2_000_000)

"""A table of answers that somebody else wrote: what it would take is known before any of it is unpacked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from queue_factory import make_request, manifest
from run_factory import run_record, scores_record
from truegap.build.manifest import Manifest
from truegap.errors import UserError
from truegap.files import parquet_pages
from truegap.leaderboard import foreign_answers
from truegap.leaderboard.foreign_answers import ROWS_PER_IMAGE, check_answers
from truegap.leaderboard.foreign_run import check_run, take_run
from truegap.results.answers import FILE, AnswersWriter, read_answers, schema
from truegap.results.runs import write_run

IMAGES = [f"{number:012d}" for number in range(20)]
CELLS = 2 * len(IMAGES)


@pytest.fixture
def honest(tmp_path):
    """A table as a run writes it."""
    prompts = [("traits-r1", f"p{number}", f"Prompt {number}", "trait") for number in range(5)]
    scores = np.random.default_rng(0).normal(size=(5, len(IMAGES))).astype(np.float32)
    with AnswersWriter(tmp_path) as writer:
        for config in ("original", "color-strong"):
            writer.write(config, prompts, IMAGES, ["woman", "man"] * 10, scores)
    return tmp_path / FILE


def hostile(path: Path, rows: int = 3, *, columns: dict[str, pa.Array] | None = None, **options) -> Path:
    """Another table in its place, with the columns of one, but for some."""
    fields = {field.name: pa.nulls(rows, field.type) for field in schema()} | (columns or {})
    table = pa.table(fields, schema=options.pop("schema", None))
    pq.write_table(table, path, **{"compression": "zstd"} | options)
    return path


def text(*values: str) -> pa.DictionaryArray:
    return pa.array(values).dictionary_encode()


def refusal(path: Path, cells: int = CELLS) -> str:
    with pytest.raises(UserError) as caught:
        check_answers(path, cells)
    assert "\n" not in str(caught.value)
    assert path.stat().st_size < 200_000 or "footer" in str(caught.value)
    return str(caught.value)


def test_what_a_run_writes_is_taken(honest):
    check_answers(honest, CELLS)


def test_its_pages_are_those_that_arrow_unpacks(honest):
    with parquet_pages.open_guarded(honest) as file:
        metadata = file.metadata
        found = list(parquet_pages.pages(honest, metadata))
        columns = [
            metadata.row_group(group).column(number)
            for group in range(metadata.num_row_groups)
            for number in range(metadata.num_columns)
        ]
    claimed = sum(column.total_uncompressed_size for column in columns)
    # Arrow counts the headers too, which are small.
    assert claimed - 100 * len(found) < sum(page.unpacked for page in found) <= claimed
    assert sum(page.is_dictionary for page in found) == sum(column.has_dictionary_page for column in columns)


def test_no_more_rows_than_were_asked_for(tmp_path):
    rows = CELLS * ROWS_PER_IMAGE + 1
    path = hostile(tmp_path / FILE, rows)
    assert f"has {rows:,} rows about {CELLS} images" in refusal(path)
    check_answers(path, CELLS + 1)


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"extra": pa.nulls(3, pa.int64())}, "has other columns"),
        ({"prompt": pa.array(["a", "b", "c"])}, "columns of other types"),
        ({"score": pa.nulls(3, pa.list_(pa.float32()))}, "columns of other types"),
        ({"prompt": text("x" * 5_000_000, "y", "z")}, "too much memory"),
    ],
)
def test_columns_are_those_of_the_table(tmp_path, columns, why):
    assert why in refusal(hostile(tmp_path / FILE, columns=columns))


def test_a_few_bytes_do_not_become_many(tmp_path, monkeypatch):
    """Texts that compress to nothing, and an encoding in which each says how much of the one before it repeats."""
    monkeypatch.setattr(foreign_answers, "_SPARE", 1_000_000)
    bomb = {"prompt": text("x" * 2_000_000, "y", "z")}
    assert "too much memory" in refusal(hostile(tmp_path / FILE, columns=bomb, use_dictionary=False))
    path = hostile(tmp_path / FILE, use_dictionary=False, column_encoding={"prompt": "DELTA_BYTE_ARRAY"})
    assert "column 3 of row group 0: an unusual encoding" in refusal(path)
    assert "packed in an unusual way" in refusal(hostile(tmp_path / FILE, compression="gzip"))


def test_a_page_that_lies_is_not_unpacked(honest):
    """The size that is counted is the one by which Arrow unpacks."""
    data = bytearray(honest.read_bytes())
    column = pq.read_metadata(honest).row_group(0).column(9)
    at = column.data_page_offset if column.dictionary_page_offset is None else column.dictionary_page_offset
    assert data[at + 2] == 0x15  # behind the page's kind: its size unpacked, in one number
    data[at + 3] -= 2
    honest.write_bytes(data)
    check_answers(honest, CELLS)
    with pytest.raises(OSError, match=r"(?i)decompress|size|corrupt"):
        read_answers(honest.parent)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda data: data[:0], "is no parquet file"),
        (lambda data: data[:-3], "is no parquet file"),
        (lambda data: data[:-8] + (2**31).to_bytes(4, "little") + b"PAR1", "its footer is too large"),
        (lambda data: data.replace(b"parquet-cpp-arrow", b"parquet-mr-arrows"), "not written by Arrow"),
        (lambda data: data[:4] + bytes(len(data) // 2) + data[4 + len(data) // 2 :], "a header lacks a number"),
    ],
)
def test_what_is_damaged_is_refused(honest, change, why):
    honest.write_bytes(change(honest.read_bytes()))
    assert why in refusal(honest)


def test_the_footer_is_small(tmp_path):
    large = schema().with_metadata({"note": "x" * 3_000_000})
    assert "its footer is too large" in refusal(hostile(tmp_path / FILE, schema=large))


def test_whatever_a_header_says_there_is_a_word_for_it(honest):
    data = honest.read_bytes()
    pages_end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    chance = np.random.default_rng(0)
    refused = 0
    for _ in range(200):
        changed = bytearray(data)
        for place in chance.integers(4, pages_end, 20):
            changed[place] = chance.integers(256)
        honest.write_bytes(changed)
        try:
            check_answers(honest, CELLS)
        except UserError:
            refused += 1
    assert refused > 20


def test_a_run_with_such_a_table_answers_no_request(tmp_path, monkeypatch):
    made = Manifest.model_validate_json(manifest())
    request = make_request().model_copy(update={"content": made.content})
    record = run_record("model", options={"profile": "lite-1"})
    asked = {"spec": "bench", "name": "synthetic", "version": "1.0.0", "content": made.content}
    model = record.model.model_copy(update={"spec": "org/model", "revision": request.revision})
    changed = {"benchmark": record.benchmark.model_copy(update=asked), "model": model}
    out, mine = tmp_path / "out", tmp_path / "mine"
    mine.mkdir()
    write_run(out, record.model_copy(update=changed), scores_record(record.run_id))
    told = {"benchmark": "bench", "spec": "org/model"}
    check_run(take_run(out, mine), request, made, **told)
    hostile(out / FILE)
    (mine / "again").mkdir()
    with pytest.raises(UserError, match="has 3 rows about 0 images"):
        check_run(take_run(out, mine / "again"), request, made, **told)
    # and a sample of a large benchmark has the answers of a sample
    large = made.model_copy(update={"rows": made.rows.model_copy(update={"image_id": ["a"] * 10_000})})
    monkeypatch.setattr(foreign_answers, "ROWS_PER_IMAGE", 0)
    (mine / "large").mkdir()
    with pytest.raises(UserError, match=f"has 3 rows about {200 * len(made.configs)} images"):
        check_run(take_run(out, mine / "large"), request, large, **told)

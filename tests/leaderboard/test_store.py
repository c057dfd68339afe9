import json
import multiprocessing

import pyarrow.parquet as pq
import pytest

from run_factory import HOSTILE, QUIET, make_run, run_record, scores_record
from truegap.errors import UserError
from truegap.leaderboard import COLUMNS, LocalStore, default_store, row_of, search, table
from truegap.leaderboard.rank import ranks
from truegap.results.runs import Run


def row(name="model", benchmark="synthetic", folder=None, **scores):
    record = run_record(name, benchmark=benchmark)
    return row_of(Run(record, scores_record(record.run_id, **scores), folder))


def _submit(folder, number, together, added):
    store, own, everybodys = LocalStore(folder), row(f"model-{number}"), row("everybody's")
    together.wait()
    added.put(store.submit(everybodys).added)
    store.submit(own)


def test_twenty_writers_at_once_lose_nothing(tmp_path):
    # What writers import is imported before, so that they really meet.
    LocalStore(tmp_path / "other").submit(row())
    fork = multiprocessing.get_context("fork")
    together, added = fork.Barrier(20), fork.SimpleQueue()
    writers = [fork.Process(target=_submit, args=(tmp_path, number, together, added)) for number in range(20)]
    for each in writers:
        each.start()
    for each in writers:
        each.join(600)
    assert [each.exitcode for each in writers] == [0] * 20
    assert sum(added.get() for _ in writers) == 1
    names = {f"model-{number}" for number in range(20)} | {"everybody's"}
    assert {each.model.name for each in LocalStore(tmp_path).read().rows} == names
    assert set(LocalStore(tmp_path).table()["model"].to_pylist()) == names


def test_the_same_model_on_the_same_question_is_one_row(tmp_path):
    store = LocalStore(tmp_path)
    first = store.submit(row())
    again = store.submit(row())
    other = store.submit(row(bias=0.2))
    assert (first.added, again.added, again.differs) == (True, False, False)
    assert (other.added, other.differs, other.row.summary.bias) == (False, True, 0.31)
    assert store.table().num_rows == 1


def test_another_benchmark_or_option_is_another_row(tmp_path):
    store = LocalStore(tmp_path)
    store.submit(row())
    assert store.submit(row(benchmark="coco-gender")).added
    changed = row()
    assert store.submit(changed.model_copy(update={"options": {**changed.options, "seed": 1}})).added
    assert store.table().num_rows == 3


def test_malformed_files_are_named_and_hide_no_row(tmp_path):
    store = LocalStore(tmp_path)
    kept = store.submit(row())
    results = tmp_path / "results"
    (results / "half.json").write_text('{"format_version": 1, ')
    (results / "list.json").write_text("[]")
    (results / "large.json").write_text(" " * (2 * 1024 * 1024))
    (results / "renamed.json").write_bytes(kept.path.read_bytes())
    (results / "folder.json").mkdir()
    (results / "link.json").symlink_to(kept.path)
    contents = store.refresh()
    assert [each.key for each in contents.rows] == [kept.row.key]
    assert set(contents.broken) == {f"{name}.json" for name in ("half", "list", "large", "renamed", "folder", "link")}
    assert store.submit(row("second")).added
    assert store.table().num_rows == 2


def test_a_row_that_a_killed_writer_left_out_of_the_table_comes_back(tmp_path):
    store = LocalStore(tmp_path)
    store.submit(row())
    pq.write_table(store.table().slice(0, 0), store.path)
    store.submit(row())
    assert store.table().num_rows == 1


def test_a_store_that_cannot_be_used_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        LocalStore(tmp_path / "file").submit(row())
    (tmp_path / "table.parquet").write_text("not parquet")
    with pytest.raises(UserError, match="cannot be read"):
        LocalStore(tmp_path).table()


def test_an_empty_store_is_an_empty_table(tmp_path):
    empty = LocalStore(tmp_path / "none")
    assert tuple(empty.table().schema.names) == COLUMNS
    assert empty.read().rows == []
    assert table([]).num_rows == 0


def test_models_that_nothing_separates_share_a_rank():
    assert ranks([(0.1, 0.2), (0.15, 0.3), (0.19, 0.4), (0.25, 0.5), (0.45, 0.6)]) == [1, 1, 1, 2, 4]
    assert ranks([(-0.05, 0.05), (-0.4, -0.3), (0.3, 0.4)]) == [1, 2, 2]
    assert ranks([(None, None), (0.1, 0.2)]) == [None, 1]


def test_rows_are_ranked_only_against_the_same_question(tmp_path):
    rows = [row("a", bias=0.5), row("b", bias=0.1), row("c", "coco-gender", bias=0.9), row("d", bias=0.1)]
    found = table(rows).to_pylist()
    assert [(each["model"], each["rank"]) for each in found] == [("c", 1), ("b", 1), ("d", 1), ("a", 3)]
    assert found[1]["board"] == "synthetic 1.0.0, retrieval, max_skew@100"


def test_questions_that_read_alike_are_told_apart():
    one, other = row("a"), row("b")
    other = other.model_copy(update={"options": {**other.options, "seed": 1}})
    boards = set(table([one, other])["board"].to_pylist())
    assert len(boards) == 2
    assert all("(" in each for each in boards)


def test_the_table_holds_every_number(tmp_path):
    made = row(deltas=QUIET)
    found = table([made]).to_pylist()[0]
    assert found["key"] == made.key
    assert (found["bias"], found["bias_low"], found["null"]) == (0.31, made.summary.bias_low, 0.094)
    assert found["delta_background"] == made.summary.feature_delta["background"]
    assert (found["floor"], found["floor_hsv"]) == (0.9, 1.4)


def test_search_looks_at_names_and_boards_and_never_at_patterns():
    rows = table([row("openai/clip-vit"), row("google/siglip"), row("openai/clip-vit", "coco-gender"), row(HOSTILE)])
    assert search(rows, text="CLIP openai").num_rows == 2
    assert search(rows, text="clip", board="synthetic 1.0.0, retrieval, max_skew@100").num_rows == 1
    assert search(rows, text=".*").num_rows == 0
    assert search(rows, text="<script>").num_rows == 1
    assert search(rows).num_rows == 4


def test_the_default_store_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("TRUEGAP_STORE", str(tmp_path))
    assert default_store() == tmp_path
    monkeypatch.delenv("TRUEGAP_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert default_store() == tmp_path / "data" / "truegap" / "leaderboard"


def test_a_row_file_is_readable_json(tmp_path):
    receipt = LocalStore(tmp_path).submit(row_of(make_run(tmp_path / "run")))
    data = json.loads(receipt.path.read_text())
    assert data["kind"] == "local"
    assert receipt.path.stem == receipt.row.key
    assert data["model"]["parameters"] == 151_277_313

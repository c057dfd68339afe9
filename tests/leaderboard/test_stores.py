"""Both stores, a folder and the Hub: the same face, and no write is lost."""

import multiprocessing
import threading

import pytest

from loopback_hub import READER_TOKEN, TOKEN
from queue_factory import make_request
from run_factory import run_record, scores_record
from truegap.errors import UserError
from truegap.hub.tree import Held
from truegap.leaderboard import LocalStore, open_store, row_of
from truegap.leaderboard.hub_store import _Mirror
from truegap.results.runs import Run


def row(name="model", *, kind="verified", **scores):
    record = run_record(name)
    return row_of(Run(record, scores_record(record.run_id, **scores), None), kind=kind)


@pytest.fixture
def hub(loopback_hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    return loopback_hub


@pytest.fixture(params=["folder", "hub"])
def where(request, tmp_path):
    if request.param == "folder":
        return str(tmp_path / "store")
    request.getfixturevalue("hub")
    return "hf://org"


EVERYBODYS = "org/everybody-s"


def _write(where, number, together, rounds):
    """One writer: a request of its own, and one that all count up, each by so many."""
    store = open_store(where)
    together.wait()
    for _ in range(rounds):
        while True:
            (held,) = [each for each in store.requests() if each.model == EVERYBODYS]
            if store.put_request(held.model_copy(update={"attempts": held.attempts + 1}), held):
                break
    assert store.put_request(make_request(f"org/model-{number}"), None)


def _check_twenty(store, rounds):
    found = {each.model: each.attempts for each in store.requests()}
    assert found == {f"org/model-{number}": 0 for number in range(20)} | {EVERYBODYS: 20 * rounds}


def test_twenty_processes_lose_no_request_in_a_folder(tmp_path):
    LocalStore(tmp_path).put_request(make_request(EVERYBODYS), None)
    fork = multiprocessing.get_context("fork")
    together = fork.Barrier(20)
    writers = [fork.Process(target=_write, args=(str(tmp_path), number, together, 5)) for number in range(20)]
    for each in writers:
        each.start()
    for each in writers:
        each.join(600)
    assert [each.exitcode for each in writers] == [0] * 20
    _check_twenty(LocalStore(tmp_path), 5)


@pytest.mark.slow
def test_twenty_writers_lose_no_request_on_the_hub(hub):
    open_store("hf://org").put_request(make_request(EVERYBODYS), None)
    together = threading.Barrier(20)
    writers = [threading.Thread(target=_write, args=("hf://org", number, together, 1)) for number in range(20)]
    for each in writers:
        each.start()
    for each in writers:
        each.join(600)
    _check_twenty(open_store("hf://org"), 1)
    # The writers did meet: some commits were refused, and none of those was lost.
    assert hub.asked["POST /api/datasets/org/requests/commit/main"] > 41


def test_rows_that_are_submitted_to_the_hub_at_once_are_all_in_the_table(hub):
    together = threading.Barrier(4)

    def submit(number):
        store = open_store("hf://org")
        together.wait()
        store.submit(row(f"model-{number}"))

    writers = [threading.Thread(target=submit, args=(number,)) for number in range(4)]
    for each in writers:
        each.start()
    for each in writers:
        each.join(600)
    store, names = open_store("hf://org"), {f"model-{number}" for number in range(4)}
    assert {each.model.name for each in store.read().rows} == names
    assert set(store.table()["model"].to_pylist()) == names


def test_a_request_is_swapped_only_for_the_one_that_was_seen(where):
    store, first = open_store(where), make_request()
    assert store.requests() == []
    assert store.put_request(first, None)
    second = first.model_copy(update={"note": "second"})
    assert not store.put_request(second, None)
    assert store.put_request(second, first)
    assert not store.put_request(first.model_copy(update={"note": "third"}), first)
    assert [each.note for each in open_store(where).requests()] == ["second"]


def test_a_row_is_kept_with_its_scores_and_its_table(where):
    store, made = open_store(where), row()
    scores = scores_record(made.run_id)
    assert store.table().num_rows == 0
    assert store.read().rows == []
    assert store.submit(made, scores).added
    assert not store.submit(made).added
    assert store.submit(row(bias=0.2)).differs
    again = open_store(where)
    assert [each.key for each in again.read().rows] == [made.key]
    assert again.scores(made.key) == scores
    assert again.scores("f" * 64) is None
    assert again.table()["model"].to_pylist() == ["model"]
    assert again.refresh().broken == {}


@pytest.mark.parametrize("weaker", ["local", "community"])
def test_only_what_the_worker_found_takes_a_rows_place(where, weaker):
    store = open_store(where)
    assert store.submit(row(kind=weaker)).added
    assert not store.submit(row(kind=weaker, bias=0.1)).added
    assert store.submit(row(kind="verified", bias=0.2)).added
    assert not store.submit(row(kind=weaker)).added
    assert not store.submit(row(kind="verified", bias=0.3)).added
    (held,) = store.read().rows
    assert (held.kind, held.summary.bias) == ("verified", 0.2)
    assert store.table()["bias"].to_pylist() == [0.2]


def test_logs_are_kept_by_key(where):
    store = open_store(where)
    assert store.log("a" * 64) == ""
    store.put_log("a" * 64, "one\ntwo ☃")
    store.put_log("b" * 64, "other")
    assert open_store(where).log("a" * 64) == "one\ntwo ☃"


def test_a_key_leads_nowhere_else(tmp_path):
    store = LocalStore(tmp_path / "store")
    (tmp_path / "secret.txt").write_text("secret")
    assert store.log("../../secret") == ""
    assert store.scores("../../secret") is None
    store.put_log("../../escaped", "text")
    assert not (tmp_path / "escaped.txt").exists()


def test_tampered_requests_are_named_and_never_run(tmp_path):
    store, kept = LocalStore(tmp_path), make_request()
    store.put_request(kept, None)
    folder = tmp_path / "requests"
    other = make_request("org/other")
    (folder / f"{'0' * 64}.json").write_text(other.model_dump_json())
    (folder / f"{other.key}.json").write_text(other.model_dump_json().replace("org/other", "evil/other"))
    (folder / "half.json").write_text("{")
    (folder / "link.json").symlink_to(folder / f"{kept.key}.json")
    found = store.queue()
    assert found.requests == [kept]
    assert set(found.broken) == {f"{'0' * 64}.json", f"{other.key}.json", "half.json", "link.json"}
    assert "its name is not the key" in found.broken[f"{'0' * 64}.json"]
    assert "its key is not that of what it asks" in found.broken[f"{other.key}.json"]


def test_tampered_requests_on_the_hub_are_named_too(hub):
    other = make_request("org/other")
    files = {f"requests/{'0' * 64}.json": other.model_dump_json().encode(), "requests/large.json": b" " * 2_000_000}
    hub.commit("dataset", "org/requests", files)
    found = open_store("hf://org").queue()
    assert found.requests == []
    assert "its name is not the key" in found.broken[f"requests/{'0' * 64}.json"]
    assert "larger than" in found.broken["requests/large.json"]


def test_whoever_may_not_write_is_told_so_without_the_token(hub, monkeypatch):
    open_store("hf://org").put_request(make_request(), None)
    monkeypatch.setenv("HF_TOKEN", READER_TOKEN)
    with pytest.raises(UserError, match="dataset org/requests: ") as refusal:
        open_store("hf://org").put_request(make_request("org/other"), None)
    assert READER_TOKEN not in str(refusal.value)


def test_only_what_changed_is_brought_again(hub):
    store = open_store("hf://org")
    for number in range(3):
        store.put_request(make_request(f"org/model-{number}"), None)
    store.requests()
    before = sum(count for path, count in hub.asked.items() if "/resolve/" in path)
    assert len(store.requests()) == 3
    assert sum(count for path, count in hub.asked.items() if "/resolve/" in path) == before


def test_a_newer_commit_takes_nothing_from_who_still_reads_the_older_one():
    class TwoCommits:
        def files(self, head):
            return {f"rows/{head}.json": Held(1, head)}

        def read(self, _, head, **__):
            return head.encode()

    mirror = _Mirror(TwoCommits())
    (_, older) = next(mirror.files("a", "rows"))
    (_, newer) = next(mirror.files("b", "rows"))
    assert (older(), newer()) == (b"a", b"b")


def test_an_address_that_is_no_store_is_one_line(tmp_path):
    with pytest.raises(UserError, match="a user or organisation on the Hub"):
        open_store("hf://org/../x")
    assert isinstance(open_store(tmp_path), LocalStore)

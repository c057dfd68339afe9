"""How much a user may ask for: in a minute, at a time, and when fifty requests come at once."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from queue_factory import hub_model, manifest
from truegap.errors import UserError
from truegap.leaderboard import Limits, LocalStore
from truegap.leaderboard.buckets import Buckets
from truegap.leaderboard.desk import Desk, LaterError


def written(folder, files):
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return str(folder)


@pytest.fixture
def benchmark(tmp_path):
    return written(tmp_path / "bench", {"manifest.json": manifest()})


def test_a_bucket_holds_a_minute_and_fills_as_time_goes():
    now = [0.0]
    buckets = Buckets(3, clock=lambda: now[0])
    assert [buckets.take("ada") for _ in range(4)] == [0.0, 0.0, 0.0, 20.0]
    assert buckets.take("eve") == 0.0
    now[0] = 15.0
    assert buckets.take("ada") == pytest.approx(5.0)
    now[0] = 20.0
    assert [buckets.take("ada"), buckets.take("ada")] == [0.0, 20.0]
    now[0] = 1000.0
    assert [buckets.take("ada") for _ in range(4)] == [0.0, 0.0, 0.0, 20.0]


def test_who_comes_under_many_names_gets_no_more_and_fills_no_memory():
    buckets = Buckets(1, most=10, clock=lambda: 0.0)
    assert [buckets.take(str(name)) for name in range(10)] == [0.0] * 10
    assert sum(buckets.take(str(name)) == 0.0 for name in range(10, 10_000)) == 1
    # Those that were there first are still known.
    assert buckets.take("0") == 60.0
    assert len(buckets._held) == 11


def test_fifty_requests_of_one_user_at_once_leave_no_more_than_the_limit(tmp_path, benchmark):
    store = LocalStore(tmp_path / "store")
    desk = Desk(store, Limits(folders=True, waiting=5), per_minute=1000)
    models = [written(tmp_path / f"clip{n}", hub_model(README__md=b"%d" % n)) for n in range(50)]

    def submit(model):
        try:
            return desk.submit(user="ada", model=model, benchmark=benchmark, protocol="retrieval").state
        except UserError as error:
            return str(error)

    with ThreadPoolExecutor(50) as threads:
        said = list(threads.map(submit, models))
    made = len(store.requests())
    assert 1 <= made <= 5
    assert said.count("PENDING") == made
    # Those that came one after the other, not at once, use up what is left.
    assert [submit(model) for model in models].count("PENDING") == 5 - made
    assert len(store.requests()) == 5
    # Nobody else is held up by that.
    other = written(tmp_path / "other", hub_model(README__md=b"other"))
    assert desk.submit(user="eve", model=other, benchmark=benchmark, protocol="retrieval").user == "eve"


def test_refused_requests_count_in_the_minute(tmp_path, benchmark):
    desk = Desk(LocalStore(tmp_path / "store"), Limits(folders=True), per_minute=2)
    asked = {"benchmark": benchmark, "protocol": "retrieval"}
    for _ in range(2):
        with pytest.raises(UserError, match="model") as refused:
            desk.submit(user="ada", model="no/such/model", **asked)
        assert not isinstance(refused.value, LaterError)
    with pytest.raises(LaterError, match="2 times a minute: try again in 30 seconds"):
        desk.submit(user="ada", model=written(tmp_path / "clip", hub_model()), **asked)
    assert desk.submit(user="eve", model=str(tmp_path / "clip"), **asked).user == "eve"

"""The benchmark that a leaderboard makes where it was told of none; `test_worker` evaluates a model on one."""

import threading
from functools import partial
from pathlib import Path

import pytest

from queue_factory import hub_model, make_request
from truegap.build import Plan, read_manifest
from truegap.cli._build_options import synthetic
from truegap.errors import UserError
from truegap.leaderboard import Limits, LocalStore, ask, default_benchmark, work, worker
from truegap.leaderboard.default_benchmark import default_benchmark as made
from truegap.leaderboard.default_benchmark import make_ready
from truegap.leaderboard.request import key_of
from truegap.protocols.profiles import LITE
from truegap.schema import CONFIGS
from truegap.sources import load_benchmark

NAME = "synthetic@v1"


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A default benchmark of four pictures, and a folder of its own to keep it."""
    monkeypatch.setattr(default_benchmark, "IMAGES", 4)
    monkeypatch.setenv("TRUEGAP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_it_is_made_once_by_whoever_asks_first_and_the_same_everywhere(small, tmp_path, monkeypatch):
    said, found = [], []
    threads = [threading.Thread(target=lambda: found.append(made(said.append))) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len({*found}) == 1
    assert [line.split()[0] for line in said] == ["making", "made"]
    made(said.append)
    assert len(said) == 2
    monkeypatch.setenv("TRUEGAP_CACHE", str(tmp_path / "elsewhere"))
    other = made()
    assert (other.parents[1], other.name) == (tmp_path / "elsewhere", found[0].name)
    assert read_manifest(other).content == read_manifest(found[0]).content


def test_one_that_is_not_whole_is_made_anew(small, monkeypatch):
    def stopped(_):
        raise KeyboardInterrupt

    # given one whose process was stopped
    with monkeypatch.context() as patch:
        patch.setattr("truegap.build.Workspace.finish", stopped)
        with pytest.raises(KeyboardInterrupt):
            made()
    assert not [path for path in (small / "benchmarks").iterdir() if (path / "manifest.json").exists()]
    (begun,) = small.rglob("build.json")
    begun.write_text("cut off")
    folder = made()
    content = read_manifest(folder).content
    # or one of which a file is gone, or cut off
    image, manifest = folder / "data/original/test-00000-of-00001.parquet", folder / "manifest.json"
    for harm in (image.unlink, manifest.unlink, partial(manifest.write_text, "{")):
        harm()
        assert made() == folder
        assert read_manifest(folder).content == content
    assert len([*folder.rglob("*.parquet")]) == len(CONFIGS)


def test_the_command_of_the_documentation_plans_the_same():
    chosen = synthetic(default_benchmark.IMAGES, 0, "background=0.9")
    assert Plan("synthetic", load_benchmark("synthetic").version, chosen).key() == default_benchmark._plan().key()
    assert LITE.images == default_benchmark.IMAGES


def test_only_a_leaderboard_that_was_told_of_none_offers_it(small, monkeypatch, tmp_path):
    store, told = LocalStore(tmp_path / "store"), Limits(benchmarks=("org/bench",))
    with pytest.raises(UserError, match=r"this leaderboard offers org/bench$"):
        ask(store, model="org/clip", benchmark=NAME, protocol="retrieval", user="ada", limits=told)
    with pytest.raises(UserError, match=r"offers synthetic@v1 .TRUEGAP_BENCHMARKS names others"):
        ask(store, model="org/clip", benchmark="org/bench", protocol="retrieval", user="ada", limits=Limits())
    make_ready(told, pytest.fail)
    assert not small.exists()
    monkeypatch.setenv("TRUEGAP_BENCHMARKS", f"org/bench, {NAME}")
    assert Limits().offered == ("org/bench", NAME)


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (Limits(benchmarks=("org/bench",)), "this worker offers org/bench"),
        (Limits(rest=0.0), "make other pixels of it"),
    ],
)
def test_a_worker_evaluates_what_it_would_have_offered(small, loopback_hub, tmp_path, monkeypatch, limits, why):
    revision = loopback_hub.commit("model", "org/clip", hub_model())
    monkeypatch.setattr(worker, "run_job", lambda *_, **__: pytest.fail("evaluated"))
    store = LocalStore(tmp_path / "store")
    key = key_of("org/clip", revision, "1.0.0", "b" * 64, "retrieval", "lite")
    store.put_request(
        make_request("org/clip", revision=revision, key=key, benchmark=NAME, benchmark_revision=None), None
    )
    work(store, once=True, limits=limits)
    assert why in store.requests()[0].reason


def test_where_it_cannot_be_kept_one_line_says_so_without_the_place(small, monkeypatch):
    small.write_text("a file, where the folder would be")
    with pytest.raises(UserError, match=r"cannot be made here .* set TRUEGAP_CACHE") as refused:
        made()
    assert str(Path(small).parent) not in str(refused.value)
    said = []
    make_ready(Limits(), said.append)
    assert said == [str(refused.value)]

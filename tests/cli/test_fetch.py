"""`truegap fetch`: from tables of addresses to a benchmark, over real HTTP."""

from __future__ import annotations

import csv
import hashlib
import inspect
import json
import signal
import subprocess
import sys
import time

import pytest

from image_host import IMAGE, ImageHost
from truegap.cli.fetch import fetch
from truegap.sources.download_options import DownloadOptions

TRUEGAP = [sys.executable, "-c", "from truegap.cli import main; main()"]
TABLE = "OO_Visogender_10052025.tsv"


@pytest.fixture
def host():
    host = ImageHost()
    yield host
    host.close()


@pytest.fixture
def tables(tmp_path, host):
    """Writes the authors' table with these paths of the host, women and men in turn."""

    def write(*paths: str):
        folder = tmp_path / "tables"
        folder.mkdir(exist_ok=True)
        with (folder / TABLE).open("w", newline="") as file:
            columns = ["IDX", "Sector", "Specialisation", "Occupation", "Object", "URL type (Type NA if can't find)"]
            writer = csv.writer(file, delimiter="\t")
            writer.writerow([*columns, "Occupation_perceived_gender"])
            for number, path in enumerate(paths):
                gender = ("feminine", "masculine")[number % 2]
                writer.writerow([f"OO_{number}", "medical", "hospital", "nurse", "desk", host.url(path), gender])
        return folder

    return write


QUICK = ("--private-host", "127.0.0.1", "--attempts", 1)


@pytest.mark.slow
def test_from_addresses_to_a_dataset(truegap_here, tables, host, tmp_path, monkeypatch):
    from datasets import load_dataset

    # given four photographs, a dead link, a page instead of a photograph, and a host in trouble
    folder, out = (
        tables("/image/0", "/image/1", "/image/2", "/image/3", "/gone", "/html", "/broken-once"),
        tmp_path / "v",
    )
    first = truegap_here("fetch", "visogender", "--source", folder, "--out", out, *QUICK)
    # then what is there is there, and every other address has its reason
    assert first.returncode == 1
    assert "4 images fetched, 0 were there already, 3 missing" in first.stdout
    for line in ("status 404", "dead", "a web page, no image", "status 500 (1 tries)", "for now", "OO_4", "/gone"):
        assert line in first.stdout
    assert "tried again by the same command" in first.stdout
    assert (out / TABLE).read_bytes() == (folder / TABLE).read_bytes()
    assert not (folder / "images").exists()
    # when it is run again, it fetches what failed for now and nothing else
    calls = dict(host.calls)
    again = truegap_here("fetch", "visogender", "--source", folder, "--out", out, *QUICK, "--json")
    assert again.returncode == 0
    told = json.loads(again.stdout)
    assert (told["fetched"], told["kept"], told["missing"]) == (1, 4, 2)
    assert {(each["reason"], each["dead"], each["images"]) for each in told["reasons"]} == {
        ("status 404", True, 1),
        ("a web page, no image", True, 1),
    }
    assert {each["id"]: each["sha256"] for each in told["outcomes"]} == {
        **{f"OO_{n}": hashlib.sha256(IMAGE).hexdigest() for n in (0, 1, 2, 3, 6)},
        "OO_4": "",
        "OO_5": "",
    }
    assert {path for path, number in host.calls.items() if number > calls[path]} == {"/broken-once"}
    # and the build that it names takes what is there, and counts the rest
    monkeypatch.chdir(tmp_path)
    named = first.stdout.splitlines()[-1].removeprefix("next: truegap ").split()
    assert named[:4] == ["build", "visogender", "--source", str(out)]
    built = truegap_here(*named, "--workers", 1)
    assert built.returncode == 0, built.stderr
    assert "left out: 1 (not downloaded, status 404)" in built.stdout
    assert "left out: 1 (not downloaded, a web page, no image)" in built.stdout
    rows = load_dataset(str(tmp_path / "visogender"), "original", split="test")
    assert rows["image_id"] == ["OO_0", "OO_1", "OO_2", "OO_3", "OO_6"]
    assert set(rows["occupation"]) == {"nurse"}
    assert rows[0]["image"].size == (60, 40)


def test_dead_links_are_tried_again_on_request(truegap_here, tables, host):
    folder = tables("/gone")
    assert truegap_here("fetch", "visogender", "--source", folder, *QUICK).returncode == 0
    assert truegap_here("fetch", "visogender", "--source", folder, *QUICK, "--retry-dead").returncode == 0
    assert host.calls["/gone"] == 2


def test_an_interrupted_fetch_exits_130_and_goes_on(truegap_here, tables, tmp_path):
    folder = tables(*(f"/slow-image/{number}" for number in range(150)))
    command = ["fetch", "visogender", "--source", str(folder), "--private-host", "127.0.0.1", "--json", "--per-host"]
    running = subprocess.Popen([*TRUEGAP, *command, "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while len(list((folder / "images").glob("*.jpg"))) < 4:
        assert running.poll() is None
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=120)
    assert running.returncode == 130
    assert "the same command goes on from here" in said
    before = len(list((folder / "images").glob("*.jpg")))
    assert before < 150
    assert not list((folder / "images").glob(".*.part"))
    again = truegap_here(*command, 8)
    told = json.loads(again.stdout)
    assert (told["kept"] >= 4, told["kept"] + told["fetched"], told["missing"]) == (True, 150, 0)
    assert "fetching visogender: 150 of 150" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["facet", "--source", "."], "facet is not published as addresses: truegap fetch knows visogender"),
        (["visogender", "--source", "."], "holds no table; expected OO or OP_Visogender_<date>.tsv"),
        (["visogender", "--source", "nowhere"], "holds no table"),
        (
            ["visogender", "--source", ".", "--per-host", "0"],
            "--per-host 0: Input should be greater than or equal to 1",
        ),
        (["visogender", "--source", ".", "--timeout", "-1"], "--timeout -1.0: Input should be greater than 0"),
    ],
)
def test_a_mistake_is_one_line(truegap_here, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    done = truegap_here("fetch", *arguments)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr
    assert not list(tmp_path.iterdir())


def test_another_table_in_the_way_is_not_overwritten(truegap_here, tables, tmp_path):
    folder = tables("/image/1")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / TABLE).write_text("mine")
    done = truegap_here("fetch", "visogender", "--source", folder, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "is there already and differs from" in done.stderr
    assert (tmp_path / "out" / TABLE).read_text() == "mine"


def test_the_commands_defaults_are_those_of_the_downloader():
    given = {name: each.default for name, each in inspect.signature(fetch).parameters.items()}
    defaults = DownloadOptions().model_dump()
    shared = {name: value for name, value in given.items() if name in defaults and value is not None}
    assert len(shared) == 6
    assert shared == {name: defaults[name] for name in shared}

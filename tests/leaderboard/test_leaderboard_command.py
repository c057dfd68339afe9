import importlib.util
import json
import signal
import socket
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from run_factory import make_run
from truegap.cli import pages
from truegap.cli.app import app
from truegap.errors import UserError
from truegap.leaderboard import worker


def run(*arguments):
    return CliRunner().invoke(app, ["leaderboard", *map(str, arguments)])


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("TRUEGAP_STORE", str(tmp_path / "store"))
    return tmp_path / "store"


def test_a_run_becomes_a_row_and_is_shown(tmp_path, store):
    make_run(tmp_path / "run")
    assert "added: background-reader on synthetic 1.0.0" in run("submit", tmp_path / "run").stdout
    assert "there already" in run("submit", tmp_path / "run").stdout
    shown = run("show").stdout
    assert "synthetic 1.0.0, retrieval, max_skew@100" in shown
    assert "0.310 [0.275, 0.345]" in shown
    (row,) = json.loads(run("show", "--json").stdout)["rows"]
    assert (row["rank"], row["model"], row["bias"]) == (1, "background-reader", 0.31)


def test_other_numbers_for_the_same_row_are_told(tmp_path, store):
    make_run(tmp_path / "run")
    make_run(tmp_path / "again", bias=0.2)
    run("submit", tmp_path / "run")
    assert "with other numbers, which stay" in run("submit", tmp_path / "again").stdout


def test_broken_files_are_named_and_the_rest_is_shown(tmp_path, store):
    make_run(tmp_path / "run")
    run("submit", tmp_path / "run")
    (store / "results" / "half.json").write_text("{")
    done = run("show")
    assert "background-reader" in done.stdout
    assert "not read: half.json" in done.stderr


def test_an_empty_store_says_what_to_type(store):
    assert "truegap leaderboard submit" in run("show").stdout


def test_what_is_not_a_run_is_the_users_mistake(tmp_path, store):
    done = run("submit", tmp_path / "nowhere")
    assert isinstance(done.exception, UserError)
    assert not store.exists()


def test_a_port_in_use_is_one_line(store):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("serve", "--port", taken.getsockname()[1])
    assert isinstance(done.exception, UserError)
    assert "is in use: choose another with --port" in str(done.exception)
    assert "cannot listen on" in str(run("serve", "--host", "198.51.100.1").exception)


def test_without_gradio_the_line_names_the_extra(store, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    done = run("serve")
    assert isinstance(done.exception, UserError)
    assert "pip install 'truegap[space]'" in str(done.exception)


def test_a_worker_runs_beside_the_page_and_ends_with_it(store, monkeypatch):
    there, started = threading.Event(), []

    def start(board, **how):
        started.append((board.where, how, subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=-1)))
        there.set()
        return started[0][2]

    def visit(*_, **__):
        assert there.wait(600)
        assert started[0][2].poll() is None

    monkeypatch.setattr(worker, "start_worker", start)
    monkeypatch.setattr(pages, "load_page", lambda _: SimpleNamespace(build=lambda board: board, serve=visit))
    done = run("serve", "--work")
    assert done.exception is None, done.output
    ((where, how, process),) = started
    assert (where, how) == (str(store), {"device": "auto", "folders": True})
    assert process.returncode == -signal.SIGTERM

"""The Space as visitors meet it: a real server, a real browser."""

import contextlib
import importlib.util
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
import yaml

from real_browser import PATIENCE
from run_factory import BACKGROUND_READER, HOSTILE, QUIET, run_record, scores_record
from truegap.leaderboard import LocalStore, row_of
from truegap.results.runs import Run

gradio = pytest.importorskip("gradio", reason="gradio is not installed")
pytestmark = [pytest.mark.browser, pytest.mark.slow]

HOSTILE_NAME = f"{HOSTILE} **bold** $x^2$"
BOARD = "synthetic 1.0.0, retrieval, max_skew@100"


def submit(store, name, benchmark="synthetic", **scores):
    record = run_record(name, benchmark=benchmark)
    store.submit(row_of(Run(record, scores_record(record.run_id, **scores), store.folder)))


def free_port():
    """A port below those that the system gives away by itself: nobody takes it before the server does."""
    for port in random.sample(range(20_000, 30_000), 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no free port")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The address and store of `truegap leaderboard serve`, run as a user runs it."""
    store = LocalStore(tmp_path_factory.mktemp("store"))
    submit(store, "person-reader", bias=0.42, deltas=QUIET)
    submit(store, "background-reader", deltas=BACKGROUND_READER)
    submit(store, HOSTILE_NAME, bias=0.15)
    submit(store, "elsewhere", "coco-gender")
    port = free_port()
    command = [sys.executable, "-c", "from truegap.cli import main; main()", "leaderboard", "serve"]
    environment = {**os.environ, "GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_OFFLINE": "1"}
    server = subprocess.Popen(
        [*command, "--store", str(store.folder), "--port", str(port)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    address = f"http://127.0.0.1:{port}"
    for _ in range(2400):
        try:
            urllib.request.urlopen(address, timeout=60).close()
            break
        except OSError:
            assert server.poll() is None, server.stdout.read()
            time.sleep(0.25)
    yield address, store
    server.send_signal(signal.SIGINT)
    try:
        server.wait(300)
    finally:
        server.kill()


@pytest.fixture
def page(served, browser):
    """The leaderboard, opened, with what it asked for, what it said and what popped up."""
    context = browser.new_context(viewport={"width": 1500, "height": 900})
    context.set_default_timeout(PATIENCE)
    opened = context.new_page()
    opened.asked, opened.said, opened.popped = [], [], []
    opened.on("request", lambda request: opened.asked.append(request.url))
    opened.on("console", lambda message: opened.said.append(message.text) if message.type == "error" else None)
    opened.on("dialog", lambda dialog: (opened.popped.append(dialog.message), dialog.dismiss()))
    opened.goto(served[0])
    opened.locator("#rows [role=gridcell]").first.wait_for()
    yield opened
    context.close()


def column(page, place):
    """The shown texts of one column."""
    return [text.strip() for text in page.locator(f"#rows [role=gridcell][data-col='{place}']").all_inner_texts()]


def test_rows_are_shown_ranked_with_their_intervals(page):
    page.wait_for_function("document.querySelectorAll('#rows .virtual-row').length === 3")
    assert column(page, 0) == ["1", "2", "3"]
    assert column(page, 1)[1:] == ["background-reader", "person-reader"]
    assert column(page, 2)[1] == "0.310 [0.275, 0.345]"
    assert column(page, 4)[2] == "1.0 [0.8, 1.3]"
    assert "3 of 4 rows." in page.inner_text("body")


def test_nothing_is_fetched_from_elsewhere(page, served):
    page.wait_for_timeout(1500)
    assert served[0] + "/" in page.asked
    assert [each for each in page.asked if not each.startswith((served[0], "data:", "blob:"))] == []


def test_hostile_names_stay_text(page):
    shown = column(page, 1)[0]
    assert shown.startswith("<script>alert(1)</script>|[x](javascript:alert(1))`")
    assert "**bold** $x^2$" in shown
    inside = page.locator("#rows [role=gridcell]").locator("a, b, strong, img, script, .katex")
    assert inside.count() == 0
    assert page.popped == []


def test_search_and_board_narrow_the_rows(page):
    page.get_by_label("Search models").fill("READER person")
    page.wait_for_function("document.querySelectorAll('#rows .virtual-row').length === 1")
    assert column(page, 1) == ["person-reader"]
    page.get_by_label("Search models").fill("")
    page.wait_for_function("document.querySelectorAll('#rows .virtual-row').length === 3")
    page.get_by_role("combobox", name="Board").click()
    page.get_by_role("option", name="coco-gender").click()
    page.wait_for_function("document.querySelectorAll('#rows .virtual-row').length === 1")
    assert column(page, 1) == ["elsewhere"]
    page.get_by_role("combobox", name="Board").click()
    page.get_by_role("option", name="All boards").click()
    page.wait_for_function("document.querySelectorAll('#rows .virtual-row').length === 4")


def test_a_search_that_finds_nothing_says_so(page):
    page.get_by_label("Search models").fill("no such model")
    page.get_by_text("0 of 4 rows.").wait_for()
    assert "person-reader" not in page.locator("#rows").inner_text()


def test_the_about_tab_says_what_the_numbers_mean(page):
    page.get_by_role("tab", name="About").click()
    page.get_by_text("What they do not mean").wait_for()
    assert "nothing here has verified them" in page.inner_text("body")


def test_a_new_row_is_there_when_the_page_is_opened_again(page, served):
    submit(served[1], "newcomer", "coco-gender", bias=0.2)
    page.reload()
    page.get_by_text("3 of 5 rows.").wait_for()
    assert "5 rows" in page.inner_text("body")


def test_it_fits_a_phone(served, browser):
    context = browser.new_context(viewport={"width": 390, "height": 800})
    context.set_default_timeout(PATIENCE)
    opened = context.new_page()
    opened.goto(served[0])
    opened.locator("#rows [role=gridcell]").first.wait_for()
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()


def test_an_empty_store_says_what_to_type(root, tmp_path):
    spec = importlib.util.spec_from_file_location("leaderboard_space", root / "spaces" / "leaderboard" / "app.py")
    app = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(app)
    value, line = app.view(LocalStore(tmp_path), "", app.ALL)
    assert value["data"] == []
    assert "truegap leaderboard submit" in line
    assert len(app.HEADERS) == len(app.DATATYPES) == len(app.WIDTHS)


def test_the_card_is_what_the_hub_reads(root):
    text = (root / "spaces" / "leaderboard" / "README.md").read_text()
    card = yaml.safe_load(text.split("---")[1])
    assert (card["sdk"], card["app_file"]) == ("gradio", "app.py")
    assert len(card["short_description"]) <= 60
    assert (root / "spaces" / "leaderboard" / card["app_file"]).is_file()
    assert "truegap[space]" in (root / "spaces" / "leaderboard" / "requirements.txt").read_text()

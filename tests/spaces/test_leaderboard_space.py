"""The Space as visitors meet it: a real server, a real browser."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from board_factory import HOSTILE_NAME, small_board, submit
from loopback_hub import READER_TOKEN, TOKEN, LoopbackHub
from queue_factory import CARD
from real_browser import PATIENCE
from served import serving
from tiny import save_clip
from truegap.cli.app import app
from truegap.cli.pages import load_page
from truegap.leaderboard import LocalStore, open_store, site, start_worker
from truegap.resources import house
from truegap.results.show import plain

gradio = pytest.importorskip("gradio", reason="gradio is not installed")
pytestmark = [pytest.mark.browser, pytest.mark.slow]


@dataclass
class Served:
    """A leaderboard that is served: where, from what, the keys of its rows, and the file of what it prints.

    Visitors log in by Gradio's mock; its Hub is on this machine.
    """

    address: str
    store: LocalStore
    keys: dict[str, str]
    log: Path
    hub: LoopbackHub
    benchmark: Path


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder, hub = tmp_path_factory.mktemp("served"), LoopbackHub()
    environment = {
        "HF_ENDPOINT": hub.endpoint,
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_CACHE": str(folder / "cache"),
        "HF_TOKEN": TOKEN,
        "TRUEGAP_BENCHMARKS": str(folder / "benchmark"),
        "TRUEGAP_LOGIN": "1",
    }
    store, keys = small_board(folder / "store")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        with serving("leaderboard", "serve", "--store", str(store.folder), log=folder / "log") as address:
            yield Served(address, store, keys, folder / "log", hub, folder / "benchmark")
    hub.close()


@pytest.fixture(scope="module")
def window(browser):
    """One page for all tests, with what it asked for, what it said and what popped up."""
    context = browser.new_context(viewport={"width": 1500, "height": 900})
    context.set_default_timeout(PATIENCE)
    opened = context.new_page()
    opened.asked, opened.said, opened.popped = [], [], []
    opened.on("request", lambda request: opened.asked.append(request.url))
    opened.on("console", lambda message: opened.said.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: opened.said.append(str(error)))
    opened.on("dialog", lambda dialog: (opened.popped.append(dialog.message), dialog.dismiss()))
    yield opened
    context.close()


@pytest.fixture
def visitor(window):
    """That page at its widest, wherever it was before."""
    window.set_viewport_size({"width": 1500, "height": 900})
    yield window
    assert window.popped == []
    assert window.said == []


@pytest.fixture
def page(visitor, served):
    """That page on the leaderboard."""
    visitor.goto(served.address)
    return visitor


def models(page):
    return page.locator("#rows tbody th[scope=row]").all_inner_texts()


def wait_for_rows(page, number):
    page.wait_for_function("n => document.querySelectorAll('#rows tbody th[scope=row]').length === n", arg=number)


def test_filters_and_sorting_are_in_the_address(page, served):
    page.get_by_label("Search models").fill("READER")
    wait_for_rows(page, 3)
    assert models(page) == ["background-reader", "near-reader", "person-reader"]
    assert page.locator("#rows tbody tr:not(.board)").first.inner_text().split("\t")[0] == "2="
    page.get_by_text("Source, type, size, columns").click()
    page.get_by_label("verified", exact=True).check()
    page.get_by_label("community", exact=True).check()
    wait_for_rows(page, 2)
    page.get_by_role("columnheader", name="Size").get_by_role("link").click()
    page.locator("#rows th[aria-sort=ascending]", has_text="Size").wait_for()
    page.get_by_role("columnheader", name="Size").get_by_role("link").click()
    page.locator("#rows th[aria-sort=descending]", has_text="Size").wait_for()
    assert models(page) == ["near-reader", "background-reader"]
    query = parse_qs(urlsplit(page.url).query)
    assert query == {"q": ["READER"], "kind": ["verified", "community"], "sort": ["size"], "desc": ["1"]}
    page.goto(page.url)
    assert models(page) == ["near-reader", "background-reader"]
    assert page.get_by_label("verified", exact=True).is_checked()
    page.get_by_label("Search models").fill("no such model")
    page.get_by_text("nothing matches").wait_for()
    assert [url for url in page.asked if not url.startswith((served.address, "data:", "blob:"))] == []


def test_hostile_names_stay_text(visitor, served):
    visitor.goto(f"{served.address}/?q=script")
    assert models(visitor) == [plain(HOSTILE_NAME, 120)]
    visitor.locator("#rows tbody th[scope=row] a").click()
    visitor.get_by_role("heading", level=1, name="<script>alert(1)</script>").wait_for()
    assert visitor.locator("#board").locator("img, script, b, strong, iframe").count() == 0


def test_the_plane_leads_to_a_models_page_and_back(page):
    page.get_by_role("link", name="Bias and sensitivity").click()
    dots = page.locator("svg.plane a")
    dots.first.wait_for()
    assert dots.count() == 4
    page.get_by_role("link", name="person-reader: bias 0.500").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=1, name="person-reader").wait_for()
    page.go_back()
    page.get_by_role("heading", level=1, name="Bias against sensitivity").wait_for()
    assert page.locator("svg.plane a").count() == 4


def test_a_models_page_is_an_address_and_two_are_compared(visitor, served):
    visitor.goto(f"{served.address}/?tab=model&model={served.keys['background-reader']}")
    assert visitor.locator("#configs tbody tr").count() == 15
    assert visitor.locator("#questions").get_by_text("a doctor").count() == 1
    visitor.get_by_label("Compare with").select_option(label="person-reader")
    visitor.get_by_role("button", name="Compare").click()
    visitor.get_by_text("background-reader is clearly less biased").wait_for()
    visitor.get_by_label("Another model").select_option(label="near-reader")
    visitor.get_by_text("is not clear").wait_for()
    assert parse_qs(urlsplit(visitor.url).query)["b"] == [served.keys["near-reader"]]
    with visitor.expect_download() as download:
        visitor.get_by_role("link", name="CSV").click()
    assert download.value.suggested_filename == "truegap-compared.csv"


def test_it_fits_a_phone_and_a_keyboard(visitor, served):
    visitor.set_viewport_size({"width": 390, "height": 800})
    for tab in ("table", "plane", "compare", "queue", "about", f"model&model={served.keys['hostile']}"):
        visitor.goto(f"{served.address}/?tab={tab}")
        assert visitor.evaluate("document.documentElement.scrollWidth") <= 390, tab
    visitor.goto(served.address)
    visitor.keyboard.press("Tab")
    assert visitor.evaluate("document.activeElement.textContent") == "Skip to the content"
    visitor.keyboard.press("Enter")
    assert visitor.evaluate("document.activeElement.id") == "main"


def test_a_new_row_is_there_when_the_page_is_opened_again(visitor, served):
    submit(served.store, "newcomer", "coco-gender", bias=0.2)
    visitor.goto(f"{served.address}/?q=newcomer")
    assert models(visitor) == ["newcomer"]


SAID = "wanted => document.querySelector('#said textarea')?.value.startsWith(wanted)"


def submit_by_form(page, model, expected, note=""):
    page.get_by_label("Model", exact=True).fill(model)
    page.get_by_label("Note").fill(note)
    page.get_by_role("button", name="Submit").click()
    page.wait_for_function(SAID, arg=expected)


def test_who_logs_in_submits_a_model_and_watches_it_become_a_row(page, served, tmp_path):
    """With a worker in a process of its own."""
    arguments = ["build", "synthetic", "--out", str(served.benchmark), "--limit", "4", "--workers", "1"]
    app([*arguments, "--configs", "original,control,color-strong"], standalone_mode=False)
    files = {path.name: path.read_bytes() for path in save_clip(tmp_path / "clip").iterdir()} | {"README.md": CARD}
    served.hub.commit("model", "org/clip", files)
    page.get_by_role("link", name="Submit").click()
    submit_by_form(page, "org/clip", "Not accepted: log in first")
    page.get_by_role("button", name="Sign in with Hugging Face").click()
    page.get_by_role("button", name="Logout (owner)").wait_for()
    submit_by_form(page, "<img src=x onerror=alert(5)>", "Not accepted: model <img")
    submit_by_form(page, "org/clip", "PENDING: org/clip", note="<b onclick=alert(6)>=1+1")
    assert page.locator("gradio-app img[src=x], gradio-app b").count() == 0
    page.get_by_role("link", name="Queue").first.click()
    page.get_by_text("1 PENDING").wait_for()
    assert "owner" in page.locator("#queue").inner_text()
    assert page.locator("#queue b").count() == 0
    worker = start_worker(served.store, device="cpu", log=tmp_path / "log")
    try:
        # Nobody touches the page: it renews itself.
        page.get_by_text("1 FINISHED").wait_for()
    finally:
        worker.terminate()
        worker.wait(300)
    page.goto(f"{served.address}/?q=clip&kind=verified")
    assert models(page) == [served.store.requests()[0].model]
    page.locator("#rows tbody th[scope=row] a").click()
    page.locator("#configs").wait_for()
    assert page.locator("#configs tbody tr").count() == 3
    # The pictures are drawn ones, which anybody may show.
    page.locator(".retrieved img").first.scroll_into_view_if_needed()
    page.wait_for_function("() => document.querySelector('.retrieved img').naturalWidth > 0")
    printed = served.log.read_text() + (tmp_path / "log").read_text()
    kept = b"".join(path.read_bytes() for path in served.store.folder.rglob("*") if path.is_file())
    assert TOKEN not in printed
    assert TOKEN.encode() not in kept


def test_nothing_can_be_uploaded(visitor, served):
    upload = visitor.request.post(f"{served.address}/gradio_api/upload", multipart={"files": "x" * 1000})
    assert upload.status == 403


def test_the_card_is_what_the_hub_reads(root):
    text = (root / "spaces" / "leaderboard" / "README.md").read_text()
    card = yaml.safe_load(text.split("---")[1])
    assert (card["sdk"], card["app_file"], card["hf_oauth"]) == ("gradio", "app.py", True)
    assert len(card["short_description"]) <= 60
    assert (root / "spaces" / "leaderboard" / card["app_file"]).is_file()
    assert "truegap[models,space]" in (root / "spaces" / "leaderboard" / "requirements.txt").read_text()


def test_a_space_that_may_not_write_serves_what_is_there(loopback_hub, capsys, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", READER_TOKEN)
    space = load_page("leaderboard")
    space.prepare(open_store("hf://org"))
    said = capsys.readouterr().err
    assert said.startswith("the table is not made anew: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("leaderboard", ["HF_TOKEN", "TRUEGAP_BENCHMARKS", "synthetic@v1"]),
        ("worker", ["HF_TOKEN", "TRUEGAP_BENCHMARKS", "synthetic@v1"]),
        ("recognition", ["TRUEGAP_BENCHMARK", "TRUEGAP_ANSWERS"]),
    ],
)
def test_a_card_says_what_the_space_needs(name, settings):
    _, front, text = house("spaces", name, "README.md").read_text(encoding="utf-8").split("---\n", 2)
    assert yaml.safe_load(front)["python_version"] == "3.12"
    assert [each for each in settings if each not in text] == []


def test_the_queue_goes_on_after_a_failure_and_leaves_alone_what_is_the_same(browser):
    def fragment(count):
        shown = f'<div id="results" data-refresh="1"><p id="count">{count}</p></div>'
        return (
            f'<main id="main" data-page="queue" data-query="?tab=queue" data-title="Queue" tabindex="-1">{shown}</main>'
        )

    page = browser.new_page()
    try:
        page.goto("about:blank")
        page.set_content(f'<div id="board">{fragment("1 PENDING")}</div>')
        page.evaluate(
            """texts => {
                window.calls = 0;
                window.first = document.getElementById("results");
                history.replaceState = () => {};
                window.fetch = async () => {
                    window.calls += 1;
                    if (window.calls === 3) window.kept = window.first.isConnected;
                    if (window.calls === 3) throw new Error("no network");
                    return new Response(texts[window.calls < 3 ? 0 : 1]);
                };
            }""",
            [fragment("1 PENDING"), fragment("1 FINISHED")],
        )
        page.add_script_tag(content=(Path(site.__file__).parent / "site.js").read_text(encoding="utf-8"))
        page.wait_for_function("document.getElementById('count').textContent === '1 FINISHED'", timeout=PATIENCE)
        assert page.evaluate("window.kept") is True
    finally:
        page.close()

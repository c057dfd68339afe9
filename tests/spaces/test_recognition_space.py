"""The human check as an annotator meets it: a real server, a real browser."""

from __future__ import annotations

import pytest
import yaml

from examples import selection
from real_browser import PATIENCE
from served import serving
from truegap.build import Plan, Workspace, build_shard
from truegap.recognition import AnswerFolder, items, read_study

gradio = pytest.importorskip("gradio", reason="gradio is not installed")
pytestmark = [pytest.mark.browser, pytest.mark.slow]

HOSTILE = "<img src=x onerror=alert(1)> ${alert(2)} {{constructor}}"


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    return tmp_path_factory.mktemp("answers")


@pytest.fixture(scope="module")
def address(answers, tmp_path_factory):
    """`truegap recognition serve` on eight pictures, run as a user runs it."""
    folder = tmp_path_factory.mktemp("built") / "b"
    workspace = Workspace(Plan("synthetic", "1.0.0", selection(4), ("color-strong", "object-strong")), folder)
    with workspace.opened():
        for task in workspace.tasks():
            build_shard(task)
        workspace.finish()
    asked = ["--answers", str(answers), "--configs", "color-strong,object-strong"]
    with serving("recognition", "serve", str(folder), *asked, log=answers / "log") as at:
        yield at


@pytest.fixture
def page(browser, address):
    """A phone, which says what it asked for and what popped up."""
    context = browser.new_context(viewport={"width": 390, "height": 800})
    context.set_default_timeout(PATIENCE)
    opened = context.new_page()
    opened.asked, opened.popped = [], []
    opened.on("request", lambda request: opened.asked.append(request.url))
    opened.on("dialog", lambda dialog: (opened.popped.append(dialog.message), dialog.dismiss()))
    opened.goto(address)
    yield opened
    assert opened.popped == []
    assert [url for url in opened.asked if not url.startswith((address, "data:", "blob:"))] == []
    context.close()


FAR = "wanted => document.querySelector('#far textarea, #far input')?.value.endsWith(wanted)"


def wait_for(page, wanted):
    page.wait_for_function(FAR, arg=wanted)


def begin(page, name):
    page.get_by_label("Your name or a nickname").fill(name)
    page.get_by_role("button", name="Begin or go on").click()


def test_who_stops_goes_on_at_the_next_picture_and_sees_the_agreement(page, address, answers):
    page.get_by_role("button", name="Begin or go on").click()
    page.wait_for_function("document.querySelector('#problem textarea, #problem input')?.value.includes('your name')")
    begin(page, HOSTILE)
    wait_for(page, "Picture 1 of 8, 0 answered")
    study = read_study(answers)
    labels = [study.images[item.image_id] for item in items(study, HOSTILE)]
    pictures = [page.locator("#picture img").get_attribute("src")]
    assert page.evaluate("document.querySelector('#picture img').naturalWidth") > 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.keyboard.press("1" if labels[0] == "woman" else "2")
    wait_for(page, "Picture 2 of 8, 1 answered")
    pictures.append(page.locator("#picture img").get_attribute("src"))
    page.get_by_role("button", name="Cannot tell").click()
    wait_for(page, "Picture 3 of 8, 2 answered")
    page.keyboard.press("b")
    wait_for(page, "Picture 2 of 8, 2 answered")
    assert page.locator("#picture img").get_attribute("src") == pictures[1] != pictures[0]
    page.get_by_role("button", name="Woman (1)" if labels[1] == "woman" else "Man (2)", exact=True).focus()
    page.keyboard.press("Enter")
    wait_for(page, "Picture 3 of 8, 2 answered")
    page.keyboard.press("3")
    wait_for(page, "Picture 4 of 8, 3 answered")
    page.reload()
    wait_for(page, "Picture 4 of 8, 3 answered")
    page.get_by_role("button", name="Agreement so far").click()
    page.get_by_role("button", name="Show agreement").click()
    page.locator("#agreement tbody tr").first.wait_for()
    cells = page.locator("#agreement tbody tr").first.locator("th, td").all_inner_texts()
    assert cells == ["all", "3", "66.7", "[20.8, 93.9]", "1"]
    assert page.locator("img[src=x]").count() == 0
    kept = AnswerFolder(answers).read().all
    assert [each.choice for each in kept] == [labels[0], "cannot tell", labels[1], "cannot tell"]
    assert {each.annotator for each in kept} == {HOSTILE}


def test_another_annotator_ends_and_nothing_on_the_page_names_an_image(page, answers):
    study = read_study(answers)
    begin(page, "Bob")
    told = page.evaluate("JSON.stringify(window.gradio_config)")
    for number in range(8):
        wait_for(page, f"Picture {number + 1} of 8, {number} answered")
        told += page.content()
        page.keyboard.press("2")
    page.get_by_text("you have answered every picture").wait_for()
    assert len(AnswerFolder(answers).of("Bob")) == study.n_items
    page.get_by_role("button", name="Somebody else").click()
    page.get_by_label("Your name or a nickname").wait_for()
    assert "base64" in told
    assert not [word for word in ("image_id", "-strong", study.content) if word in told]


def test_nothing_can_be_uploaded(page, address):
    upload = page.request.post(f"{address}/gradio_api/upload", multipart={"files": "x" * 1000})
    assert upload.status == 403


def test_the_card_is_what_the_hub_reads(root):
    folder = root / "spaces" / "recognition"
    card = yaml.safe_load((folder / "README.md").read_text().split("---")[1])
    assert (card["sdk"], card["app_file"]) == ("gradio", "app.py")
    assert len(card["short_description"]) <= 60
    assert (folder / card["app_file"]).is_file()
    assert "truegap[space]" in (folder / "requirements.txt").read_text()

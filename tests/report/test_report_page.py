import pytest

from real_browser import PATIENCE
from run_factory import HOSTILE, QUIET, make_pictures, make_run
from truegap.report import write_report

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_fits_and_asks_for_nothing(tmp_path, browser, width, scheme):
    runs = [make_run(tmp_path / "a"), make_run(tmp_path / "b", HOSTILE, deltas=QUIET)]
    make_pictures(runs[0].pictures)
    html, _ = write_report(runs, tmp_path / "out")
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    asked, said, dialogs = [], [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.goto(html.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("img").evaluate_all("all => all.every(each => each.naturalWidth > 0)")
    assert [each for each in asked if not each.startswith(("file:", "data:"))] == []
    assert (said, dialogs) == ([], [])
    lightness = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]")
    assert (lightness < 60) == (scheme == "dark")
    context.close()

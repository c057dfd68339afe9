"""How fast the leaderboard's pages are with 2,000 rows in a real Chromium, beside the same rows in a table of Gradio's.

python benchmarks/space.py [--rows 2000] [--rounds 7]
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

ROOT = Path(__file__).parents[1]
# The rows and the browser are those of the tests.
sys.path.insert(0, str(ROOT / "tests"))

from real_browser import FLAGS, executable  # noqa: E402
from run_factory import content, run_record, scores_record  # noqa: E402
from truegap.leaderboard import LocalStore, Row, row_of  # noqa: E402
from truegap.leaderboard.stored import written  # noqa: E402
from truegap.results.runs import Run  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BENCHMARKS = ("coco-gender", "facet", "miap", "phase", "synthetic")
FIRST, CLICK = 1.0, 0.3
"""Targets in seconds."""

_SEEN = """
(selector) => new MutationObserver((_, watch) => {
  if (document.querySelector(selector)) {
    watch.disconnect();
    requestAnimationFrame(() => setTimeout(() => { window.seenAfter = performance.now(); }));
  }
}).observe(document, {childList: true, subtree: true})
"""
_DONE = """
async ([selector, event, value]) => {
  const element = document.querySelector(selector), begun = performance.now();
  if (event === "click") element.click();
  else {
    if (element.type === "checkbox") element.checked = !element.checked; else element.value = value;
    element.dispatchEvent(new Event("input", {bubbles: true}));
  }
  while (!(DONE)) await new Promise(requestAnimationFrame);
  await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)));
  return performance.now() - begun;
}
"""
_TITLE = "document.querySelector('h1').textContent.trim()"
_STATUS = "document.getElementById('count').textContent"
_SORTED = "document.querySelector('#rows th[aria-sort]').innerText.startsWith('Size')"
STEPS = (
    # What is done, where, how, with what value, and by what the answer is known.
    ("search", "#f-q", "input", "model-1", f"!{_STATUS}.includes('of ' + window.all)"),
    ("clear the search", "#f-q", "input", "", f"{_STATUS}.includes('of ' + window.all)"),
    ("filter by a box", "input[value=verified]", "input", "", f"!{_STATUS}.includes('of ' + window.all)"),
    ("undo the box", "input[value=verified]", "input", "", f"{_STATUS}.includes('of ' + window.all)"),
    ("sort by size", "#rows a[href*='sort=size']", "click", "", _SORTED),
    ("next part", "#next", "click", "", f"{_STATUS}.startsWith('51 to')"),
    ("open a model", "#rows tbody th[scope=row] a", "click", "", f"{_TITLE}.startsWith('org/model')"),
    ("compare", "form button", "click", "", f"{_TITLE}.startsWith('Compare')"),
    ("open the plane", "nav li:nth-child(2) a", "click", "", f"{_TITLE}.startsWith('Bias')"),
    ("open the queue", "nav li:nth-child(5) a", "click", "", f"{_TITLE}.startsWith('Queue')"),
    ("open the table", "nav li:nth-child(1) a", "click", "", f"{_TITLE}.startsWith('Is the')"),
)


def rows(number: int) -> Iterator[Row]:
    """Rows of five boards, one of them with the numbers of a whole run."""
    draw = np.random.default_rng(0)
    template = run_record("template")
    for place in range(number):
        benchmark = BENCHMARKS[place % len(BENCHMARKS)]
        name = f"org/model-{place:04d}"
        record = template.model_copy(
            update={
                "model": template.model.model_copy(
                    update={"name": name, "content": content(name), "parameters": int(10 ** draw.uniform(7, 10.5))}
                ),
                "benchmark": template.benchmark.model_copy(update={"name": benchmark, "content": content(benchmark)}),
            }
        )
        scores = scores_record(record.run_id, bias=float(draw.uniform(0.1, 0.5)), width=float(draw.uniform(0.01, 0.06)))
        kind = ("verified", "community", "local")[place % 3]
        yield row_of(Run(record, scores, ROOT), kind=kind)  # type: ignore[arg-type]


@contextmanager
def served(command: list[str], **environment: str) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    everything = {**os.environ, "GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_OFFLINE": "1", **environment}
    everything["GRADIO_SERVER_PORT"] = str(port)
    server = subprocess.Popen([sys.executable, *command], env=everything, stdout=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}/"
    try:
        while True:
            try:
                urllib.request.urlopen(address, timeout=60).close()
                break
            except OSError:
                if server.poll() is not None:
                    raise SystemExit(f"{command[0]} ended before anybody could come") from None
                time.sleep(0.2)
        yield address
    finally:
        server.terminate()
        server.wait()


def first_view(browser: Browser, address: str, selector: str) -> tuple[float, Page]:
    """Seconds from the start of the navigation until the first row is painted, nothing cached; and the page."""
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    page.add_init_script(f"({_SEEN})({selector!r})")
    page.goto(address, wait_until="commit")
    page.wait_for_function("() => window.seenAfter !== undefined")
    return page.evaluate("window.seenAfter") / 1000, page


def clicks(page: Page) -> dict[str, float]:
    page.wait_for_load_state("load")
    page.evaluate("window.all = document.getElementById('count').textContent.match(/of (\\d+)/)[1]")
    return {
        name: page.evaluate(_DONE.replace("DONE", done), [selector, event, value]) / 1000
        for name, selector, event, value, done in STEPS
    }


def gradio_table(store: LocalStore) -> None:
    """The usual way, for comparison: all rows in a Dataframe of Gradio's, with a search on the server."""
    import gradio as gr

    names = ("rank", "model", "kind", "parameters", "bias", "null", "mean_delta", "delta_color", "delta_lighting")
    names += ("delta_object", "delta_background", "floor", "floor_hsv")
    held = [[row[name] for name in names] for row in store.table().to_pylist()]
    with gr.Blocks() as demo:
        text = gr.Textbox(label="Search models", elem_id="q")
        table = gr.Dataframe(held, headers=list(names), interactive=False, elem_id="table")
        text.change(lambda words: [row for row in held if words in row[1]], text, table, show_progress="hidden")
    demo.launch(ssr_mode=False, quiet=True, prevent_thread_lock=True)
    threading.Event().wait()


def usual(browser: Browser, address: str) -> tuple[float, float]:
    seconds, page = first_view(browser, address, "[role=gridcell]")
    page.wait_for_load_state("load")
    done = "document.querySelector('#table [role=gridcell][data-col=\"1\"]')?.innerText.trim() === 'org/model-1999'"
    searched = page.evaluate(_DONE.replace("DONE", done), ["#q textarea, #q input", "input", "1999"]) / 1000
    page.context.close()
    return seconds, searched


def report(name: str, seconds: list[float], target: float) -> None:
    middle = statistics.median(seconds)
    print(f"{name:<22}{middle:7.3f} s   worst {max(seconds):6.3f} s   {middle / target:5.2f} of {target} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--usual", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.usual:
        gradio_table(LocalStore(options.usual))
        return
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        store = LocalStore(Path(folder))
        store.results.mkdir(parents=True)
        for row in rows(options.rows):
            (store.results / f"{row.key}.json").write_bytes(written(row))
        begun = time.perf_counter()
        store.refresh()
        print(f"{options.rows} rows; table.parquet {store.path.stat().st_size / 1024:.0f} KiB", end=", ")
        print(f"prepared in {time.perf_counter() - begun:.1f} s")
        browser = playwright.chromium.launch(executable_path=executable(), args=list(FLAGS))
        app, other = [str(ROOT / "spaces/leaderboard/app.py")], [__file__, "--usual", folder]
        ours: list[float] = []
        theirs: list[tuple[float, float]] = []
        steps: dict[str, list[float]] = {name: [] for name, *_ in STEPS}
        with served(app, TRUEGAP_STORE=folder, TRUEGAP_WORKER="0") as here, served(other) as there:
            for place in range(options.rounds + 1):
                seconds, page = first_view(browser, here, "#rows tbody th")
                taken = clicks(page)
                page.context.close()
                # The first round warms both servers up.
                compared = usual(browser, there)
                if place:
                    ours.append(seconds)
                    theirs.append(compared)
                    for name, value in taken.items():
                        steps[name].append(value)
        browser.close()
    report("first view", ours, FIRST)
    for name, found in steps.items():
        report(name, found, CLICK)
    for place, name in enumerate(("first view", "search")):
        usually = statistics.median(each[place] for each in theirs)
        mine = statistics.median(ours if not place else steps["search"])
        print(f"gradio Dataframe, {name}: {usually:.3f} s, {usually / mine:.1f} times ours")


if __name__ == "__main__":
    main()

"""A real Chromium for tests, found where machines keep it; where there is none, tests skip with a reason."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = 300_000
"""Milliseconds that a browser may take for a step: machines that run tests are busy, and only a hang takes longer."""


def executable() -> str | None:
    """The browser's path: `$TRUEGAP_CHROMIUM`, else the first that is installed."""
    return os.environ.get("TRUEGAP_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser that these tests start and end; not longer, since Playwright keeps an event loop running meanwhile."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = executable()
    if path is None:
        pytest.skip("no Chromium found: run tests/setup_browser.sh or set TRUEGAP_CHROMIUM")
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=path, args=list(FLAGS), timeout=PATIENCE)
        yield launched
        launched.close()

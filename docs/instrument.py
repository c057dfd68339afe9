"""Makes the pictures of `docs/instrument.md` from the page of a finished check; needs playwright and Chromium.

truegap check-instrument --out /tmp/check
python docs/instrument.py /tmp/check
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

FIGURES = ("left", "growth", "matrix")


def main() -> None:
    """Writes the pictures."""
    page_file = Path(sys.argv[1]).resolve() / "index.html"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 900}, device_scale_factor=2, color_scheme="light")
        page.goto(page_file.as_uri())
        for name in FIGURES:
            picture = Image.open(io.BytesIO(page.locator(f"#figure-{name}").screenshot()))
            # A palette: a third of the size.
            small = picture.convert("RGB").quantize(64, dither=Image.Dither.NONE)
            small.save(Path(__file__).with_name(f"instrument-{name}.png"), optimize=True)
        browser.close()


if __name__ == "__main__":
    main()

"""Makes `docs/contact-sheet.png`, the README's picture of a built benchmark, from drawn pictures.

python docs/contact_sheet.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from PIL import Image

from truegap.build import Plan, Workspace, build_shard
from truegap.report.contact_sheet import choose_places, contact_sheet
from truegap.schema import CONFIGS
from truegap.synthetic.selection import selection


def main() -> None:
    """Writes the picture."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "synthetic"
        workspace = Workspace(Plan("synthetic", "1.0.0", selection(40, rho={"background": 0.9})), out)
        with workspace.opened():
            for task in workspace.tasks():
                build_shard(task)
            manifest = workspace.finish()
        places = choose_places(manifest, 3)
        sheet = contact_sheet(out, manifest, CONFIGS, places, width=1600)
    # A palette: a third of the size.
    small = sheet.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    small.save(Path(__file__).with_name("contact-sheet.png"), optimize=True)


if __name__ == "__main__":
    main()

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from truegap.perturbations import compiled

Pixels = np.ndarray


@pytest.fixture(autouse=True)
def machine_code(monkeypatch):
    """From the first pixel on: small pictures would be left to Pillow."""
    monkeypatch.setattr(compiled, "WORTHWHILE", 0)


@pytest.fixture(scope="session")
def photographs(root: Path) -> list[Pixels]:
    """Real photographs as RGB arrays: 25 shared ones, or those that scikit-image ships."""
    shared = Path(os.environ.get("TRUEGAP_SHARED", root.parent / "shared"))
    files = sorted(shared.glob("data/tiny_coco/*2017/*.jpg"))[:25]
    if files:
        return [np.asarray(Image.open(file).convert("RGB")) for file in files]
    from skimage import data

    return [data.astronaut(), data.coffee(), data.chelsea()]

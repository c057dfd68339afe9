"""Every test runs without a network, without tokens and with caches of its own."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from real_browser import browser

__all__ = ["browser"]

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ["HF_EVALUATE_OFFLINE"] = "1"
os.environ["HF_UPDATE_DOWNLOAD_COUNTS"] = "0"
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
for token in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
    os.environ.pop(token, None)

# A shell that runs this in the background has interrupts ignored, and so would every command that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session", autouse=True)
def _own_caches(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Given a folder of this test run, every library's cache is inside it."""
    home = tmp_path_factory.mktemp("caches")
    import datasets.config
    import evaluate.config
    import huggingface_hub.constants

    os.environ["HF_HOME"] = str(home)
    os.environ["HF_HUB_CACHE"] = huggingface_hub.constants.HF_HUB_CACHE = str(home / "hub")
    huggingface_hub.constants.HF_TOKEN_PATH = str(home / "token")
    datasets.config.HF_DATASETS_CACHE = home / "datasets"
    evaluate.config.HF_EVALUATE_CACHE = home / "evaluate"
    evaluate.config.HF_METRICS_CACHE = home / "metrics"
    evaluate.config.HF_MODULES_CACHE = home / "modules"
    os.environ["HF_DATASETS_CACHE"] = str(home / "datasets")
    os.environ["TRUEGAP_CACHE"] = str(home / "truegap")


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared real data, which is not part of the repository."""
    folder = Path(os.environ.get("TRUEGAP_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"shared data is absent: {folder} (set TRUEGAP_SHARED to a copy)")
    return folder

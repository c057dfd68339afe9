"""Every test runs without a network, without tokens and with caches of its own."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from filelock import FileLock

from loopback_hub import LoopbackHub
from ray_cluster import address, cluster
from real_browser import browser

__all__ = ["address", "browser", "cluster"]

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ["HF_EVALUATE_OFFLINE"] = "1"
os.environ["HF_UPDATE_DOWNLOAD_COUNTS"] = "0"
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
if "PYTEST_XDIST_WORKER" in os.environ:
    # The workers are the parallelism; the threads of each would wait for the other's cores.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
for token in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
    os.environ.pop(token, None)

# A shell that runs this in the background has interrupts ignored, and so would every command that a test interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).parent
ROOT = TESTS.parent
CACHES = {
    "datasets.config.HF_DATASETS_CACHE": "datasets",
    "evaluate.config.HF_EVALUATE_CACHE": "evaluate",
    "evaluate.config.HF_METRICS_CACHE": "metrics",
    "evaluate.config.HF_MODULES_CACHE": "modules",
}
"""Where `datasets` and `evaluate` keep things: they read it from the environment once, as they are imported."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is loaded while tests are collected stays: nobody looks through it for garbage, then or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    """Libraries count what was never looked through as leaked."""
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Tests hold no doctests; to look for some would load what they share a second time."""
    found = yield
    return [each for each in found if not (isinstance(each, DoctestModule) and TESTS in file_path.parents)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first: none of them is left for one worker while the other has nothing to do."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session", autouse=True)
def _own_caches(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Given a folder of this test run, every library's cache is inside it."""
    home = tmp_path_factory.mktemp("caches")
    import huggingface_hub.constants

    os.environ["HF_HOME"] = str(home)
    os.environ["HF_HUB_CACHE"] = huggingface_hub.constants.HF_HUB_CACHE = str(home / "hub")
    huggingface_hub.constants.HF_TOKEN_PATH = str(home / "token")
    os.environ["HF_DATASETS_CACHE"] = str(home / "datasets")
    os.environ["TRUEGAP_CACHE"] = str(home / "truegap")
    # Those that are imported already; `evaluate` takes seconds, which tests that do not need it are spared.
    for name, folder in CACHES.items():
        module, _, constant = name.rpartition(".")
        if module in sys.modules:
            setattr(sys.modules[module], constant, home / folder)


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


@pytest.fixture(scope="session")
def demo_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the demo's models, fitted once for all workers; beside it, as JSON, what the fit told."""
    from truegap.synthetic import fit_demo_models

    top = tmp_path_factory.getbasetemp()
    folder = (top.parent if "PYTEST_XDIST_WORKER" in os.environ else top) / "demo-models"
    told = folder.with_suffix(".json")
    with FileLock(folder.with_suffix(".lock")):
        if not told.exists():
            heard: list[tuple[str, float]] = []
            fit_demo_models(folder, progress=lambda doing, share: heard.append((doing, share)))
            told.write_text(json.dumps(heard))
    return folder


@pytest.fixture
def loopback_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[LoopbackHub]:
    """A Hub on this machine, which this process talks to for one test; `hub.connect` again brings a token."""
    hub = LoopbackHub()
    hub.connect(monkeypatch, tmp_path / "hub-cache")
    yield hub
    hub.close()

"""A real Ray cluster of two workers, for the tests of a module."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
WORKERS = 2


@pytest.fixture(scope="module")
def address():
    """A cluster of two workers, ended with the module."""
    pytest.importorskip("ray", reason="ray is not installed: pip install 'truegap[ray]'")
    # Ray puts sockets there, whose paths may have 107 characters at most.
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    options = ["--port=0", f"--num-cpus={WORKERS}", "--include-dashboard=false", "--object-store-memory=80000000"]
    command = [Path(sys.executable).with_name("ray"), "start", "--head", "--block", "--disable-usage-stats", *options]
    log = folder / "log"
    with log.open("wb") as output:
        cluster = subprocess.Popen(
            [*command, f"--temp-dir={folder}"],
            stdout=output,
            stderr=output,
            env={**os.environ, "PYTHONPATH": str(TESTS), "RAY_USAGE_STATS_ENABLED": "0"},
        )
    try:
        where = folder / "ray_current_cluster"
        # It says that it has started and writes its address, one or the other first.
        until(
            lambda: (
                cluster.poll() is not None
                or ("Ray runtime started" in log.read_text() and where.is_file() and where.read_text())
            )
        )
        assert cluster.poll() is None, log.read_text()
        yield where.read_text().strip()
    finally:
        cluster.terminate()
        cluster.wait(300)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def cluster(address):
    """A connection that all tests share; Ray starts new workers for every connection."""
    import ray

    ray.init(address=address, logging_level="ERROR", log_to_driver=False)
    yield address
    ray.shutdown()


def until(true, seconds: float = 600) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)

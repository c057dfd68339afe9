"""One small check, finished once for all tests of this folder."""

from __future__ import annotations

import os
from contextlib import contextmanager

import pytest
from filelock import FileLock

from truegap.instrument import Profile, check, check_instrument
from truegap.results.environment import environment

TINY = Profile("lite", 16, (0.0, 0.9), 2, 12, 6, 2, 30)


@contextmanager
def silent(_what, _total):
    yield lambda _steps: None


@pytest.fixture(scope="session", autouse=True)
def _one_state_of_the_code():
    """A commit while tests run must not end them."""
    here = environment()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "environment", lambda: here)
        yield


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """Measured by the worker that comes first; the others judge its runs for themselves."""
    top = tmp_path_factory.getbasetemp()
    folder = (top.parent if "PYTEST_XDIST_WORKER" in os.environ else top) / "instrument-check"
    with FileLock(folder.with_suffix(".lock")):
        return folder, check_instrument(folder, TINY, workers=1, progress=silent), TINY

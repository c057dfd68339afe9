from __future__ import annotations

import subprocess
import sys

import pytest

from truegap.cli import main


@pytest.fixture
def truegap_here(monkeypatch, capfd):
    """Runs the command in this process, which has loaded its libraries already."""

    def run(*arguments: object) -> subprocess.CompletedProcess:
        monkeypatch.setattr(sys, "argv", ["truegap", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capfd.readouterr()
        return subprocess.CompletedProcess(sys.argv, ended.value.code, said.out, said.err)

    return run

"""The script that installs a browser for the tests, with an apt-get of our own."""

import subprocess

import pytest


@pytest.fixture
def setup(root, tmp_path):
    """Calls the script where only what is given can be found."""

    def call(apt_get, **environment):
        for name, does in {"id": "echo 0", "apt-get": apt_get}.items():
            (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
            (tmp_path / name).chmod(0o755)
        environment["PATH"] = str(tmp_path)
        command = ["/bin/sh", str(root / "tests" / "setup_browser.sh")]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    return call


def test_what_apt_get_said_is_shown_where_it_failed(setup):
    said = setup("echo 'E: Unable to locate package chromium' >&2; exit 100")
    assert said.splitlines() == [
        "E: Unable to locate package chromium",
        "browser tests will skip: apt-get could not install chromium (see above)",
    ]


def test_where_it_worked_it_is_one_line(setup):
    assert setup("echo Unpacking") == "installed chromium for the browser tests\n"


def test_a_browser_of_ones_own_is_left_alone(setup):
    assert setup("exit 1", TRUEGAP_CHROMIUM="/bin/sh") == ""

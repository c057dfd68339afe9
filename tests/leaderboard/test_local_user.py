"""The name of who asks on a machine of one's own: always one that a request takes."""

import getpass

import pytest

from truegap.leaderboard import local_user
from truegap.leaderboard.request import USER


@pytest.mark.parametrize(
    ("name", "taken"),
    [("ada", "ada"), ("DOM\\ada l.", "DOM-ada-l."), ("_x", "x"), ("é", "local"), ("a" * 200, "a" * 96)],
)
def test_a_name_is_made_one_that_a_request_takes(monkeypatch, name, taken):
    monkeypatch.setattr(getpass, "getuser", lambda: name)
    assert local_user() == taken
    assert USER.fullmatch(local_user())


@pytest.mark.parametrize("error", [KeyError, OSError])
def test_a_machine_that_knows_no_name_has_one_user(monkeypatch, error):
    def nobody():
        raise error("uid not found: 1234")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert local_user() == "local"

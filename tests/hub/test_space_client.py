"""Asking a leaderboard's Space: where the user's token goes, and what a hostile or broken answer does."""

import http.server
import threading

import pytest

from loopback_hub import TOKEN, Repository
from truegap.errors import UserError
from truegap.hub.space import ask_space
from truegap.hub.tokens import Owner, owner_of

ASKED = {"model": "org/clip"}


@pytest.fixture
def space(loopback_hub, monkeypatch):
    """A server that answers what it is told to, that the Hub names as the Space `org/board`; and what it was shown."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            server.shown.append(self.headers.get("authorization"))
            status, body, headers = server.answer
            self.send_response(status)
            for name, value in {"content-length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.shown, server.address = [], f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    loopback_hub.repositories["space", "org/board"] = found = Repository(info={"host": server.address})
    found.add({}, "first", "main")
    yield server
    server.shutdown()
    server.server_close()


def refusal(space, asked=ASKED):
    with pytest.raises(UserError) as refused:
        ask_space(space, asked)
    assert "\n" not in str(refused.value)
    assert TOKEN not in str(refused.value)
    assert refused.value.__cause__ is None
    return str(refused.value)


@pytest.mark.parametrize(
    "address",
    [
        "http://org-board.hf.space",
        "https://evil.example",
        "https://hf.space.evil.example",
        "https://evil.example/.hf.space",
        "https://evil.example#.hf.space",
        "https://evilhf.space",
        "https://org-board.hf.space:8443",
        "https://org-board.hf.space@evil.example",
        "ftp://org-board.hf.space",
        "https://huggingface.co.evil.example/spaces/org/board",
        "http://127.0.0.1.evil.example",
        "http://[",
        "org/board/../x",
        "",
    ],
)
def test_the_token_goes_to_spaces_of_the_hub_alone(space, address):
    assert "your token goes nowhere else" in refusal(address)


def test_the_hub_says_where_a_space_is(space, loopback_hub):
    space.answer = 201, b'{"key": "ab"}', {}
    assert ask_space("org/board", ASKED) == {"key": "ab"}
    assert ask_space(space.address, ASKED) == {"key": "ab"}
    assert space.shown == [f"Bearer {TOKEN}", None]
    # What a shell gives that is no text is sent all the same; the Space refuses it.
    assert ask_space("org/board", ASKED | {"note": "\udcff"}) == {"key": "ab"}
    loopback_hub.repositories["space", "org/board"].info = {}
    assert "does not say where it runs" in refusal("org/board")
    assert "no such repository" in refusal("org/nothing")


def test_no_redirect_is_followed_with_the_token(space):
    space.answer = 307, b"", {"location": f"{space.address}/elsewhere"}
    assert "leads to another address" in refusal("org/board")
    assert len(space.shown) == 1


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((422, b'{"error": "\\u001b[31mno\\nlicence <b>"}', {}), "space org/board: [31mno licence <b>"),
        ((401, b'{"error": "' + TOKEN.encode() + b' is not known"}', {}), "space org/board: … is not known"),
        ((404, b"<html>", {}), "no API of a leaderboard at this address"),
        ((503, b"asleep", {}), "does not run now"),
        ((429, b"too many requests", {}), "too much from your address"),
        ((200, b"{}", {}), "not one of a leaderboard (HTTP 200)"),
        ((201, b"{}", {}), "not one of a leaderboard"),
        ((201, b"[" * 100_000, {}), "not one of a leaderboard"),
        ((500, b'{"error": {"a": 1}}', {}), "(HTTP 500)"),
        ((201, b"x" * 1_500_000, {}), "too long"),
        ((201, b"x", {"content-length": "5"}), "no answer"),
    ],
)
def test_whatever_it_answers_is_one_line(space, answer, said):
    space.answer = answer
    assert said in refusal("org/board")


def test_who_is_not_logged_in_or_offline_is_told(space, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    assert refusal("https://org-board.hf.space") == "you are not logged in: `hf auth login`"
    monkeypatch.setenv("HF_TOKEN", "hf_caf\u00e9IsNoToken")
    assert "characters that no token has" in refusal("https://org-board.hf.space")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE keeps the Hub away" in refusal("https://org-board.hf.space")


def test_a_server_that_is_not_there_is_told(space):
    assert "no answer" in refusal("http://127.0.0.1:9")


def test_whose_a_token_is_the_hub_says(loopback_hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert owner_of(TOKEN) == Owner("owner")
    for unknown in ("", "hf_nobody'sToken", "a b c d e f g", "hf_\nx-evil: 1234567", "é" * 20, "x" * 5000):
        assert owner_of(unknown) is None
    loopback_hub.broken = 500
    with pytest.raises(UserError) as failed:
        owner_of(TOKEN)
    assert TOKEN not in str(failed.value)
    assert failed.value.__suppress_context__

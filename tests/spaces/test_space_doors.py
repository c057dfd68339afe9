"""Every door through which a Space takes submissions, on a real server: the form, Gradio's own API, ours, a command."""

import json
import logging
import threading
from dataclasses import dataclass

import httpx2
import pytest
from typer.testing import CliRunner

from loopback_hub import READER_TOKEN, TOKEN, LoopbackHub, Repository, User
from queue_factory import hub_model, manifest
from truegap.cli.app import app
from truegap.cli.pages import load_page
from truegap.errors import UserError
from truegap.leaderboard import LocalStore

gradio = pytest.importorskip("gradio", reason="gradio is not installed")
pytestmark = pytest.mark.slow

ADA = "hf_aTokenOfAdaWhichReadsNothing"
HOST = "org-board.hf.space"
FORM = ["org/clip", "main", "org/bench", "retrieval", "lite", "", False]


@dataclass
class Door:
    """A Space that is served from this process, its store and its Hub."""

    address: str
    store: LocalStore
    hub: LoopbackHub


@pytest.fixture(scope="module")
def door(tmp_path_factory):
    import huggingface_hub.hf_api

    folder, hub = tmp_path_factory.mktemp("space"), LoopbackHub()
    hub.users[ADA] = User("ada", ("org",), writes=False)
    hub.commit("model", "org/clip", hub_model())
    hub.commit("dataset", "org/bench", {"manifest.json": manifest()})
    with pytest.MonkeyPatch.context() as patch:
        hub.connect(patch, folder / "cache", TOKEN)
        # Gradio's mock asks who the machine's user is, of a Hub that was chosen when it was imported.
        patch.setattr(huggingface_hub.hf_api.api, "endpoint", hub.endpoint)
        for name, value in {"SPACE_ID": "org/board", "SPACE_HOST": HOST, "TRUEGAP_BENCHMARKS": "org/bench"}.items():
            patch.setenv(name, value)
        store, space = LocalStore(folder / "store"), load_page("leaderboard")
        board, up = space.build(store), threading.Event()
        threading.Thread(target=space.serve, args=(board, "127.0.0.1", None, up.set), daemon=True).start()
        assert up.wait(300)
        address = board.form.local_url.rstrip("/")
        hub.repositories["space", "org/board"] = Repository(info={"host": address})
        hub.repositories["space", "org/board"].add({}, "first", "main")
        yield Door(address, store, hub)
        board.form.close()
    hub.close()


@pytest.fixture(scope="module")
def cookie(door):
    """Of who is logged in as `owner`."""
    return httpx2.get(f"{door.address}/login/callback").headers["set-cookie"].partition(";")[0]


def by_form(door, cookie, *changes, **headers):
    """What the form answers, as Gradio's page asks it."""
    data = [*FORM[: len(FORM) - len(changes)], *changes]
    where = f"{door.address}/gradio_api/run/submit"
    return httpx2.post(where, json={"data": data}, headers={"cookie": cookie, "host": HOST} | headers, timeout=60)


def by_api(door, token, **asked):
    asked = {"model": "org/clip", "benchmark": "org/bench", "protocol": "retrieval"} | asked
    return httpx2.post(
        f"{door.address}/api/requests", json=asked, headers={"authorization": f"Bearer {token}"}, timeout=60
    )


def run(*arguments):
    typed = ["submit", "--model", "org/clip", "--benchmark", "org/bench", "--protocol", "vqa", *arguments]
    return CliRunner().invoke(app, ["leaderboard", *typed])


def test_gradios_own_client_submits_nothing_for_nobody(door):
    client = pytest.importorskip("gradio_client").Client(door.address, verbose=False)
    assert client.predict(*FORM, api_name="/submit") == "Not accepted: log in first, with the button above."
    # Whose token a program shows is known to our API alone.
    client = pytest.importorskip("gradio_client").Client(
        door.address, verbose=False, headers={"authorization": f"Bearer {ADA}"}
    )
    assert client.predict(*FORM, api_name="/submit").startswith("Not accepted: log in")
    assert door.store.requests() == []


@pytest.mark.parametrize("path", ["run/submit", "call/submit", "queue/join"])
def test_a_page_of_another_site_submits_nothing_in_the_name_of_who_is_logged_in(door, cookie, path):
    body = json.dumps({"data": FORM, "fn_index": 1, "session_hash": "x"})
    for origin in ("https://evil.example", "null", "https://evil.hf.space"):
        for kind in ("application/json", "text/plain"):
            headers = {"cookie": cookie, "host": HOST, "origin": origin, "content-type": kind}
            answer = httpx2.post(f"{door.address}/gradio_api/{path}", content=body, headers=headers)
            assert (answer.status_code, answer.text) == (403, "sent by a page of another site: open this one")
    assert door.store.requests() == []


def test_form_and_api_count_together(door, cookie):
    own = {"origin": f"https://{HOST}"}
    for protocol in ("retrieval", "vqa", "resolution"):
        assert "PENDING: org/clip" in by_form(door, cookie, protocol, "full", "", False, **own).text
    for protocol in ("retrieval-occupations", "counterfactual"):
        assert by_api(door, TOKEN, protocol=protocol).status_code == 201
    # Five are not finished: neither door takes the sixth, and after that the minute is over.
    assert "5 requests of owner are not finished" in by_form(door, cookie, **own).text
    answer = by_api(door, TOKEN)
    assert (answer.status_code, "may ask 6 times a minute" in answer.text) == (429, True)
    assert "may ask 6 times a minute" in by_form(door, cookie, **own).text
    assert [each.user for each in door.store.requests()] == ["owner"] * 5
    # Gradio tells nobody how often and how long.
    assert httpx2.get(f"{door.address}/monitoring/summary").status_code == 403


def test_the_command_asks_in_the_name_of_the_users_token_which_is_nowhere_seen(door, monkeypatch, caplog, capfd):
    monkeypatch.setenv("HF_TOKEN", ADA)
    with caplog.at_level(logging.DEBUG):
        done = run("--space", "org/board", "--note", "mine")
        again = run("--space", f"{door.hub.endpoint}/spaces/org/board", "--json")
        told = json.loads(run("--space", "org/board", "--protocol", "retrieval", "--json").stdout)
    assert done.stdout.startswith("waits: PENDING")
    assert "org/clip@" in done.stdout
    assert isinstance(again.exception, UserError)
    assert "was submitted already by ada and is PENDING: see the queue" in str(again.exception)
    assert (told["user"], told["protocol"]) == ("ada", "retrieval")
    assert sum(each.user == "ada" for each in door.store.requests()) == 2
    # It was shown to the Hub, and stands nowhere.
    assert ("api", ADA) in door.hub.tokens
    kept = b"".join(path.read_bytes() for path in door.store.folder.rglob("*") if path.is_file()).decode()
    pages = "".join(httpx2.get(f"{door.address}{path}").text for path in ("/?tab=queue", "/api/requests"))
    said = done.output + again.output + str(again.exception) + json.dumps(told)
    assert ADA not in "".join((*capfd.readouterr(), caplog.text, kept, pages, said))


def test_a_leaderboard_at_an_address_of_this_machine_sees_no_token(door, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", READER_TOKEN)
    asked = door.hub.asked["GET /api/whoami-v2"]
    done = run("--space", door.address)
    assert "show a token that the Hub knows" in str(done.exception)
    assert door.hub.asked["GET /api/whoami-v2"] == asked

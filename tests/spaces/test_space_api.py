"""The API of the Space and what stands before it: who may ask, how much, and what hostile requests get."""

import asyncio
import itertools
import json
import threading
from urllib.parse import urljoin

import pytest

from loopback_hub import READER_TOKEN, TOKEN
from queue_factory import hub_model, make_request, manifest
from truegap.cli.pages import load_page
from truegap.leaderboard import LocalStore
from truegap.leaderboard.desk import Desk
from truegap.leaderboard.request import now, stamp
from truegap.leaderboard.site import Api, Narrow, NotAllowedError, Pages, Rates, Throttle, parse

pytest.importorskip("gradio", reason="gradio is not installed")

PATH = "/api/requests"
ASKED = {"model": "org/clip", "benchmark": "org/bench", "protocol": "retrieval"}
VISITOR = "8.8.4.4"
HOSTILE = [
    "<script>alert(1)</script>",
    "=HYPERLINK('http://evil.example')",
    "../../etc/passwd",
    "x\x00y\r\nset-cookie: a=b",
    "\ud800\u202e{{7*7}}",
    "\u200b a \u200b \x00 b",
    "org/clip@refs/pr/1",
]


@pytest.fixture(scope="module")
def space():
    return load_page("leaderboard")


@pytest.fixture
def hub(loopback_hub, monkeypatch):
    """The Hub with a model and a benchmark; this process is a Space's, and has a token of its own."""
    loopback_hub.commit("model", "org/clip", hub_model())
    loopback_hub.commit("dataset", "org/bench", {"manifest.json": manifest()})
    monkeypatch.setenv("SPACE_ID", "org/board")
    monkeypatch.setenv("TRUEGAP_BENCHMARKS", "org/bench")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    return loopback_hub


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "store")


@pytest.fixture
def site(space, hub, store):
    return stack(space, store)


async def below(scope, receive, send):
    """The app that stands for Gradio's."""
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"below"})


def stack(space, store):
    """All layers of the Space over an app that is not Gradio's, as they are served."""
    board = space.Leaderboard(Pages(store), None, Desk(store))
    app = below
    for layer in reversed(space._layers(board)):
        app = layer.cls(app, **layer.kwargs)
    return app


async def call(app, path=PATH, *, body=None, method="", client="10.0.0.1", query="", **headers):
    """Status, headers and content of one request; a header's name has `_` for `-`."""
    if isinstance(body, dict):
        body, headers = json.dumps(body).encode(), {"content_type": "application/json"} | headers
    sent = []

    async def receive():
        return {"type": "http.request", "body": body or b"", "more_body": False}

    async def send(message):
        sent.append(message)

    said = {"host": "org-board.hf.space", "x_forwarded_for": VISITOR} | headers
    scope = {
        "type": "http",
        "method": method or ("GET" if body is None else "POST"),
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in said.items()],
        "client": (client, 50_000),
    }
    await app(scope, receive, send)
    content = b"".join(each.get("body", b"") for each in sent[1:])
    head = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], head, json.loads(content) if "json" in head.get("content-type", "") else content.decode()


def ask(app, path=PATH, **request):
    return asyncio.run(call(app, path, **request))


def post(app, token=READER_TOKEN, **changes):
    """What the API answers to a request for a model, with these fields changed."""
    return ask(app, body=ASKED | changes, authorization=f"Bearer {token}")


def test_a_request_is_made_in_the_name_of_whom_the_token_belongs_to(site, hub, store, capfd):
    status, head, made = post(site, note="two\nwords", profile="full")
    assert status == 201
    assert (made["state"], made["user"], made["note"], made["profile"]) == ("PENDING", "reader", "two words", "full")
    (held,) = store.requests()
    assert held.model_dump() == {**held.model_dump(), **made}
    assert urljoin(f"https://x{PATH}", head["location"]) == f"https://x{PATH}/{held.key}"
    assert ask(site)[2] == {"total": 1, "requests": [made]}
    for found in (head["location"], f"{PATH}/{held.key[:12]}"):
        assert ask(site, found)[2] == made | {"log": ""}
    assert ask(site, "/api")[2]["benchmarks"] == ["org/bench"]
    # The token was shown to the Hub, once, and is nowhere else.
    assert hub.tokens >= {("api", READER_TOKEN)}
    assert hub.asked["GET /api/whoami-v2"] == 1
    kept = b"".join(path.read_bytes() for path in store.folder.rglob("*") if path.is_file())
    assert READER_TOKEN not in "".join((*capfd.readouterr(), str(made), str(head), kept.decode()))


@pytest.mark.parametrize(
    "shown",
    [
        {},
        {"authorization": ""},
        {"authorization": "Bearer hf_nobodyHasThisToken"},
        {"authorization": f"Basic {READER_TOKEN}"},
        {"authorization": f"Bearer {READER_TOKEN} x"},
        {"authorization": "Bearer hf_\x01\x02\x03\x04\x05\x06"},
        {"authorization": f"Bearer {READER_TOKEN}", "Authorization": f"Bearer {TOKEN}"},
        {"cookie": f"session={READER_TOKEN}"},
    ],
)
def test_without_a_token_of_a_user_nothing_is_asked_for(site, store, shown, capfd):
    status, head, said = ask(site, body=ASKED, **shown)
    assert (status, head["www-authenticate"], list(said)) == (401, "Bearer", ["error"])
    assert "\n" not in said["error"]
    assert "https://huggingface.co/settings/tokens" in said["error"]
    for token in ("hf_nobody", READER_TOKEN):
        assert token not in str(said) + "".join(capfd.readouterr())
    assert store.requests() == []


@pytest.mark.parametrize("failure", [429, 500, 503])
def test_a_hub_that_fails_takes_no_request(site, hub, store, failure, capfd):
    hub.failing["whoami"] = failure
    status, _, said = post(site)
    assert (status, store.requests()) == (503, [])
    assert "try again in a minute" in said["error"]
    assert READER_TOKEN not in str(said) + "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("status", "request_"),
    [
        (415, {"body": json.dumps(ASKED).encode(), "content_type": "text/plain"}),
        (415, {"body": json.dumps(ASKED).encode(), "content_type": "application/x-www-form-urlencoded"}),
        (415, {"body": ASKED, "content_encoding": "gzip"}),
        (413, {"body": ASKED | {"note": "x" * 17_000}}),
        (413, {"body": ASKED | {"note": "x" * 70_000}}),
        (422, {"body": b"{", "content_type": "application/json"}),
        (422, {"body": b"\xff\xfe", "content_type": "application/json"}),
        (422, {"body": b"[" * 16_000, "content_type": "application/json"}),
        (422, {"body": b"[]", "content_type": "application/json"}),
        (422, {"body": ASKED | {"user": "owner"}}),
        (422, {"body": ASKED | {READER_TOKEN: 1}}),
        (422, {"body": {"model": "org/clip"}}),
        (422, {"body": ASKED | {"model": {"a": 1}}}),
        (422, {"body": ASKED | {"note": 5}}),
        (422, {"body": ASKED | {"revision": "x" * 301}}),
        (422, {"body": ASKED | {"pull_request": "yes"}}),
        (403, {"body": ASKED, "origin": "https://evil.example"}),
        (403, {"body": ASKED, "origin": "https://org-board.hf.space"}),
        (403, {"origin": "null"}),
        (405, {"body": ASKED, "path": "/api"}),
        (405, {"method": "DELETE"}),
        (405, {"method": "OPTIONS"}),
        (404, {"path": "/api/users"}),
        (404, {"path": f"{PATH}/{'0' * 12}"}),
        (404, {"path": f"{PATH}/../../etc"}),
    ],
)
def test_what_is_no_request_gets_its_status_and_one_line(site, store, status, request_):
    found, _, said = ask(site, authorization=f"Bearer {READER_TOKEN}", **request_)
    assert found == status
    assert READER_TOKEN not in str(said)
    assert isinstance(said, str) or (list(said) == ["error"] and "\n" not in said["error"])
    assert store.requests() == []


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_in_any_field_is_refused_or_stays_text(space, hub, store, text):
    site = stack(space, store)
    for field in ("model", "revision", "benchmark", "protocol", "profile"):
        status, head, said = post(site, **{field: text})
        assert status == 422, (field, said)
        assert said["error"].isprintable()
        assert "set-cookie" not in head
    assert store.requests() == []
    # The sixth of this minute.
    assert post(site, note=text)[0] == 201
    shown = Pages(store).document(parse("?tab=queue"))
    assert "<script>alert" not in shown
    assert ask(site)[2]["requests"][0]["note"].isprintable()


def test_the_same_is_asked_once_and_a_user_only_so_much(site, store):
    assert post(site)[0] == 201
    status, _, said = post(site)
    assert (status, "was submitted already by reader" in said["error"]) == (409, True)
    for protocol in ("vqa", "resolution", "counterfactual", "retrieval-occupations"):
        assert post(site, protocol=protocol)[0] == 201
    status, head, said = post(site, profile="full")
    assert (status, head["retry-after"]) == (429, str(int(head["retry-after"])))
    assert "may ask 6 times a minute" in said["error"]
    # In another minute, five are still not finished.
    status, _, said = post(stack(load_page("leaderboard"), store), profile="full")
    assert (status, "5 requests of reader are not finished" in said["error"]) == (429, True)
    assert len(store.requests()) == 5


def test_ten_requests_are_a_day(site, store):
    for n in range(10):
        done = {"state": "FINISHED", "user": "reader", "submitted": stamp(now())}
        store.put_request(make_request(revision=f"{n:040x}", **done), None)
    status, _, said = post(site)
    assert (status, "10 requests of reader within a day are the most" in said["error"]) == (429, True)
    assert post(site, token=TOKEN)[0] == 201


def test_while_many_are_looked_at_further_ones_are_put_off(store):
    # Given a Hub that does not say whose a token is
    held = threading.Event()

    def caller(*_):
        held.wait(60)
        raise NotAllowedError("nobody")

    api = Api(below, pages=Pages(store), desk=Desk(store), caller=caller)

    async def storm():
        waiting = [asyncio.create_task(call(api, body=ASKED)) for _ in range(40)]
        for first in itertools.islice(asyncio.as_completed(waiting), 8):
            await first
        # Reading goes on.
        read = await call(api)
        held.set()
        return [each[0] for each in await asyncio.gather(*waiting)], read

    # When forty ask at once, then as many as there is place for are looked at
    statuses, read = asyncio.run(storm())
    assert (statuses.count(429), statuses.count(401), read[0]) == (8, 32, 200)


def test_on_a_machine_of_ones_own_its_user_asks_and_nobody_else(space, monkeypatch, tmp_path, store):
    monkeypatch.delenv("SPACE_ID", raising=False)
    for name, files in {"clip": hub_model(), "bench": {"manifest.json": manifest()}}.items():
        (tmp_path / name).mkdir()
        for path, data in files.items():
            (tmp_path / name / path).write_bytes(data)
    board = space.build(store)
    app = Api(below, pages=board.pages, desk=board.desk, caller=space.caller)
    asked = ASKED | {"model": str(tmp_path / "clip"), "benchmark": str(tmp_path / "bench")}
    for client, host in (("192.168.0.7", "127.0.0.1:7860"), ("127.0.0.1", "evil.example:7860"), ("127.0.0.1", "[")):
        assert ask(app, body=asked, client=client, host=host)[0] == 403
    assert store.requests() == []
    status, _, made = ask(app, body=asked, client="127.0.0.1", host="localhost:7860")
    assert (status, made["user"], made["model"]) == (201, space.local_user(), "clip")
    # Where folders lie nobody else learns.
    assert str(tmp_path) not in str(ask(app, client="192.168.0.7")[2])


def test_who_runs_a_request_is_not_told(site, store):
    store.put_request(make_request(worker="host-17 pid 4", lease_until="2026-01-01T00:00:00+00:00"), None)
    assert "host-17" not in str(ask(site)[2])


def test_an_address_gets_no_more_by_writing_other_ones_before_its_own():
    throttle = Throttle(below, behind_proxy=True, rates=Rates(posts=3, tables=2, pages=4))
    before = ("1.1.1.1", "9.9.9.9, 1.0.0.1", "127.0.0.1", "x")
    posts = [ask(throttle, "/x", body=b"", x_forwarded_for=f"{forged}, {VISITOR}") for forged in before]
    assert [status for status, *_ in posts] == [200, 200, 200, 429]
    assert (posts[-1][1]["retry-after"], posts[-1][1]["connection"]) == ("20", "close")
    # The same address in other clothes; then another one, and other houses.
    assert ask(throttle, "/x", body=b"", x_forwarded_for=f"::ffff:{VISITOR}")[0] == 429
    assert ask(throttle, "/x", body=b"", x_forwarded_for=f"{VISITOR}:4711")[0] == 429
    assert ask(throttle, "/x", body=b"", x_forwarded_for="1.1.1.1")[0] == 200
    houses = [ask(throttle, "/x", body=b"", x_forwarded_for=f"2600:1:2:3::{n}")[0] for n in range(4)]
    assert houses == [200, 200, 200, 429]
    # Reading is counted for itself, and what costs nothing is not.
    assert [ask(throttle, "/board/table.csv")[0] for _ in range(3)] == [200, 200, 429]
    assert [ask(throttle, "/")[0] for _ in range(5)] == [200, 200, 200, 200, 429]
    for free in ("/board/site.css", "/assets/index.js", "/theme.css"):
        assert [ask(throttle, free)[0] for _ in range(9)] == [200] * 9
    # Whatever else Gradio answers is counted too: some of it holds a connection, or fills the log.
    for other in ("/gradio_api/heartbeat/x", "/gradio_api/queue/data", "/config", "//", "/nothing"):
        assert ask(throttle, other)[0] == 429


@pytest.mark.parametrize("hops", ["", "unknown", "10.16.3.80", "127.0.0.1", f"{VISITOR}, nonsense", "::1", "[::1"])
def test_visitors_whose_address_is_not_known_share_what_there_is(hops):
    throttle = Throttle(below, behind_proxy=True, rates=Rates(posts=1))
    found = [ask(throttle, "/x", body=b"", x_forwarded_for=hops, client=f"10.0.0.{n}")[0] for n in range(11)]
    assert found == [200] * 10 + [429]


def test_without_a_proxy_its_header_counts_for_nothing_and_the_own_user_is_free():
    throttle = Throttle(below, behind_proxy=False, rates=Rates(posts=1))
    found = [ask(throttle, "/x", body=b"", client="192.168.0.7", x_forwarded_for=f"1.1.1.{n}")[0] for n in range(2)]
    assert found == [200, 429]
    assert [ask(throttle, "/x", body=b"", client="127.0.0.1")[0] for _ in range(3)] == [200] * 3


def test_a_body_that_does_not_come_is_given_up():
    async def slow():
        sent = []

        async def receive():
            if not sent and not given:
                given.append(1)
                return {"type": "http.request", "body": b"{", "more_body": True}
            return await asyncio.Event().wait()

        async def send(message):
            sent.append(message)

        given = []
        scope = {"type": "http", "method": "POST", "path": PATH, "headers": []}
        await Narrow(below, seconds=0.01)(scope, receive, send)
        return sent[0]["status"]

    assert asyncio.run(slow()) == 408


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://org-board.hf.space", 200),
        ("https://board.example", 200),
        ("https://evil.example", 403),
        ("https://org-board.hf.space.evil.example", 403),
        ("https://evil.example/org-board.hf.space", 403),
        ("null", 403),
        ("http://[", 403),
    ],
)
def test_what_another_sites_page_sends_is_not_taken(origin, status):
    narrow = Narrow(below, own=("org-board.hf.space", "board.example"))
    for host in ("internal:7860", ""):
        assert ask(narrow, "/gradio_api/queue/join", body=b"{}", host=host, origin=origin)[0] == status

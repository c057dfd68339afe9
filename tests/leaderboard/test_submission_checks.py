"""What may wait in the queue: each check, in its order, and who tries to get around it."""

import contextlib
import json
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopback_hub import TOKEN
from queue_factory import CARD, hub_model, manifest, safetensors
from truegap.errors import UserError
from truegap.leaderboard import PROTOCOLS, Limits, LocalStore, ask, checks
from truegap.leaderboard.lease import claimed, failed
from truegap.leaderboard.model_files import FolderModel, count_parameters, licence_of
from truegap.leaderboard.request import now, stamp
from truegap.protocols.choose import PROTOCOLS as KNOWN

LIMITS = Limits(benchmarks=("org/bench",))


@pytest.fixture
def hub(loopback_hub):
    loopback_hub.commit("dataset", "org/bench", {"manifest.json": manifest()})
    return loopback_hub


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "store")


def submit(store, model="org/clip", *, limits=LIMITS, **changes):
    asked = {"benchmark": "org/bench", "protocol": "retrieval", "user": "ada"} | changes
    return ask(store, model=model, limits=limits, **asked)


def refusal(store, **changes):
    with pytest.raises(UserError) as refused:
        submit(store, **changes)
    assert store.requests() == []
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_model_that_passes_waits_pinned_to_its_commit(hub, store):
    commit = hub.commit("model", "org/clip", hub_model())
    request = submit(store, note="  two\n words\u202e ")
    assert store.requests() == [request]
    assert (request.state, request.revision, request.note) == ("PENDING", commit, "two words")
    assert (request.model_type, request.parameters, request.licence) == ("clip", 128, "apache-2.0")
    assert request.benchmark_revision == hub.repositories["dataset", "org/bench"].refs["main"]
    assert (request.version, request.library) == ("1.0.0", "transformers")


def test_no_weights_are_brought(hub, store):
    hub.commit("model", "org/clip", hub_model(model__safetensors=safetensors(side=512)))
    submit(store)
    # Of the weights, a megabyte each, the length of the header and the header.
    spans = [[int(end) for end in each.removeprefix("bytes=").split("-")] for each in hub.ranges]
    assert [(first, last < 1000) for first, last in spans if last - first < 1000] == [(0, True), (8, True)]
    assert sum("/large/" in asked for asked in hub.asked.elements()) == 2


def test_a_branch_becomes_the_commit_that_it_is_now(hub, store):
    old = hub.commit("model", "org/clip", hub_model(), "v1")
    hub.commit("model", "org/clip", hub_model(README__md=CARD + b"more"))
    assert submit(store, revision="v1").revision == old
    assert submit(store, model="org/clip@main").revision != old
    assert submit(store, revision=old, profile="full").revision == old


def test_no_token_is_shown_for_a_model_of_somebody(hub, store, monkeypatch, tmp_path):
    (tmp_path / "manifest.json").write_bytes(manifest())
    offered = {"benchmark": str(tmp_path), "limits": Limits(benchmarks=(str(tmp_path),))}
    for name in ("org/clip", "org/private"):
        hub.commit("model", name, hub_model())
    hub.repositories["model", "org/private"].private = True
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert "no such public model" in refusal(store, model="org/private", **offered)
    submit(store, **offered)
    assert hub.tokens == set()


def test_what_does_not_exist_is_told(hub, store):
    hub.commit("model", "org/clip", hub_model())
    assert "no such public model" in refusal(store, model="org/nothing")
    assert "not revision v9" in refusal(store, revision="v9")
    assert "not revision" in refusal(store, revision="d" * 40)
    assert "grant access one by one" in refusal(store, model=_gated(hub))
    nothing = Limits(benchmarks=())
    assert "synthetic@v1 (TRUEGAP_BENCHMARKS names others)" in refusal(store, benchmark="org/bench", limits=nothing)
    assert "give a built benchmark" in refusal(store, benchmark="nowhere", limits=Limits(benchmarks=(), folders=True))


def _gated(hub):
    hub.commit("model", "org/gated", hub_model())
    hub.repositories["model", "org/gated"].gated = True
    return "org/gated"


def test_a_pull_request_is_nobodys_model(hub, store):
    hub.commit("model", "org/clip", hub_model())
    foreign = hub.repositories["model", "org/clip"].add(hub_model(README__md=CARD + b"!"), "mine", "refs/pr/1")
    assert "anybody could have written" in refusal(store, revision=foreign)
    assert "no branch, tag or commit" in refusal(store, revision="refs/pr/1")


@pytest.mark.parametrize(
    "model",
    [
        "../../../etc/passwd",
        "/etc",
        "org/../../x",
        "org/..",
        "org/model/../../datasets/org/bench",
        "org/a?x=1",
        "org/a%2f..%2fb",
        "-x/y",
        "--store=/tmp/x",
        "endpoint:http://169.254.169.254/#m",
        "baseline:random",
        "local-dir:/etc",
        "org/a\nb",
        "org/" + "a" * 500,
        "",
    ],
)
def test_tricks_with_names_lead_nowhere(hub, store, model):
    before = sum(hub.asked.values())
    assert refusal(store, model=model).startswith("model ")
    asked = list(hub.asked.elements())[before:]
    assert not any("/models/" in each for each in asked)


@pytest.mark.parametrize("revision", ["../main", "main/../../x", "a b", "main?x=1", "%2e%2e", "x" * 200, "refs/pr/1"])
def test_tricks_with_revisions_lead_nowhere(hub, store, revision):
    hub.commit("model", "org/clip", hub_model())
    assert "no branch, tag or commit" in refusal(store, revision=revision)


def test_the_same_is_asked_once_whoever_asks(hub, store):
    hub.commit("model", "org/clip", hub_model())
    request = submit(store)
    with pytest.raises(UserError, match="was submitted already by ada and is PENDING: see the queue"):
        submit(store, user="eve")
    assert submit(store, user="eve", profile="full").key != request.key
    assert submit(store, user="eve", protocol="vqa").key != request.key


def test_what_failed_may_be_asked_again_after_a_while(hub, store):
    hub.commit("model", "org/clip", hub_model())
    request = submit(store)
    store.put_request(broken := failed(request, "no memory", now()), request)
    with pytest.raises(UserError, match=r"FAILED \(no memory\): mend the model"):
        submit(store)
    store.put_request(broken.model_copy(update={"changed": stamp(now() - timedelta(days=2))}), broken)
    assert submit(store).attempts == 0


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (b'{"model_type": "evil", "auto_map": {"AutoModel": "evil.Model"}}', "needs code of its own"),
        (b'{"model_type": "evil"}', "is not known here"),
        (b"{}", "names no model_type"),
        (b'{"model_type": ["clip"]}', "names no model_type"),
        (b'{"model_type": "\\u202eclip"}', "names no model_type"),
        (b"[" * 100_000, "not a JSON object"),
        (b"not json", "not a JSON object"),
        (b'"' + b"x" * 5_000_000, "not a JSON object"),
        (None, "it has no config.json"),
    ],
)
def test_a_model_that_needs_code_of_its_own_is_refused(hub, store, config, why):
    hub.commit("model", "org/clip", hub_model(config__json=config, evil__py=b"raise SystemExit"))
    assert why in refusal(store)


def test_a_model_of_open_clip_must_be_whole(hub, store):
    files = {"README.md": CARD, "open_clip_model.safetensors": safetensors()}
    config = b'{"model_cfg": {"text_cfg": {%s}}}'
    hub.commit("model", "org/a", files | {"open_clip_config.json": config % b'"width": 8'})
    request = submit(store, model="org/a")
    assert (request.library, request.model_type) == ("open_clip", "open_clip")
    for inner, why in (
        (b'"hf_model_name": "x/y"', "another repository"),
        (b'"trust_remote_code": true', "remote code"),
    ):
        hub.commit("model", "org/b", files | {"open_clip_config.json": config % inner})
        with pytest.raises(UserError, match=why):
            submit(store, model="org/b")


def test_pickled_weights_are_refused(hub, store):
    hub.commit("model", "org/clip", hub_model(model__safetensors=None, pytorch_model__bin=b"\x80\x04"))
    told = refusal(store)
    assert "only pytorch_model.bin, and loading that could run code" in told
    assert "safe_serialization=True" in told


@pytest.mark.parametrize(
    ("card", "why"),
    [
        (None, "it has no card"),
        (b"# A model", "names no licence"),
        (b"---\nlicense:\n---\n", "names no licence"),
        (b"---\nlicense: [mit]\n---\n", "names no licence"),
    ],
)
def test_a_card_with_a_licence_is_needed(hub, store, card, why):
    hub.commit("model", "org/clip", hub_model(README__md=card))
    assert why in refusal(store)


class Held(FolderModel):
    """A model of one file, in memory."""

    def read(self, path, limit, start=0):
        return self.files[path][start : start + limit]


@pytest.mark.parametrize(
    "front",
    [
        b"license: !!python/object/apply:os.system [id]",
        b"a: &a [*a]\nlicense: *a",
        b"[" * 1_000_000,
        b"license: {" + b"\xff" * 9,
        b" license: indented",
        b"name: x\n---\nlicense: in the text",
    ],
)
def test_a_card_is_read_with_suspicion(front):
    assert licence_of(Held("org/x", "0" * 40, {"README.md": b"---\n" + front + b"\n---\n"})) is None


def test_a_licence_is_shown_as_plain_text(hub, store):
    card = "---\nlicense: other  # see below\nlicense_name: '<b>mine</b>\u202e'\n---\n"
    hub.commit("model", "org/clip", hub_model(README__md=card.encode()))
    assert submit(store).licence == "<b>mine</b>"


def with_header(header, held=b"12345678"):
    """A weight file with this header, and little else."""
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + held


@pytest.mark.parametrize(
    ("weights", "why"),
    [
        (with_header({"a": {"shape": [1] * 17, "data_offsets": [0, 4]}}), "is not one of safetensors"),
        (with_header({"a": {"shape": {"1": 1}, "data_offsets": [0, 4]}}), "is not one of safetensors"),
        (with_header({"a": {"shape": [65], "data_offsets": [0, 8]}}), "promises more than the file holds"),
        (safetensors(length=2**40), "is no safetensors file"),
        (b"", "is no safetensors file"),
        (safetensors(short=100), "promises more than the file holds"),
        ((50_000).to_bytes(8, "little") + b"{" * 50_000, "is not one of safetensors"),
        ((20).to_bytes(8, "little") + b'{"a": {"shape": [9]}}' * 9, "is not one of safetensors"),
        ((2).to_bytes(8, "little") + b"[]" + bytes(50), "is not one of safetensors"),
        ((60).to_bytes(8, "little") + b'{"a": {"shape": [-9, 9], "data_offsets": [0, 4]}}'.ljust(60), "is not one of"),
    ],
)
def test_a_header_that_lies_is_refused(hub, store, weights, why):
    hub.commit("model", "org/clip", hub_model(model__safetensors=weights))
    assert why in refusal(store)


def test_a_giant_header_is_not_read(hub, store):
    size = 300_000
    hub.commit("model", "org/clip", hub_model(model__safetensors=size.to_bytes(8, "little") + b" " * (size + 8)))
    told = refusal(store, limits=replace(LIMITS, header_bytes=100_000))
    assert "the header of model.safetensors has 300,000 bytes, and 100,000 are read at most" in told
    assert not any(each.startswith("bytes=8-") for each in hub.ranges)


def test_the_headers_of_all_files_share_one_limit():
    data = with_header({"a": {"shape": [2], "data_offsets": [0, 8]}})
    files, size = {f"model-{n}.safetensors": data for n in range(300)}, len(data) - 16
    held, two = Held("/x", "sha256:0", files), dict.fromkeys(list(files)[:2], len(data))
    assert count_parameters(held, two, 2 * size) == 4
    with pytest.raises(UserError, match="the header of model-1"):
        count_parameters(held, two, 2 * size - 1)
    with pytest.raises(UserError, match="in 300 files"):
        count_parameters(held, dict.fromkeys(files, len(data)), 10**9)


def test_what_is_too_large_for_the_worker_is_refused(hub, store):
    hub.commit("model", "org/clip", hub_model(model__safetensors=safetensors(tensors=40)))
    assert "billion parameters" in refusal(store, limits=replace(LIMITS, parameters=1000))
    assert "submit the run" in refusal(store, limits=replace(LIMITS, weight_bytes=1000))
    # Small files are counted too: nobody hides a terabyte in a vocabulary.
    hub.commit("model", "org/clip", hub_model(vocab__json=b" " * 40_000))
    assert "GB" in refusal(store, limits=replace(LIMITS, weight_bytes=30_000))


def test_a_user_may_ask_for_so_much(hub, store):
    hub.commit("model", "org/clip", hub_model())
    limits = replace(LIMITS, waiting=2, requests_per_day=3)
    for protocol in PROTOCOLS[:2]:
        submit(store, protocol=protocol, limits=limits)
    with pytest.raises(UserError, match="2 requests of ada are not finished"):
        submit(store, protocol=PROTOCOLS[2], limits=limits)
    for each in store.requests():
        store.put_request(failed(claimed(each, "w", now(), limits), "x", now()), each)
    submit(store, protocol=PROTOCOLS[2], limits=limits)
    with pytest.raises(UserError, match="3 requests of ada within a day are the most: try after"):
        submit(store, protocol=PROTOCOLS[3], limits=limits)
    assert submit(store, protocol=PROTOCOLS[3], limits=limits, user="eve").user == "eve"


def test_requests_of_yesterday_do_not_count(hub, store):
    hub.commit("model", "org/clip", hub_model())
    limits = replace(LIMITS, requests_per_day=1)
    first = submit(store, limits=limits)
    past = stamp(now() - timedelta(days=1, minutes=1))
    store.put_request(first.model_copy(update={"submitted": past, "state": "FINISHED"}), first)
    assert submit(store, protocol="vqa", limits=limits).state == "PENDING"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"note": "x" * 281}, "281 characters, and 280 are shown"),
        ({"user": ""}, "log in first"),
        ({"user": "a/../b"}, "log in first"),
        ({"user": "eve\x1b[31m"}, "log in first"),
        ({"protocol": "--sample-id=1"}, "use vqa, retrieval"),
        ({"profile": "all"}, "use lite or full"),
        ({"benchmark": "evil/bench"}, "this leaderboard offers org/bench"),
        ({"benchmark": "/etc"}, "this leaderboard offers org/bench"),
    ],
)
def test_what_is_typed_wrong_costs_no_call(hub, store, changes, why):
    assert why in refusal(store, **changes)
    assert sum(hub.asked.values()) == 0


def test_a_folder_counts_only_where_the_users_are_those_of_the_machine(hub, store, tmp_path):
    folder = tmp_path / "my-clip"
    folder.mkdir()
    for name, data in hub_model(README__md=None).items():
        (folder / name).write_bytes(data)
    (tmp_path / "secret.safetensors").write_bytes(safetensors())
    (folder / "link.safetensors").symlink_to(tmp_path / "secret.safetensors")
    assert "give ORG/NAME of a public model" in refusal(store, model=str(folder))
    request = submit(store, model=str(folder), limits=replace(LIMITS, folders=True))
    assert (request.model, request.licence, request.parameters) == (str(folder), None, 128)
    assert request.revision.startswith("sha256:")
    (folder / "model.safetensors").write_bytes(safetensors(tensors=3))
    assert submit(store, model=str(folder), limits=replace(LIMITS, folders=True)).revision != request.revision
    with pytest.raises(UserError, match="a folder has no revision"):
        submit(store, model=str(folder), revision="main", limits=replace(LIMITS, folders=True))
    folder.rename(tmp_path / "my  clip")
    with pytest.raises(UserError, match="model: must be ORG/NAME on the Hub, or the path of a folder, in printable"):
        submit(store, model=str(tmp_path / "my  clip"), limits=replace(LIMITS, folders=True))


@pytest.mark.parametrize("name", ["", "~nobody-of-this-name/x", "/a\0b", "/" + "a" * 290, "\ud800/x"])
def test_what_no_folder_can_be_called_is_none(hub, store, name):
    own = Limits(benchmarks=(), folders=True)
    assert "no such folder, and not ORG/NAME" in refusal(store, model=name, limits=replace(LIMITS, folders=True))
    assert "is neither a folder nor ORG/NAME" in refusal(store, benchmark=name, limits=own)


@given(data=st.binary(max_size=300))
def test_no_header_breaks_the_reader(data):
    with contextlib.suppress(UserError):
        assert count_parameters(Held("/x", "sha256:0", {"m": data}), {"m": len(data)}, 100) >= 0


def test_every_protocol_can_be_asked_for():
    assert set(PROTOCOLS) == set(KNOWN)


def test_the_kind_of_a_model_is_known_without_torch():
    code = "import sys; from truegap.leaderboard.checks import _known; print(_known('clip'), 'torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == ["True", "False"]


def test_a_kind_that_is_not_on_the_short_list_is_looked_for_on_the_whole(monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.setattr("transformers.models.auto.auto_mappings.CONFIG_MAPPING_NAMES", {})
    assert checks._known("clip")
    assert not checks._known("evil")

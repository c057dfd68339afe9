"""Files of Hub repositories, asked of a Hub on this machine over HTTP."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from loopback_hub import LARGE, TOKEN, LoopbackHub
from truegap.errors import UserError
from truegap.hub.snapshots import Files, _secret_free, is_repository, locate, snapshot, split_revision

BIG = bytes(range(256)) * (LARGE // 256 + 10)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    hub = LoopbackHub()
    hub.connect(monkeypatch, tmp_path / "cache")
    yield hub
    hub.close()


def refused(*arguments, **options) -> str:
    """The one line of a refusal."""
    with pytest.raises(UserError) as caught:
        snapshot(*arguments, **options)
    assert "\n" not in str(caught.value)
    # nor does a traceback show what the library said
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return str(caught.value)


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ("org/name", ("org/name", None)),
        ("org/name@v1.0.0", ("org/name", "v1.0.0")),
        ("org/name@refs/pr/1", ("org/name", "refs/pr/1")),
        ("org/name@", ("org/name", None)),
    ],
)
def test_a_revision_follows_the_name(spec, parts):
    assert split_revision(spec) == parts


@pytest.mark.parametrize("name", ["org", "a/b/c", "../x", "/etc/passwd", "", "org/", "a b/c", "org/name@v1", "é/x"])
def test_what_is_no_repository(name):
    assert not is_repository(name)


def test_every_revision_is_a_snapshot_of_its_own(hub):
    old = hub.commit("dataset", "org/name", {"a.csv": b"old", "data/b.json": b"{}"}, "v1.0.0")
    new = hub.commit("dataset", "org/name", {"a.csv": b"new", "data/b.json": b"{}"}, "v2.0.0", "refs/pr/1")
    for revision, commit, content in [
        (None, new, b"new"),
        ("v1.0.0", old, b"old"),
        ("refs/pr/1", new, b"new"),
        (old, old, b"old"),
    ]:
        files = snapshot("org/name", revision, ["*"])
        assert files.commit == commit
        assert (files.folder / "a.csv").read_bytes() == content
        assert (files.folder / "data/b.json").read_bytes() == b"{}"


def test_a_moved_branch_is_noticed_and_a_known_file_not_fetched_again(hub):
    hub.commit("dataset", "org/name", {"a.csv": b"old", "b.csv": b"same"})
    snapshot("org/name", None, ["*"])
    hub.commit("dataset", "org/name", {"a.csv": b"new", "b.csv": b"same"})
    assert (snapshot("org/name", None, ["*"]).folder / "a.csv").read_bytes() == b"new"
    gets = [path for path in hub.asked if path.startswith("GET /datasets/") and path.endswith("b.csv")]
    assert sum(hub.asked[path] for path in gets) == 1


def test_only_files_of_the_patterns_come(hub):
    files = {"config.json": b"{}", "model.safetensors": b"w", "model.bin": b"p", "run.py": b"", "sub/config.json": b""}
    hub.commit("model", "org/model", files)
    found = snapshot("org/model", None, ["*.json", "*.safetensors"], kind="model", subfolders=False)
    assert sorted(path.name for path in found.folder.rglob("*")) == ["config.json", "model.safetensors"]
    hub.commit("model", "org/other", files)
    assert "model org/other: holds none of the files *.onnx" in refused("org/other", None, ["*.onnx"], kind="model")


def test_a_folder_is_taken_as_it_is(hub, tmp_path):
    hub.commit("dataset", "org/name", {"a": b"a"})
    (tmp_path / "here@v1").mkdir()
    assert locate(str(tmp_path / "here@v1"), ["*"], "a recipe") == Files(tmp_path / "here@v1")
    assert not hub.asked
    assert (locate("org/name@main", ["*"], "a recipe").folder / "a").read_bytes() == b"a"
    with pytest.raises(UserError, match=r"nowhere is neither a folder nor ORG/NAME\[@REVISION\].*: give a recipe"):
        locate("nowhere", ["*"], "a recipe")


def test_who_may_not_have_it_is_told_what_to_do(hub, monkeypatch):
    hub.commit("dataset", "org/gated", {"a": b"a"})
    hub.commit("dataset", "org/private", {"a": b"a"})
    hub.repositories["dataset", "org/gated"].gated = True
    hub.repositories["dataset", "org/private"].private = True
    assert refused("org/gated", None, ["*"]) == (
        "dataset org/gated: its authors grant access on its Hub page; ask there, then `hf auth login`"
    )
    for name in ("org/private", "org/absent"):
        line = f"dataset {name}: no such dataset on the Hub, or it is private (then `hf auth login`)"
        assert refused(name, None, ["*"]) == line
    assert "no such model on the Hub" in refused("org/gated", None, ["*"], kind="model")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    for name in ("org/private", "org/gated"):
        assert (snapshot(name, None, ["*"]).folder / "a").read_bytes() == b"a"
    assert {token for _, token in hub.tokens} == {TOKEN}


def test_an_unknown_revision_is_told_from_an_unknown_repository(hub):
    hub.commit("dataset", "org/name", {"a": b"a"}, "v1")
    assert "dataset org/name@v2: the Hub knows the dataset, not this revision" in refused("org/name", "v2", ["*"])
    for hostile in ("../../x", "a/../../b", "/etc", "a\nb", ".."):
        assert "is no branch, tag or commit" in refused("org/name", hostile, ["*"])


@pytest.mark.parametrize("status", [403, 500, 503])
def test_a_hub_in_trouble_is_named_with_its_status(hub, status, monkeypatch):
    hub.commit("dataset", "org/name", {"a": b"a"})
    hub.broken = status
    line = refused("org/name", "0" * 40 if status == 403 else None, ["*"])
    assert str(status) in line
    assert "hf download org/name --repo-type dataset" in line


def test_what_is_cached_is_used_where_the_hub_is_away(hub, monkeypatch):
    from huggingface_hub import constants

    commit = hub.commit("dataset", "org/name", {"a": b"a"}, "v1")
    snapshot("org/name", "v1", ["*"])
    hub.close()
    assert snapshot("org/name", "v1", ["*"]).commit == commit
    assert "the Hub cannot be reached" in refused("org/other", None, ["*"])
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert snapshot("org/name", "v1", ["*"]).commit == commit
    assert "HF_HUB_OFFLINE keeps the Hub away" in refused("org/other", None, ["*"])


@pytest.mark.parametrize("token", ["hf_se\x0bcret", "other\x0bsecret", "hf_sécret"])
def test_a_token_is_never_shown(hub, monkeypatch, token):
    # given a token that no header can hold: the library's own message quotes the header
    hub.commit("dataset", "org/name", {"a": b"a"})
    monkeypatch.setenv("HF_TOKEN", token)
    line = refused("org/name", None, ["*"])
    assert "cret" not in line


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("proxy http://me:word@host:1 failed", "proxy http://…@host:1 failed"),
        ("Illegal header value b'Bearer abc'", "Illegal header value b'Bearer …'"),
        ("hf_abc is no token", "… is no token"),
        ("what is plainsecret", "what is …"),
    ],
)
def test_no_secret_is_in_a_message(monkeypatch, message, shown):
    monkeypatch.setenv("HF_TOKEN", "plainsecret")
    assert _secret_free(OSError(message)) == shown


@pytest.mark.parametrize("content", [b"x" * 5000, BIG])
def test_a_connection_that_breaks_is_taken_up_where_it_broke(hub, content, monkeypatch):
    # the library keeps whole pieces, of 10 MB unless told
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1000)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.commit("dataset", "org/name", {"a.bin": content})
    hub.cut["a.bin"] = 2000
    assert (snapshot("org/name", None, ["*"]).folder / "a.bin").read_bytes() == content
    assert hub.ranges == ["bytes=2000-"]
    # the token is for the Hub, not for the host of its large files
    assert {place for place, _ in hub.tokens} == {"api", "datasets"}


def test_a_killed_download_goes_on_with_the_files_that_are_missing(hub, tmp_path):
    # given a process that is killed while it waits for the last of its files
    code = (
        "import os, sys; from truegap.hub.snapshots import snapshot\n"
        "from huggingface_hub import _snapshot_download as s\n"
        "bring = s.hf_hub_download\n"
        "def one(*args, **options):\n"
        "    if options['filename'] == 'c.csv': os._exit(9)\n"
        "    return bring(*args, **options)\n"
        "s.hf_hub_download = one\n"
        "s.hf_thread_map = lambda f, items, **_: [f(item) for item in items]\n"
        "snapshot('org/name', None, ['*'])"
    )
    hub.commit("dataset", "org/name", {f"{letter}.csv": letter.encode() for letter in "abc"})
    environment = {**os.environ, **hub.environment(tmp_path / "cache")}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 9
    asked = dict(hub.asked)
    found = snapshot("org/name", None, ["*"])
    assert [(found.folder / f"{letter}.csv").read_text() for letter in "abc"] == ["a", "b", "c"]
    fetched = [path for path, n in hub.asked.items() if "/resolve/" in path and n > asked.get(path, 0)]
    assert {Path(path).name for path in fetched} == {"c.csv"}


def test_a_hostile_list_of_files_leaves_the_cache_alone(hub, tmp_path):
    hub.commit("dataset", "org/name", {"../../../outside.txt": b"x", "a": b"a"})
    assert "outside" in refused("org/name", None, ["*"])
    assert not list(tmp_path.rglob("outside.txt"))


def test_importing_it_loads_nothing_heavy():
    code = "import sys, truegap.hub.snapshots; print(*[m for m in sys.modules if m.startswith(('truegap', 'hugging'))])"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert sorted(loaded) == ["truegap", "truegap.errors", "truegap.hub", "truegap.hub.snapshots"]

"""The box of the form by which an author wishes for a pull request: who may tick it is what the Hub's login says."""

import pytest
from huggingface_hub.hf_api import api

from loopback_hub import TOKEN
from queue_factory import hub_model, manifest
from truegap.cli.pages import load_page
from truegap.leaderboard import Limits, open_store

gradio = pytest.importorskip("gradio", reason="gradio is not installed")


@pytest.fixture
def hub(loopback_hub, monkeypatch, tmp_path):
    """The Hub, as a Space sees it."""
    loopback_hub.connect(monkeypatch, tmp_path / "hub-cache", TOKEN)
    # Gradio asks by this one who the user of its mock is.
    monkeypatch.setattr(api, "endpoint", loopback_hub.endpoint)
    monkeypatch.setenv("SPACE_ID", "org/board")
    return loopback_hub


@pytest.fixture
def form(hub):
    """What the button of the form calls, and the store."""
    hub.commit("dataset", "org/bench", {"manifest.json": manifest()})
    hub.commit("model", "lab/clip", hub_model())
    store = open_store("hf://org")
    page = load_page("leaderboard").build(store, Limits(benchmarks=("org/bench",))).form
    assert _box(page).visible
    (button,) = (each for each in page.fns.values() if each.api_name == "submit")

    def submit(who, wish):
        told = {"name": who, "preferred_username": who, "profile": "", "picture": ""}
        belongs = {"ada": [{"preferred_username": "lab", "name": "A lab"}, "junk"], "eve": [{"name": "lab"}]}
        profile = gradio.OAuthProfile(told | ({"orgs": belongs[who]} if who in belongs else {}))
        texts = ["lab/clip", "", "org/bench", "retrieval", "lite", ""]
        return button.fn(*texts, wish, profile, gradio.Request())

    return submit, store


def _box(page):
    return next(each for each in page.blocks.values() if isinstance(each, gradio.Checkbox))


def test_a_store_in_a_folder_offers_no_box(hub, tmp_path):
    assert not _box(load_page("leaderboard").build(tmp_path / "store").form).visible


def test_the_login_says_who_the_author_is(form):
    submit, store = form
    # A full name is not the name of a namespace.
    for who in ("eve", "bob"):
        assert f"on the wish of lab alone, and you are logged in as {who}" in submit(who, wish=True)
    assert store.requests() == []
    assert submit("ada", wish=True).startswith("PENDING: lab/clip")
    (request,) = store.requests()
    assert (request.user, request.pull_request) == ("ada", True)

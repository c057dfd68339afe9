"""The leaderboard: runs on the Hub as a Space, and here by `truegap leaderboard serve`.

Gradio serves it, logs visitors in and takes submissions. The pages for reading are plain HTML, made by
`truegap.leaderboard.site` from the store's prepared table: a page of Gradio's needs seconds before its first row is
there. What rows and requests say is foreign text: no page takes it for HTML or Markdown.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, MutableMapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

import gradio as gr
from starlette.middleware import Middleware

from truegap.errors import UserError
from truegap.hub.tokens import Owner, owner_of
from truegap.leaderboard import Limits, LocalStore, Store, local_user, open_store
from truegap.leaderboard.checks import PROTOCOLS
from truegap.leaderboard.default_benchmark import make_ready
from truegap.leaderboard.desk import Desk
from truegap.leaderboard.request import NOTE
from truegap.leaderboard.site import Api, Narrow, NotAllowedError, Pages, Site, Throttle, is_here
from truegap.leaderboard.store import HUB
from truegap.leaderboard.worker import keep_working
from truegap.results.show import plain

_TEXT = 300
"""Characters of a field; what is longer is a mistake or an attack."""
_INTRODUCTION = """# Submit a model
It is evaluated as it is at one commit, and its row is public. It must load without code of its own, from safetensors,
and have a card and a licence. [The queue](?tab=queue) shows what becomes of it."""
_ELSEWHERE = "Not accepted: only the user of this machine may submit here; a Space takes the submissions of others."
_UNKNOWN = (
    "show a token that the Hub knows, `Authorization: Bearer hf_…`: one that may read and write nothing will do, from "
    "https://huggingface.co/settings/tokens"
)
_FORM = 64 * 1024
"""Bytes of a file that Gradio itself would take; no part of the page takes one."""


class Leaderboard(NamedTuple):
    """The app of one store.

    Attributes:
        pages: The pages for reading.
        form: The page for submissions.
        desk: Where the form and the API bring them.
    """

    pages: Pages
    form: gr.Blocks
    desk: Desk


def build(where: Path | str | Store | None = None, limits: Limits | None = None) -> Leaderboard:
    """The app over one store, which is read anew whenever it has changed.

    Args:
        where: The store, or its address as `open_store` takes it.
        limits: What it takes from visitors.
    """
    store = open_store(where) if where is None or isinstance(where, Path | str) else where
    # A folder of this machine can be named by its own user alone.
    limits = limits or Limits(folders=isinstance(store, LocalStore) and not logs_in())
    desk = Desk(store, limits)
    return Leaderboard(Pages(store), submission(desk), desk)


def submission(desk: Desk) -> gr.Blocks:
    """The page: on the Hub for users who log in there, else for the user of this machine.

    Args:
        desk: Where requests go.
    """
    limits = desk.limits
    with gr.Blocks(title="Submit · truegap leaderboard", analytics_enabled=False) as page:
        gr.Markdown(_INTRODUCTION)
        if logs_in():
            gr.LoginButton()
        else:
            gr.Markdown("You submit as the user of this machine.")
        model = gr.Textbox(label="Model", placeholder="ORG/NAME on the Hub", max_lines=1, max_length=_TEXT)
        with gr.Row():
            revision = gr.Textbox(label="Revision", placeholder="main", max_lines=1, max_length=_TEXT)
            benchmark = gr.Dropdown(
                list(limits.offered),
                value=limits.offered[0],
                label="Benchmark",
                allow_custom_value=limits.folders and not limits.benchmarks,
            )
        with gr.Row():
            protocol = gr.Dropdown(list(PROTOCOLS), value="retrieval", label="Protocol")
            profile = gr.Radio(["lite", "full"], value="lite", label="Profile")
        note = gr.Textbox(label="Note", placeholder="a line for readers, not needed", max_lines=1, max_length=NOTE)
        wish = gr.Checkbox(
            label="Pull request with the results",
            info="to the model's repository, once it is evaluated: for its owner, or members of its organisation",
            # Without a store on the Hub none is opened.
            visible=logs_in() and desk.store.where.startswith(HUB),
        )
        button = gr.Button("Submit", variant="primary")
        said = gr.Textbox(label="What became of it", interactive=False, lines=2, elem_id="said")
        asked = [model, revision, benchmark, protocol, profile, note, wish]

        def submit(*texts: str | None, who: Owner, pull_request: bool) -> str:
            model, revision, benchmark, protocol, profile, note = ((each or "").strip()[: _TEXT + 1] for each in texts)
            try:
                request = desk.submit(
                    model=model,
                    revision=revision or None,
                    benchmark=benchmark,
                    protocol=protocol,
                    profile=profile,
                    user=who.name,
                    note=note,
                    pull_request=bool(pull_request),
                    organizations=who.organizations,
                )
            except UserError as error:
                return f"Not accepted: {plain(error, 500)}"
            return f"{request.state}: {request.model} at {request.revision[:12]}; the queue shows what becomes of it."

        # Gradio gives the profile of who is logged in to a parameter by its annotation; nobody can type it.
        def by_profile(
            model: str,
            revision: str,
            benchmark: str,
            protocol: str,
            profile: str,
            note: str,
            pull_request: bool,
            who: gr.OAuthProfile | None,
            request: gr.Request,
        ) -> str:
            if who is None:
                return "Not accepted: log in first, with the button above."
            if not _in_space() and not is_here(_scope(request)):
                return _ELSEWHERE
            texts = (model, revision, benchmark, protocol, profile, note)
            return submit(*texts, who=account(who), pull_request=pull_request)

        def here(
            model: str,
            revision: str,
            benchmark: str,
            protocol: str,
            profile: str,
            note: str,
            pull_request: bool,
            request: gr.Request,
        ) -> str:
            if not is_here(_scope(request)):
                return _ELSEWHERE
            texts = (model, revision, benchmark, protocol, profile, note)
            return submit(*texts, who=Owner(local_user()), pull_request=pull_request)

        button.click(
            by_profile if logs_in() else here, asked, said, api_name="submit", concurrency_limit=2, trigger_mode="once"
        )
    return page


def logs_in() -> bool:
    """Whether visitors log in: in a Space always, elsewhere where `TRUEGAP_LOGIN=1` asks for Gradio's mock of it."""
    return _in_space() or os.environ.get("TRUEGAP_LOGIN") == "1"


def _in_space() -> bool:
    return bool(os.environ.get("SPACE_ID"))


def _scope(request: gr.Request) -> MutableMapping[str, Any]:
    return request.request.scope if request.request is not None else {}


def caller(scope: MutableMapping[str, Any], token: str | None) -> Owner:
    """Who asks by the API: whose token it is where visitors log in, else the user of this machine.

    Args:
        scope: Of the ASGI request; outside of a Space, it must come from this machine.
        token: As it was shown.

    Raises:
        NotAllowedError: It is somebody else, or nobody whom the Hub knows.
        UserError: The Hub cannot be asked.
    """
    if not _in_space() and not is_here(scope):
        raise NotAllowedError(_ELSEWHERE, 403)
    if not logs_in():
        return Owner(local_user())
    owner = owner_of(token) if token else None
    if owner is None:
        raise NotAllowedError(_UNKNOWN)
    return owner


def account(profile: gr.OAuthProfile) -> Owner:
    """Who is logged in, with the organisations that the Hub told; Gradio's mock of it tells none."""
    told: Any = profile.get("orgs") or []
    names = [each.get("preferred_username") for each in told if isinstance(each, dict)]
    return Owner(profile.username, tuple(str(each) for each in names if each))


def serve(
    app: Leaderboard, host: str | None = None, port: int | None = None, ready: Callable[[], object] | None = None
) -> None:
    """Serves the app until it is interrupted; pages fetch nothing from anywhere else.

    Args:
        app: The app.
        host: Address to listen on; Gradio's default for None, which a Space sets by its environment.
        port: Port to listen on; likewise.
        ready: Called once when visitors can come.
    """
    app.form.launch(
        server_name=host,
        server_port=port,
        share=False,
        quiet=True,
        ssr_mode=False,
        footer_links=[],
        theme=_theme(),
        max_file_size=_FORM,
        prevent_thread_lock=True,
        # What everybody does here is for nobody to see.
        enable_monitoring=False,
        app_kwargs={"middleware": _layers(app)},
    )
    if ready is not None:
        ready()
    app.form.block_thread()


def _layers(app: Leaderboard) -> list[Middleware]:
    """What every request passes on its way to Gradio, the first layer first."""
    # Custom domains are named there too.
    own = tuple(each.strip() for each in os.environ.get("SPACE_HOST", "").split(",") if each.strip())
    return [
        Middleware(Throttle, behind_proxy=_in_space()),
        Middleware(Narrow, own=own),
        Middleware(Api, pages=app.pages, desk=app.desk, caller=caller),
        Middleware(Site, pages=app.pages),
    ]


def _theme() -> gr.Theme:
    def stack(*names: str) -> Sequence[Any]:
        return [gr.themes.Font(name) for name in names]

    return gr.themes.Base(
        primary_hue=gr.themes.colors.cyan,
        neutral_hue=gr.themes.colors.slate,
        font=stack("system-ui", "Segoe UI", "Roboto", "DejaVu Sans", "sans-serif"),
        font_mono=stack("ui-monospace", "Menlo", "Consolas", "DejaVu Sans Mono", "monospace"),
    ).set(button_primary_background_fill="*primary_700", button_primary_background_fill_hover="*primary_800")


def prepare(store: Store) -> None:
    """Makes the table anew, for rows changed by hand; where it may not be written, the one that is there serves."""
    try:
        store.refresh()
    except UserError as error:
        sys.stderr.write(f"the table is not made anew: {plain(error, 500)}\n")


def start(store: Store) -> Leaderboard:
    """The app as the Space runs it, and beside it what makes it whole: its benchmark, and a worker for what is asked.

    Args:
        store: Where rows and requests are.
    """
    prepare(store)
    if isinstance(store, LocalStore):
        # A Space's disk is empty after a restart, but for where somebody chose to keep the rows.
        os.environ.setdefault("TRUEGAP_CACHE", str(store.folder / "cache"))
    board = build(store)
    _beside(make_ready, board.desk.limits)
    if os.environ.get("TRUEGAP_WORKER", "1") != "0":
        device, folders = os.environ.get("TRUEGAP_DEVICE", "auto"), board.desk.limits.folders
        _beside(keep_working, store, threading.Event(), device=device, folders=folders)
    return board


def _beside(work: Callable[..., object], *arguments: object, **options: object) -> None:
    threading.Thread(target=work, args=arguments, kwargs=options, daemon=True).start()


if __name__ == "__main__":
    serve(start(open_store()))

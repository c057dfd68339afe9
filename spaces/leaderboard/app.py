"""The leaderboard: runs on the Hub as a Space, and here by `truegap leaderboard serve`.

Gradio serves it, logs visitors in and takes submissions. The pages for reading are plain HTML, made by
`truegap.leaderboard.site` from the store's prepared table: a page of Gradio's needs seconds before its first row is
there. What rows and requests say is foreign text: no page takes it for HTML or Markdown.
"""

from __future__ import annotations

import getpass
import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

import gradio as gr
from starlette.middleware import Middleware

from truegap.errors import UserError
from truegap.leaderboard import Limits, LocalStore, Store, open_store
from truegap.leaderboard.ask import ask
from truegap.leaderboard.checks import PROTOCOLS
from truegap.leaderboard.request import NOTE
from truegap.leaderboard.site import Narrow, Pages, Site
from truegap.leaderboard.worker import keep_working
from truegap.results.show import plain

_TEXT = 300
"""Characters of a field; what is longer is a mistake or an attack."""
_INTRODUCTION = """# Submit a model
It is evaluated as it is at one commit, and its row is public. It must load without code of its own, from safetensors,
and have a card and a licence. [The queue](?tab=queue) shows what becomes of it."""
_HERE = ("127.0.0.1", "::1", "localhost")
_ELSEWHERE = "Not accepted: only the user of this machine may submit here; a Space takes the submissions of others."
_FORM = 64 * 1024
"""Bytes of a file that Gradio itself would take; no part of the page takes one."""


class Leaderboard(NamedTuple):
    """The app of one store.

    Attributes:
        pages: The pages for reading.
        form: The page for submissions.
    """

    pages: Pages
    form: gr.Blocks


def build(where: Path | str | Store | None = None, limits: Limits | None = None) -> Leaderboard:
    """The app over one store, which is read anew whenever it has changed.

    Args:
        where: The store, or its address as `open_store` takes it.
        limits: What it takes from visitors.
    """
    store = open_store(where) if where is None or isinstance(where, Path | str) else where
    # A folder of this machine can be named by its own user alone.
    limits = limits or Limits(folders=isinstance(store, LocalStore) and not logs_in())
    return Leaderboard(Pages(store), submission(store, limits))


def submission(store: Store, limits: Limits) -> gr.Blocks:
    """The page: on the Hub for users who log in there, else for the user of this machine.

    Args:
        store: Where requests go.
        limits: What is accepted.
    """
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
                list(limits.benchmarks),
                value=next(iter(limits.benchmarks), None),
                label="Benchmark",
                allow_custom_value=not limits.benchmarks,
            )
        with gr.Row():
            protocol = gr.Dropdown(list(PROTOCOLS), value="retrieval", label="Protocol")
            profile = gr.Radio(["lite", "full"], value="lite", label="Profile")
        note = gr.Textbox(label="Note", placeholder="a line for readers, not needed", max_lines=1, max_length=NOTE)
        button = gr.Button("Submit", variant="primary")
        said = gr.Textbox(label="What became of it", interactive=False, lines=2, elem_id="said")
        asked = [model, revision, benchmark, protocol, profile, note]

        def submit(*texts: str | None, user: str) -> str:
            model, revision, benchmark, protocol, profile, note = ((each or "").strip()[: _TEXT + 1] for each in texts)
            try:
                request = ask(
                    store,
                    model=model,
                    revision=revision or None,
                    benchmark=benchmark,
                    protocol=protocol,
                    profile=profile,
                    user=user,
                    note=note,
                    limits=limits,
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
            who: gr.OAuthProfile | None,
            request: gr.Request,
        ) -> str:
            if who is None:
                return "Not accepted: log in first, with the button above."
            if not _in_space() and not _is_here(request):
                return _ELSEWHERE
            return submit(model, revision, benchmark, protocol, profile, note, user=who.username)

        def here(
            model: str, revision: str, benchmark: str, protocol: str, profile: str, note: str, request: gr.Request
        ) -> str:
            if not _is_here(request):
                return _ELSEWHERE
            return submit(model, revision, benchmark, protocol, profile, note, user=local_user())

        button.click(
            by_profile if logs_in() else here, asked, said, api_name="submit", concurrency_limit=2, trigger_mode="once"
        )
    return page


def logs_in() -> bool:
    """Whether visitors log in: in a Space always, elsewhere where `TRUEGAP_LOGIN=1` asks for Gradio's mock of it."""
    return _in_space() or os.environ.get("TRUEGAP_LOGIN") == "1"


def _in_space() -> bool:
    return bool(os.environ.get("SPACE_ID"))


def _is_here(request: gr.Request) -> bool:
    """Whether a visitor sits at this machine: elsewhere than in a Space, all act in the name of its user."""
    return request.client is not None and request.client.host in _HERE


def local_user() -> str:
    """The name of this machine's user, as a request takes it."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = ""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", name).lstrip("-_.")[:96] or "local"


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
        app_kwargs={"middleware": [Middleware(Narrow), Middleware(Site, pages=app.pages)]},
    )
    if ready is not None:
        ready()
    app.form.block_thread()


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


if __name__ == "__main__":
    chosen = open_store()
    prepare(chosen)
    if os.environ.get("TRUEGAP_WORKER", "1") != "0":
        device = os.environ.get("TRUEGAP_DEVICE", "auto")
        threading.Thread(
            target=keep_working, args=(chosen, threading.Event()), kwargs={"device": device}, daemon=True
        ).start()
    serve(build(chosen))

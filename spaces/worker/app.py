"""The worker as a Space: a process that evaluates, and a page that says how far it is."""

from __future__ import annotations

import os
import threading
from collections import Counter

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

import gradio as gr

from truegap.errors import UserError
from truegap.leaderboard import Store, keep_working, open_store

_STATES = ("PENDING", "RUNNING", "FINISHED", "FAILED")


def counts(store: Store) -> str:
    """How many requests are in which state."""
    try:
        found = Counter(each.state for each in store.requests())
    except UserError:
        return "The queue cannot be read now."
    return ", ".join(f"{found[state]} {state.lower()}" for state in _STATES)


def build(store: Store) -> gr.Blocks:
    """The page; it shows numbers alone, and nothing that anybody wrote."""
    with gr.Blocks(title="truegap worker", analytics_enabled=False) as page:
        gr.Markdown("# truegap worker\nEvaluates the models that wait in the leaderboard's queue.")
        said = gr.Textbox(label="Requests", interactive=False)
        page.load(lambda: counts(store), None, said, api_visibility="private", show_progress="hidden")
    return page


if __name__ == "__main__":
    chosen = open_store()
    device = os.environ.get("TRUEGAP_DEVICE", "auto")
    threading.Thread(
        target=keep_working, args=(chosen, threading.Event()), kwargs={"device": device}, daemon=True
    ).start()
    build(chosen).launch(quiet=True, ssr_mode=False, footer_links=[])

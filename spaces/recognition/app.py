"""The human check: pictures one by one, and three buttons. On the Hub as a Space, here by `truegap recognition serve`.

The page is sent pictures and numbers alone: neither a label, nor an image's id, which may name it, nor the config.
What an annotator is called is foreign text: it is shown in a text field, and nowhere as HTML.
"""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

import gradio as gr
from starlette.middleware import Middleware

from truegap.errors import UserError
from truegap.hub.benchmark import open_benchmark
from truegap.leaderboard.site import Narrow
from truegap.recognition import (
    CHOICES,
    STRONG,
    AnswerFolder,
    Pictures,
    Study,
    agreement,
    annotator_name,
    items,
    open_study,
)
from truegap.results.show import interval, percent

_ASK = """# Whom do you see?
Some pictures are discoloured, blurred, or have parts blacked out. Say how the person is presented: woman, man, or that
you cannot tell. There is no hurry: every answer is kept at once, and under your name you go on where you stopped."""
_KEYS = {"woman": "1", "man": "2", "cannot tell": "3"}
_LOUD = {"woman": "primary", "man": "primary", "cannot tell": "secondary"}
_CSS = """
#picture img { display: block; margin: 0 auto; max-width: 100%; height: min(60vh, 640px); object-fit: contain; }
#choices { flex-wrap: nowrap; }
#choices button { min-width: 0; min-height: 3.5rem; padding: 0.25rem; }
#agreement { overflow-x: auto; }
#agreement table { border-collapse: collapse; font-size: 0.7rem; width: 100%; }
#agreement th { padding: 0.25rem !important; text-align: left !important; font-weight: normal; }
#agreement td { padding: 0.25rem !important; text-align: right !important; }
"""
_SCRIPT = """<script>
document.addEventListener("keydown", event => {
  if (event.repeat || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.target.closest("input, textarea, select")) return;
  const button = {1: "choose-0", 2: "choose-1", 3: "choose-2", b: "back"}[event.key.toLowerCase()];
  const found = button && document.getElementById(button);
  if (found && found.offsetParent !== null && !found.disabled) { event.preventDefault(); found.click(); }
});
</script>"""
_SHARED = {"api_visibility": "private", "concurrency_limit": 8, "show_progress": "hidden"}


class Turn(NamedTuple):
    """Where an annotator is; it stays on the server.

    Attributes:
        name: Who; empty before anybody said so.
        place: Of the picture that is shown in the annotator's order; after the last, there is none.
    """

    name: str = ""
    place: int = 0


class Check:
    """One study, its pictures and its answers: what the page's buttons do."""

    def __init__(self, study: Study, pictures: Pictures, answers: AnswerFolder) -> None:
        """Takes what was opened."""
        self.study, self.pictures, self.answers = study, pictures, answers

    def begin(self, name: str) -> Turn:
        """The first picture that somebody has not answered yet.

        Raises:
            UserError: The name is empty.
        """
        return self._next(annotator_name(name))

    def answer(self, turn: Turn, choice: Any) -> Turn:
        """Keeps an answer to the picture that is shown, and goes on.

        Raises:
            UserError: The answer could not be kept.
        """
        order = items(self.study, turn.name)
        if turn.name and isinstance(turn.place, int) and 0 <= turn.place < len(order):
            self.answers.add(turn.name, order[turn.place], choice)
        return self._next(turn.name)

    def back(self, turn: Turn) -> Turn:
        """The picture before, to answer it again."""
        return turn._replace(place=max(turn.place - 1, 0))

    def shown(self, turn: Turn) -> tuple[str, str]:
        """The picture as HTML, and a line that says how far it is."""
        order = items(self.study, turn.name)
        done = len(self.answers.of(turn.name))
        if turn.place >= len(order):
            return "<p>Thank you: you have answered every picture.</p>", f"{done} of {len(order)} answered"
        said = f"Picture {turn.place + 1} of {len(order)}"
        source = self.pictures.address(order[turn.place])
        return f'<img alt="{said}" src="{source}">', f"{said}, {done} answered"

    def table(self) -> str:
        """Agreement so far, as HTML: numbers, and names of configs that are ours."""
        found = agreement(self.study, self.answers.read())
        rows = ""
        for each in found.agreements:
            part = ", ".join(filter(None, (each.config, each.gender))) or "all"
            ends = [None if end is None else 100 * end for end in (each.agreement, each.ci_low, each.ci_high)]
            cells = (each.answers, percent(ends[0]), interval(ends[1], ends[2], percent), each.cannot_tell)
            rows += f'<tr><th scope="row">{html.escape(part)}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
        names = ("part", "answers", "agree %", "95 % interval", "cannot tell")
        head = "".join(f'<th scope="col">{name}</th>' for name in names)
        people = len(found.annotators)
        return (
            f"<table><caption>Agreement with the label, {people} annotator{'' if people == 1 else 's'}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        )

    def _next(self, name: str) -> Turn:
        known, order = self.answers.of(name), items(self.study, name)
        return Turn(name, next((place for place, item in enumerate(order) if item not in known), len(order)))


def build(check: Check) -> gr.Blocks:
    """The page.

    Args:
        check: What it shows, and where answers go.
    """
    with gr.Blocks(title="Whom do you see? · truegap", analytics_enabled=False) as page:
        turn = gr.State(Turn())
        # With every answer the page says which picture it shows: two quick ones are both on the same.
        seen = gr.Number(0, precision=0, visible=False)
        remembered = gr.BrowserState("", storage_key="truegap-annotator", secret="no secret: a name")  # noqa: S106
        with gr.Column(elem_id="entry") as entry:
            gr.Markdown(_ASK)
            name = gr.Textbox(label="Your name or a nickname", max_lines=1, max_length=80)
            start = gr.Button("Begin or go on", variant="primary")
        problem = gr.Textbox(label="Problem", interactive=False, visible=False, elem_id="problem")
        with gr.Column(visible=False, elem_id="work") as work:
            picture = gr.HTML(elem_id="picture")
            with gr.Row(elem_id="choices"):
                buttons = [
                    gr.Button(f"{choice.capitalize()} ({_KEYS[choice]})", variant=_LOUD[choice], elem_id=f"choose-{n}")
                    for n, choice in enumerate(CHOICES)
                ]
            far = gr.Textbox(label="How far you are", interactive=False, elem_id="far")
            with gr.Row():
                back = gr.Button("Back (b)", elem_id="back")
                leave = gr.Button("Somebody else", elem_id="leave")
        with gr.Accordion("Agreement so far", open=False):
            ask = gr.Button("Show agreement", elem_id="ask")
            table = gr.HTML(elem_id="agreement")
        every = [turn, seen, remembered, entry, work, picture, far, problem]

        def views(now: Turn) -> list[Any]:
            shown, said = check.shown(now)
            hidden = gr.update(visible=False)
            return [now, now.place, now.name, hidden, gr.update(visible=True), shown, f"{now.name}: {said}", hidden]

        def attempt(step: Callable[[], Turn]) -> list[Any]:
            try:
                return views(step())
            except UserError as error:
                return [gr.skip()] * (len(every) - 1) + [gr.update(value=str(error), visible=True)]

        def begin(typed: str) -> list[Any]:
            return attempt(lambda: check.begin(typed))

        def chosen(choice: str) -> Callable[[Turn, Any], list[Any]]:
            return lambda now, place: attempt(lambda: check.answer(Turn(now.name, place), choice))

        def left() -> list[Any]:
            hidden = gr.update(visible=False)
            return [Turn(), 0, "", gr.update(visible=True), hidden, "", "", hidden]

        page.load(lambda known: begin(known) if known else left(), remembered, every, **_SHARED)
        start.click(begin, name, every, trigger_mode="once", **_SHARED)
        name.submit(begin, name, every, trigger_mode="once", **_SHARED)
        for button, choice in zip(buttons, CHOICES, strict=True):
            button.click(chosen(choice), [turn, seen], every, trigger_mode="multiple", **_SHARED)
        back.click(lambda now: views(check.back(now)), turn, every, trigger_mode="once", **_SHARED)
        leave.click(left, None, every, **_SHARED)
        ask.click(check.table, None, table, **_SHARED)
    return page


def serve(
    page: gr.Blocks, host: str | None = None, port: int | None = None, ready: Callable[[], object] | None = None
) -> None:
    """Serves the page until it is interrupted; it fetches nothing from anywhere else.

    Args:
        page: The page.
        host: Address to listen on; Gradio's default for None, which a Space sets by its environment.
        port: Port to listen on; likewise.
        ready: Called once when annotators can come.
    """
    page.launch(
        server_name=host,
        server_port=port,
        share=False,
        quiet=True,
        ssr_mode=False,
        footer_links=[],
        theme=_theme(),
        css=_CSS,
        head=_SCRIPT,
        prevent_thread_lock=True,
        app_kwargs={"middleware": [Middleware(Narrow)]},
    )
    if ready is not None:
        ready()
    page.block_thread()


def _theme() -> gr.Theme:
    def stack(*names: str) -> Sequence[Any]:
        return [gr.themes.Font(name) for name in names]

    return gr.themes.Base(
        primary_hue=gr.themes.colors.cyan,
        neutral_hue=gr.themes.colors.slate,
        font=stack("system-ui", "Segoe UI", "Roboto", "DejaVu Sans", "sans-serif"),
        font_mono=stack("ui-monospace", "Menlo", "Consolas", "DejaVu Sans Mono", "monospace"),
    ).set(button_primary_background_fill="*primary_700", button_primary_background_fill_hover="*primary_800")


if __name__ == "__main__":
    kept = Path(os.environ.get("TRUEGAP_ANSWERS", "/data/answers"))
    opened = open_benchmark(os.environ["TRUEGAP_BENCHMARK"], STRONG)
    chosen_study = open_study(opened, kept)
    serve(build(Check(chosen_study, Pictures(opened, chosen_study), AnswerFolder(kept))))

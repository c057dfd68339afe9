"""The leaderboard as a Gradio app: runs on the Hub as a Space, and here by `truegap leaderboard serve`.

It reads one prepared table and computes nothing on a click. What rows say is foreign text: it reaches the page only as
plain cell text, never as Markdown or HTML.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

import gradio as gr

from truegap.leaderboard import LocalStore, default_store, search
from truegap.results.show import interval, number, percent, short
from truegap.schema import Feature

ALL = "All boards"
HEADERS = (
    "Rank",
    "Model",
    "Bias",
    "Blind",
    "Mean Δ %",
    *(f"{feature.value.capitalize()} %" for feature in Feature),
    "Floor %",
    "HSV floor %",
    "Parameters",
    "Board",
)
DATATYPES = ["number", "str", *["number"] * (len(HEADERS) - 3), "str"]
WIDTHS = [64, 250, 180, 76, 160, 84, 104, 92, 142, 84, 116, 112, 290]

_HEAT = "background-color: rgba(242, 150, 60, {:.2f})"
_MOST_HEAT = 0.6
_INTRODUCTION = """# truegap leaderboard
Is the measured gender gap true, or is it made by the background? Each model's bias stands beside its sensitivity to
what has nothing to do with gender. *The lower the bias and the lower Δ, the better.*"""
_ABOUT = """### What the numbers mean
- **Bias**: the benchmark's main score on unchanged images, with its 95 % bootstrap interval over images. For
  MaxSkew@k: the log of the larger gender's share of the top k over its fair share, averaged over prompts and
  balanced draws.
- **Blind**: what a model that knows nothing of gender is expected to get. A maximum is above 0 by chance alone: a bias
  is shown only where its interval lies above this.
- **Mean Δ**: how far the perturbations move the bias, in percent of it, averaged over features and strengths; beside it
  the mean per feature. Color: the hue is shifted. Lighting: the brightness is shifted. Object: objects are blacked out.
  Background: everything but the person is blurred.
- **Floor**: Δ of images that were only re-encoded. **HSV floor**: of images that were also taken to HSV and back. A Δ
  that is not clear of its floor (HSV for color and lighting) is noise.
- **Rank**: 1 plus the number of models on the same board whose interval of the bias lies wholly below this one's.
  Models that nothing clearly separates share a rank; a row without an interval has none.
- **Board**: benchmark, version, protocol and score. Rows are ranked only against rows that answered exactly the same
  question: same images, options and configs.

### What they do not mean
- A Δ is an absolute value: noise makes it positive, and where the bias is small it is large for little reason.
- A change says that the score depends on those pixels, not why. Damage to a picture can move a score without its
  meaning doing so.
- Woman and man are perceived presentation, assigned by annotators. A low bias on these prompts and images is no proof
  of a fair model, and nobody should be classified by gender on the strength of it.
- Rows come from runs on somebody's own machine; nothing here has verified them."""
_CSS = """
.gradio-container { max-width: min(1600px, 100%) !important; margin: 0 auto !important; }
.gradio-container .main, .gradio-container .wrap, .gradio-container main { min-width: 0; max-width: 100%; }
#rows [role=gridcell], #rows [role=columnheader] { font-family: var(--font); font-variant-numeric: tabular-nums; }
#rows [role=gridcell] .cell-wrap { overflow-wrap: anywhere; }
#rows [role=row] > :not(:nth-child(2)):not(:last-child) :is(.cell-wrap, .header-content, span) {
  justify-content: flex-end; text-align: right;
}
body:not(.dark) [role=tab][aria-selected=true] { color: var(--primary-700); }
"""


def view(store: LocalStore, text: str, board: str) -> tuple[dict[str, Any], str]:
    """The table as Gradio's Dataframe takes it, and a line that says how many rows it holds.

    Cells hold plain numbers, so that a click on a column sorts by number, and show them with their interval.
    """
    everything = store.table()
    found = search(everything, text=text or "", board=None if board in (ALL, None) else board)
    rows = found.to_pylist()
    hottest = max((row[name] or 0.0 for row in rows for name in _HEATED), default=0.0)
    value = {
        "headers": list(HEADERS),
        "data": [[row[name] for name in _SHOWN] for row in rows],
        "metadata": {
            "display_value": [_texts(row) for row in rows],
            "styling": [_styles(row, hottest) for row in rows],
        },
    }
    return value, _summary(len(rows), everything.num_rows)


_HEATED = tuple(f"delta_{feature}" for feature in Feature)
_SHOWN = ("rank", "model", "bias", "null", "mean_delta", *_HEATED, "floor", "floor_hsv", "parameters", "board")


def _texts(row: dict[str, Any]) -> list[str]:
    return [
        "none" if row["rank"] is None else str(row["rank"]),
        row["model"],
        f"{number(row['bias'])} {interval(row['bias_low'], row['bias_high'])}".rstrip(),
        number(row["null"] or 0.0),
        f"{percent(row['mean_delta'])} {interval(row['mean_delta_low'], row['mean_delta_high'], percent)}".rstrip(),
        *(percent(row[name]) for name in (*_HEATED, "floor", "floor_hsv")),
        short(row["parameters"]),
        row["board"],
    ]


def _styles(row: dict[str, Any], hottest: float) -> list[str]:
    """The larger a feature's Δ, the warmer its cell; the colour lies over the page's own, light or dark."""
    shares = {name: (row[name] or 0.0) / hottest if hottest else 0.0 for name in _HEATED}
    return [_HEAT.format(_MOST_HEAT * min(shares[name], 1.0)) if shares.get(name) else "" for name in _SHOWN]


def _summary(shown: int, held: int) -> str:
    if not held:
        return "No rows yet. `truegap leaderboard submit RUN` adds one."
    return f"{held} rows." if shown == held else f"{shown} of {held} rows."


def boards(store: LocalStore) -> list[str]:
    """All boards that have rows, those with the most rows first."""
    return [name for name, _ in Counter(store.table()["board"].to_pylist()).most_common()]


def build(folder: Path) -> gr.Blocks:
    """The app over one store; it reads the store's table anew whenever the page is opened or a filter is used.

    Args:
        folder: The store, as `truegap leaderboard submit --store` takes it.
    """
    store = LocalStore(folder)

    def filtered(text: str, board: str) -> tuple[dict[str, Any], str]:
        return view(store, text, board)

    def opened() -> tuple[Any, dict[str, Any], str]:
        names = boards(store)
        return gr.update(choices=[*names, ALL], value=names[0] if names else ALL), *view(store, "", (*names, ALL)[0])

    with gr.Blocks(title="truegap leaderboard", analytics_enabled=False, fill_width=True) as demo:
        gr.Markdown(_INTRODUCTION)
        with gr.Tab("Leaderboard"):
            with gr.Row():
                text = gr.Textbox(
                    label="Search models", placeholder="words of a name", max_lines=1, scale=2, min_width=280
                )
                board = gr.Dropdown([ALL], value=ALL, label="Board", scale=3, min_width=280)
            rows = gr.Dataframe(
                headers=list(HEADERS),
                datatype=DATATYPES,
                column_widths=WIDTHS,
                interactive=False,
                label="Models, least biased first",
                show_label=False,
                max_height=640,
                wrap=True,
                buttons=["fullscreen"],
                elem_id="rows",
            )
            summary = gr.Markdown()
        with gr.Tab("About"):
            gr.Markdown(_ABOUT)
        for changed in (text.change, board.change):
            changed(filtered, [text, board], [rows, summary], show_progress="hidden", api_visibility="private")
        demo.load(opened, None, [board, rows, summary], show_progress="hidden", api_visibility="private")
    return demo


def serve(
    demo: gr.Blocks, host: str | None = None, port: int | None = None, ready: Callable[[], object] | None = None
) -> None:
    """Serves the app until it is interrupted; nothing is fetched from or sent to anywhere else.

    Args:
        demo: The app.
        host: Address to listen on; Gradio's default for None, which a Space sets by its environment.
        port: Port to listen on; likewise.
        ready: Called once when visitors can come.
    """
    demo.launch(
        server_name=host,
        server_port=port,
        share=False,
        quiet=True,
        ssr_mode=False,
        footer_links=[],
        css=_CSS,
        theme=_theme(),
        prevent_thread_lock=True,
    )
    if ready is not None:
        ready()
    demo.block_thread()


def _theme() -> gr.Theme:
    def stack(*names: str) -> Sequence[Any]:
        return [gr.themes.Font(name) for name in names]

    return gr.themes.Base(
        primary_hue=gr.themes.colors.cyan,
        neutral_hue=gr.themes.colors.slate,
        font=stack("system-ui", "Segoe UI", "Roboto", "DejaVu Sans", "sans-serif"),
        font_mono=stack("ui-monospace", "Menlo", "Consolas", "DejaVu Sans Mono", "monospace"),
    )


if __name__ == "__main__":
    chosen = default_store()
    LocalStore(chosen).refresh()
    serve(build(chosen))

"""A small page that computes retrieval bias of a pasted table of similarities."""

import csv
import io
import json
from pathlib import Path

import evaluate
import gradio as gr

EXAMPLE = """man,woman,man,woman,man,woman
0.31,0.22,0.29,0.18,0.27,0.25
0.20,0.24,0.21,0.26,0.19,0.23
"""
HERE = Path(__file__).parent


def score(table: str, k: str, draws: float, target: str, empty: str) -> str:
    """The result as JSON, or one line saying what is wrong."""
    rows = list(csv.reader(io.StringIO(table.strip())))
    try:
        result = evaluate.load(str(HERE / "retrieval_bias.py")).compute(
            predictions=[[float(value) for value in row] for row in rows[1:]],
            genders=[label.strip() for label in rows[0]] if rows else [],
            k=[int(each) for each in k.split(",")],
            draws=int(draws),
            target=target,
            empty=empty,
        )
    except (ValueError, TypeError) as error:
        raise gr.Error(str(error)) from None
    return json.dumps(result, indent=2)


def build() -> gr.Blocks:
    """The page."""
    with gr.Blocks(title="Retrieval bias") as page:
        gr.Markdown("# Retrieval bias\nThe first line holds the gender of every image, every other line one query.")
        table = gr.Textbox(EXAMPLE, lines=10, label="Similarities (CSV)")
        with gr.Row():
            k = gr.Textbox("2,4", label="k")
            draws = gr.Slider(0, 20, 0, step=1, label="Balanced draws")
            target = gr.Radio(["uniform", "dataset"], value="uniform", label="Desired shares")
            empty = gr.Radio(["clip", "neg_inf"], value="clip", label="Empty gender")
        result = gr.Code(language="json", label="Result")
        inputs = [table, k, draws, target, empty]
        gr.Button("Compute", variant="primary").click(score, inputs, result, api_name="score")
    return page


if __name__ == "__main__":
    build().launch()

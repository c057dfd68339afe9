"""A small page that computes the sensitivity of pasted scores."""

import csv
import io
import json
from pathlib import Path

import evaluate
import gradio as gr

EXAMPLE = """original,perturbed
-0.0369,-0.0363
0.0210,0.0184
0.0012,0.0031
"""
HERE = Path(__file__).parent


def score(table: str, aggregate: str, threshold: float) -> str:
    """The result as JSON, or one line saying what is wrong."""
    rows = list(csv.DictReader(io.StringIO(table.strip())))
    try:
        result = evaluate.load(str(HERE / "feature_sensitivity.py")).compute(
            references=[float(row["original"]) for row in rows],
            predictions=[float(row["perturbed"]) for row in rows],
            aggregate=aggregate,
            threshold=threshold,
        )
    except KeyError as error:
        raise gr.Error(f"column {error} is missing; the first line names the columns") from None
    except (ValueError, TypeError) as error:
        raise gr.Error(str(error)) from None
    return json.dumps(result, indent=2)


def build() -> gr.Blocks:
    """The page."""
    with gr.Blocks(title="Feature sensitivity") as page:
        gr.Markdown("# Feature sensitivity\nOne row per draw or cell: the score on original and on perturbed images.")
        table = gr.Textbox(EXAMPLE, lines=10, label="Scores (CSV)")
        with gr.Row():
            aggregate = gr.Radio(["mean_of_ratios", "ratio_of_means"], value="mean_of_ratios", label="Over rows")
            threshold = gr.Number(0.005, label="Leave out |original| below")
        result = gr.Code(language="json", label="Result")
        gr.Button("Compute", variant="primary").click(score, [table, aggregate, threshold], result, api_name="score")
    return page


if __name__ == "__main__":
    build().launch()

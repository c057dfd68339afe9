"""A small page that computes YGap of a pasted table."""

import csv
import io
import json
from pathlib import Path

import evaluate
import gradio as gr

EXAMPLE = """prediction,gender,image,question
0.91,man,a,brave
0.40,woman,b,brave
0.72,man,c,brave
0.55,woman,d,brave
"""
HERE = Path(__file__).parent


def score(table: str, confidence: float) -> str:
    """The result as JSON, or one line saying what is wrong."""
    rows = list(csv.DictReader(io.StringIO(table.strip())))
    try:
        columns = {
            "predictions": [float(row["prediction"]) for row in rows],
            "genders": [row["gender"] for row in rows],
        }
        for column, plural in (("image", "images"), ("question", "questions")):
            if rows and column in rows[0]:
                columns[plural] = [row[column] for row in rows]
        metric = evaluate.load(str(HERE / "ygap.py"))
        result = metric.compute(**columns, confidence=confidence)
    except KeyError as error:
        raise gr.Error(f"column {error} is missing; the first line names the columns") from None
    except (ValueError, TypeError) as error:
        raise gr.Error(str(error)) from None
    return json.dumps(result, indent=2)


def build() -> gr.Blocks:
    """The page."""
    with gr.Blocks(title="YGap") as page:
        gr.Markdown("# YGap\nPaste p(Yes) per row, with the gender shown; image and question are optional.")
        table = gr.Textbox(EXAMPLE, lines=10, label="Answers (CSV)")
        confidence = gr.Slider(0.5, 0.99, 0.95, label="Confidence")
        result = gr.Code(language="json", label="Result")
        gr.Button("Compute", variant="primary").click(score, [table, confidence], result, api_name="score")
    return page


if __name__ == "__main__":
    build().launch()

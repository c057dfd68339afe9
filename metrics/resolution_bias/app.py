"""A small page that computes resolution bias of a pasted table."""

import csv
import io
import json
from pathlib import Path

import evaluate
import gradio as gr

EXAMPLE = """his,her,their,reference,group,image
0.60,0.30,0.10,masculine,office,a
0.50,0.40,0.10,feminine,office,b
0.20,0.70,0.10,feminine,medical,c
0.55,0.25,0.20,masculine,medical,d
"""
HERE = Path(__file__).parent


def score(table: str, candidates: str, ties: str) -> str:
    """The result as JSON, or one line saying what is wrong."""
    rows = list(csv.DictReader(io.StringIO(table.strip())))
    try:
        pronouns = [name for name in ("his", "her", "their") if rows and name in rows[0]]
        columns = {
            "predictions": [[float(row[name]) for name in pronouns] for row in rows],
            "references": [row["reference"] for row in rows],
        }
        for column, plural in (("group", "groups"), ("image", "images")):
            if rows and column in rows[0]:
                columns[plural] = [row[column] for row in rows]
        metric = evaluate.load(str(HERE / "resolution_bias.py"))
        result = metric.compute(**columns, candidates=candidates, ties=ties)
    except KeyError as error:
        raise gr.Error(f"column {error} is missing; the first line names the columns") from None
    except (ValueError, TypeError) as error:
        raise gr.Error(str(error)) from None
    return json.dumps(result, indent=2)


def build() -> gr.Blocks:
    """The page."""
    with gr.Blocks(title="Resolution bias") as page:
        gr.Markdown("# Resolution bias\nOne row per question: scores of his, her, their, and who is meant.")
        table = gr.Textbox(EXAMPLE, lines=10, label="Scores (CSV)")
        with gr.Row():
            candidates = gr.Radio(["three", "two"], value="three", label="Candidates")
            ties = gr.Radio(["wrong", "first"], value="wrong", label="Ties")
        result = gr.Code(language="json", label="Result")
        gr.Button("Compute", variant="primary").click(score, [table, candidates, ties], result, api_name="score")
    return page


if __name__ == "__main__":
    build().launch()

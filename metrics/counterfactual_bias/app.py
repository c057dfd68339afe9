"""A small page that computes counterfactual bias of a pasted table."""

import csv
import io
import json
from pathlib import Path

import evaluate
import gradio as gr

EXAMPLE = """base,counterfactual,occupation,pair,gender,order,image
0.90,0.60,pilot,pilot|nurse,man,0,a
0.70,0.80,pilot,pilot|nurse,woman,0,b
0.85,0.65,nurse,pilot|nurse,woman,0,c
0.60,0.75,nurse,pilot|nurse,man,0,d
"""
HERE = Path(__file__).parent


def score(table: str, ipss: str, b_max: str, difference: str, delta_acc: str) -> str:
    """The result as JSON, or one line saying what is wrong."""
    rows = list(csv.DictReader(io.StringIO(table.strip())))
    try:
        result = evaluate.load(str(HERE / "counterfactual_bias.py")).compute(
            base=[float(row["base"]) for row in rows],
            counterfactual=[float(row["counterfactual"]) for row in rows],
            occupations=[row["occupation"] for row in rows],
            pairs=[row["pair"] for row in rows],
            genders=[row["gender"] for row in rows],
            orders=[row["order"] for row in rows],
            images=[row["image"] for row in rows] if rows and "image" in rows[0] else None,
            ipss=ipss,
            b_max=b_max,
            difference=difference,
            delta_acc=delta_acc,
        )
    except KeyError as error:
        raise gr.Error(f"column {error} is missing; the first line names the columns") from None
    except (ValueError, TypeError) as error:
        raise gr.Error(str(error)) from None
    return json.dumps(result, indent=2)


def build() -> gr.Blocks:
    """The page."""
    with gr.Blocks(title="Counterfactual bias") as page:
        gr.Markdown("# Counterfactual bias\nOne row per item and option order: P(right option) before and after.")
        table = gr.Textbox(EXAMPLE, lines=10, label="Items (CSV)")
        with gr.Row():
            ipss = gr.Radio(["per_order", "merged"], value="per_order", label="Ipss")
            b_max = gr.Radio(["abs", "signed"], value="abs", label="B_max")
            difference = gr.Radio(["probability", "outcome"], value="probability", label="Difference")
            delta_acc = gr.Radio(["pair", "occupation"], value="pair", label="ΔAcc")
        result = gr.Code(language="json", label="Result")
        inputs = [table, ipss, b_max, difference, delta_acc]
        gr.Button("Compute", variant="primary").click(score, inputs, result, api_name="score")
    return page


if __name__ == "__main__":
    build().launch()

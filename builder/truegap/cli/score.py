"""`truegap score`: answers that exist already are scored, no model runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from truegap.results.readers import Scored

_HELP = """Score answers that exist already; no model runs.

FILES is one table (.csv, .tsv, .parquet) with a row per answer, or what the papers' code writes (.json). Columns:

  vqa: score (p(Yes) in 0..1, or 0/1), gender (woman/man); optional: image_id, question, config, option, topic, polarity

  retrieval: score, gender, image_id, query; optional: config

  resolution: his, her, gender (of the person referred to); optional: their, other_gender, image_id, occupation, sector,
  specialisation, config

  counterfactual: base, counterfactual (P of the right option, or 0/1), occupation, pair ("occ_m|occ_f"), gender (of the
  base image); optional: order (0/1), context, image_id (of the base image), config

With config, each is scored apart; of vqa and retrieval the change from `original` to every other is given too.

JSON that is read: VisoGender's raw scores (resolution: one or both contexts; retrieval: one) and benchmark scores,
GenderBias-VL's result items (base and counterfactual, and then both with the options swapped; --pairs names the
authors' table of pairs).

Examples:

  truegap score answers.csv --protocol vqa

  truegap score runs/my-clip/answers.parquet --protocol retrieval --json

  truegap score clip_clip_ContextOO.json clip_clip_ContextOP.json --protocol resolution

  truegap score base.json cf.json base_swap.json cf_swap.json --protocol counterfactual --pairs occ_merge_filter_sim.csv
"""


def register(app: typer.Typer) -> None:
    """Adds the verb."""
    app.command("score", help=_HELP)(score)


def score(
    files: Annotated[list[Path], typer.Argument(help="A table, or the .json files of one run.")],
    protocol: Annotated[str, typer.Option(help="vqa, retrieval, resolution or counterfactual.")],
    pairs: Annotated[Path | None, typer.Option(help="counterfactual: occ_merge_filter_sim.csv, or its folder.")] = None,
    k: Annotated[str, typer.Option(help="retrieval: cuts, separated by commas.")] = "",
    draws: Annotated[int | None, typer.Option(help="retrieval: balanced draws; 0 ranks every image.", min=0)] = None,
    target: Annotated[str, typer.Option(help="retrieval: desired shares, uniform or dataset.")] = "uniform",
    empty: Annotated[str, typer.Option(help="retrieval: skew of an absent gender, clip or neg_inf.")] = "clip",
    candidates: Annotated[str, typer.Option(help="resolution: three (their is wrong) or two.")] = "three",
    ties: Annotated[str, typer.Option(help="resolution: wrong, or first as the public code.")] = "wrong",
    round_intermediate: Annotated[
        bool, typer.Option(help="resolution: two decimals before averaging, as published.")
    ] = False,
    ipss: Annotated[str, typer.Option(help="counterfactual: per_order (as published) or merged.")] = "per_order",
    b_max: Annotated[str, typer.Option(help="counterfactual: abs, or signed as published.")] = "abs",
    difference: Annotated[str, typer.Option(help="counterfactual: probability or outcome.")] = "probability",
    delta_acc: Annotated[
        str, typer.Option(help="counterfactual: pair (the paper's words), or occupation as published.")
    ] = "pair",
    aggregate: Annotated[
        str, typer.Option(help="retrieval: delta over draws, mean_of_ratios or ratio_of_means.")
    ] = "mean_of_ratios",
    threshold: Annotated[
        float, typer.Option(help="vqa: no delta where |original| is below it; 0 keeps all.", min=0)
    ] = 0.005,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples; 0 for no intervals.", min=0)] = 1000,
    seed: Annotated[int, typer.Option(help="Of draws and resamples.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print every score as JSON.")] = False,
) -> None:
    """See `_HELP`."""
    import json

    from truegap.results.readers import Scoring, score_files

    scoring = Scoring(
        k=_cuts(k),
        draws=draws,
        target=target,
        empty=empty,
        candidates=candidates,
        ties=ties,
        round_intermediate=round_intermediate,
        ipss=ipss,
        b_max=b_max,
        difference=difference,
        delta_acc=delta_acc,
        aggregate=aggregate,
        threshold=threshold,
        n_resamples=resamples,
        seed=seed,
    )
    scored = score_files(files, protocol, scoring, pairs=pairs)
    if as_json:
        data = {
            "protocol": scored.protocol,
            "files": [str(path) for path in files],
            "options": scored.options,
            "scores": [each.model_dump() for each in scored.scores],
            "changes": [each.model_dump() for each in scored.changes],
            "notes": scored.notes,
        }
        typer.echo(json.dumps(data, indent=1))
        return
    _print(scored)


def _print(scored: Scored) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from truegap.results.show import interval, number, percent, plain, signed

    columns = ("config", "scope", "score", "value", "95 % interval", "sd", "at random")
    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
    # Those of single prompts, pairs and groups are many: --json holds them.
    shown = [each for each in scored.scores if ":" not in each.scope]
    for each in shown:
        null = "" if each.null is None else number(each.null)
        spread = "" if each.sd is None else number(each.sd)
        span = interval(each.ci_low, each.ci_high)
        value = number(each.value) if each.reason is None else f"none ({each.reason})"
        texts = (plain(each.config, 40), plain(each.scope, 40), each.metric, value, span, spread, null)
        table.add_row(*map(escape, texts))
    console = Console()
    console.print(table)
    if scored.changes:
        table = Table("to", "score", "delta %", "95 % interval", "change", "95 % interval", box=box.SIMPLE_HEAD)
        for change in scored.changes:
            delta = interval(change.delta_low, change.delta_high, percent)
            moved = interval(change.signed_low, change.signed_high, signed)
            shown_delta = percent(change.delta) if change.reason is None else f"none ({change.reason})"
            cells = (plain(change.config, 40), change.metric, shown_delta, delta, signed(change.signed_change), moved)
            table.add_row(*map(escape, cells))
        console.print(table)
    for note in scored.notes:
        typer.echo(f"note: {plain(note)}")
    hidden = len(scored.scores) - len(shown)
    if hidden:
        typer.echo(f"{hidden} scores of single prompts, queries, pairs and groups: --json")


def _cuts(k: str) -> tuple[int, ...] | None:
    from truegap.errors import UserError

    try:
        return tuple(int(each) for each in k.split(",") if each.strip()) or None
    except ValueError:
        raise UserError(f"--k {k}: give whole numbers separated by commas, such as 5,10") from None

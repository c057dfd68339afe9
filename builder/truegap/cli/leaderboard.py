"""`truegap leaderboard`: runs become rows of a table, and models wait to be evaluated."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from truegap.cli import leaderboard_queue

_GROUP = """A table of runs.

Examples:

  truegap leaderboard submit runs/my-clip

  truegap leaderboard submit --model ORG/my-clip --benchmark ORG/coco-gender@v1.0.0 --protocol retrieval

  truegap leaderboard work --once

  truegap leaderboard serve
"""
_SUBMIT = """Add runs to the leaderboard's store, or put a model into its queue for a worker to evaluate.

RUNS are folders; one that holds runs stands for all of them. The same model on the same question is one row:
submitting it again changes nothing.

With --model instead, the model is looked at (it exists, its revision, no remote code, safetensors, licence and card,
size, how much you have asked for) and waits in the queue; `truegap leaderboard queue` shows what becomes of it. With
--space it waits in the queue of a leaderboard on the Hub, which knows you by the token of `hf auth login`, or of
HF_TOKEN: one without any permission will do.

Examples:

  truegap leaderboard submit runs/my-clip-coco-gender-1a2b3c4d

  truegap leaderboard submit --model ORG/my-clip --benchmark ORG/coco-gender@v1.0.0 --protocol retrieval --store hf://ORG

  truegap leaderboard submit --model ME/clip --benchmark ORG/coco-gender@v1.0.0 --protocol retrieval --space ORG/board
"""
_SHOW = """Print the leaderboard, ranked within each question; rows that nothing clearly separates share a rank.

Examples:

  truegap leaderboard show

  truegap leaderboard show --json
"""
_SERVE = """Show the leaderboard in a browser, on this machine only unless --host says otherwise.

With --work a worker evaluates what waits, in a process beside the page; where it dies, another follows, and it ends
with the page.

Examples:

  truegap leaderboard serve --port 7860

  truegap leaderboard serve --work
"""

Store = Annotated[
    str | None,
    typer.Option(help="A folder, or hf://ORG on the Hub; by default $TRUEGAP_STORE, else the user's data folder."),
]


def register(app: typer.Typer) -> None:
    """Adds the verb and what it can do."""
    verbs = typer.Typer(help=_GROUP, no_args_is_help=True)
    verbs.command("submit", help=_SUBMIT)(submit)
    verbs.command("show", help=_SHOW)(show)
    leaderboard_queue.register(verbs)
    verbs.command("serve", help=_SERVE)(serve)
    app.add_typer(verbs, name="leaderboard")


def submit(
    runs: Annotated[list[Path] | None, typer.Argument(help="Run folders, or folders that hold some.")] = None,
    store: Store = None,
    model: Annotated[
        str | None, typer.Option(help="Ask for this model: ORG/NAME[@REVISION] on the Hub, or a folder.")
    ] = None,
    benchmark: Annotated[str, typer.Option(help="With --model: a built folder, ORG/NAME@TAG, or synthetic@v1.")] = "",
    protocol: Annotated[str, typer.Option(help="With --model: as of `truegap evaluate`.")] = "",
    profile: Annotated[str, typer.Option(help="With --model: lite or full.")] = "lite",
    note: Annotated[str, typer.Option(help="With --model: a line for the reader.")] = "",
    space: Annotated[
        str | None,
        typer.Option(help="With --model: ask this leaderboard, ORG/NAME on the Hub or its address, not a store."),
    ] = None,
    pull_request: Annotated[
        bool,
        typer.Option(
            "--pull-request", help="With --model: bring the results to the model's repository; for its author alone."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what became of it as JSON.")] = False,
) -> None:
    """See `_SUBMIT`."""
    from truegap.errors import UserError

    if (model is None) == (not runs):
        raise UserError("submit takes run folders, or --model for one that is to be evaluated: give one of the two")
    if model is None:
        if benchmark or protocol or note or space or pull_request:
            raise UserError(
                "--benchmark, --protocol, --note, --space and --pull-request go with --model; a run says for itself "
                "what it is of"
            )
        _submit_runs(runs or [], store, as_json=as_json)
        return
    if not benchmark or not protocol:
        raise UserError("--model needs --benchmark and --protocol: what is to be asked")
    asked = {
        "model": model,
        "benchmark": benchmark,
        "protocol": protocol,
        "profile": profile,
        "note": note,
        "pull_request": pull_request,
    }
    if space is None:
        leaderboard_queue.submit_model(store, asked, as_json=as_json)
    elif store is None:
        leaderboard_queue.ask_leaderboard(space, asked, as_json=as_json)
    else:
        raise UserError("--space and --store: give one of the two; a Space has its own store")


def _submit_runs(runs: list[Path], store: str | None, *, as_json: bool) -> None:
    import json

    from truegap.leaderboard import open_store, row_of
    from truegap.leaderboard.details import details_of, keep_details
    from truegap.leaderboard.store import HUB
    from truegap.results.runs import find_runs, read_run
    from truegap.results.show import plain

    board = open_store(store)
    found = [read_run(folder) for folder in find_runs(runs)]
    kind: Any = "community" if board.where.startswith(HUB) else "local"
    receipts = [board.submit(row_of(run, kind=kind), run.scores) for run in found]
    for run, receipt in zip(found, receipts, strict=True):
        if receipt.added:
            keep_details(board, receipt.row.key, details_of(run))
    if as_json:
        said = [{"key": each.row.key, "path": str(each.path), "added": each.added} for each in receipts]
        typer.echo(json.dumps(said, indent=1))
        return
    for each in receipts:
        name = f"{plain(each.row.model.name)} on {plain(each.row.benchmark.name)} {plain(each.row.benchmark.version)}"
        if each.added:
            typer.echo(f"added: {name}")
        elif each.differs:
            typer.echo(f"there already with other numbers, which stay: {name}; to replace it remove {each.path}")
        else:
            typer.echo(f"there already: {name}")
    typer.echo(f"store: {board.where}\nnext: truegap leaderboard show; truegap leaderboard serve")


def show(
    store: Store = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """See `_SHOW`."""
    import json

    from truegap.leaderboard import open_store, table

    board = open_store(store)
    contents = board.read()
    rows = table(contents.rows).to_pylist()
    if as_json:
        typer.echo(json.dumps({"rows": rows, "broken": contents.broken}, indent=1))
        return
    if not rows:
        typer.echo(f"no rows in {board.where}; `truegap leaderboard submit RUN` adds one")
    _print(rows)
    for name, reason in contents.broken.items():
        typer.echo(f"not read: {name}: {reason}", err=True)


def _print(rows: list[dict[str, Any]]) -> None:
    from truegap.results.show import interval, number, percent, plain

    last = None
    for row in rows:
        if row["board"] != last:
            last = row["board"]
            typer.echo(f"{last}\n{'rank':>4}  {'model':<40}{'bias':>24}{'blind':>8}{'mean delta %':>24}{'floor %':>12}")
        bias = f"{number(row['bias'])} {interval(row['bias_low'], row['bias_high'])}"
        delta = f"{percent(row['mean_delta'])} {interval(row['mean_delta_low'], row['mean_delta_high'], percent)}"
        floors = f"{percent(row['floor'])} / {percent(row['floor_hsv'])}"
        rank = "-" if row["rank"] is None else row["rank"]
        name = plain(row["model"], 39)
        typer.echo(f"{rank:>4}  {name:<40}{bias:>24}{number(row['null'] or 0.0):>8}{delta:>24}{floors:>12}")


def serve(
    store: Store = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 7860,
    work: Annotated[bool, typer.Option("--work", help="Evaluate what waits too.")] = False,
) -> None:
    """See `_SERVE`."""
    from threading import Event, Thread

    from truegap.cli.pages import check_gradio, check_port, load_page
    from truegap.leaderboard import LocalStore, keep_working, open_store

    check_gradio("the leaderboard's page")
    check_port(host, port)
    board = open_store(store)
    # A folder may have been changed by hand; on the Hub only who may write can make the table anew.
    contents = board.refresh() if isinstance(board, LocalStore) else board.read()
    for name, reason in contents.broken.items():
        typer.echo(f"not read: {name}: {reason}", err=True)
    app = load_page("leaderboard")
    said = f"{len(contents.rows)} rows of {board.where} at http://{host}:{port} (Ctrl+C ends it)"
    over, local = Event(), {"folders": isinstance(board, LocalStore)}
    worker = Thread(target=keep_working, args=(board, over), kwargs=local, daemon=True) if work else None
    if worker is not None:
        worker.start()
    try:
        app.serve(app.build(board), host, port, ready=lambda: typer.echo(said))
    finally:
        over.set()
        if worker is not None:
            worker.join()

"""`truegap leaderboard`: runs become rows of a table, on this machine."""

from __future__ import annotations

import errno
import importlib.util
import os
import socket
from pathlib import Path
from typing import Annotated, Any

import typer

_GROUP = """A table of runs.

Examples:

  truegap leaderboard submit runs/my-clip

  truegap leaderboard serve
"""
_SUBMIT = """Add a run to the leaderboard's store; a folder of runs stands for all runs in it.

The same model on the same question is one row: submitting it again changes nothing.

Example:

  truegap leaderboard submit runs/my-clip-coco-gender-1a2b3c4d
"""
_SHOW = """Print the leaderboard, ranked within each question; rows that nothing clearly separates share a rank.

Examples:

  truegap leaderboard show

  truegap leaderboard show --json
"""
_SERVE = """Show the leaderboard in a browser, on this machine only unless --host says otherwise.

Example:

  truegap leaderboard serve --port 7860
"""

Store = Annotated[Path | None, typer.Option(help="Its folder; by default $TRUEGAP_STORE, else the user's data folder.")]


def register(app: typer.Typer) -> None:
    """Adds the verb and what it can do."""
    verbs = typer.Typer(help=_GROUP, no_args_is_help=True)
    verbs.command("submit", help=_SUBMIT)(submit)
    verbs.command("show", help=_SHOW)(show)
    verbs.command("serve", help=_SERVE)(serve)
    app.add_typer(verbs, name="leaderboard")


def submit(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders that hold some.")],
    store: Store = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what became of each run as JSON.")] = False,
) -> None:
    """See `_SUBMIT`."""
    import json

    from truegap.leaderboard import row_of
    from truegap.results.runs import find_runs, read_run
    from truegap.results.show import plain

    board = _store(store)
    rows = [row_of(read_run(folder)) for folder in find_runs(runs)]
    receipts = [board.submit(row) for row in rows]
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
    typer.echo(f"store: {board.folder}\nnext: truegap leaderboard show; truegap leaderboard serve")


def show(
    store: Store = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """See `_SHOW`."""
    import json

    from truegap.leaderboard import table

    board = _store(store)
    contents = board.read()
    rows = table(contents.rows).to_pylist()
    if as_json:
        typer.echo(json.dumps({"rows": rows, "broken": contents.broken}, indent=1))
        return
    if not rows:
        typer.echo(f"no rows in {board.folder}; `truegap leaderboard submit RUN` adds one")
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
) -> None:
    """See `_SERVE`."""
    from truegap.errors import UserError
    from truegap.resources import house

    # Before the import: gradio reads it once.
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    if importlib.util.find_spec("gradio") is None:
        raise UserError("the leaderboard's page needs gradio: pip install 'truegap[space]'")
    _check_port(host, port)
    board = _store(store)
    contents = board.refresh()
    for name, reason in contents.broken.items():
        typer.echo(f"not read: {name}: {reason}", err=True)
    app = _load(house("spaces", "leaderboard", "app.py"))
    said = f"{len(contents.rows)} rows of {board.folder} at http://{host}:{port} (Ctrl+C ends it)"
    app.serve(app.build(board.folder), host, port, ready=lambda: typer.echo(said))


def _store(folder: Path | None) -> Any:
    from truegap.leaderboard import LocalStore, default_store

    return LocalStore(folder or default_store())


def _check_port(host: str, port: int) -> None:
    """One clear line for a port that cannot be had, before anything heavy is loaded.

    Raises:
        UserError: The port is in use, or the host is not one of this machine.
    """
    from truegap.errors import UserError

    try:
        with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET):
            return
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UserError(f"port {port} on {host} is in use: choose another with --port") from None
        raise UserError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None


def _load(path: Path) -> Any:
    """The Space's app as a module: the same file runs on the Hub."""
    spec = importlib.util.spec_from_file_location("truegap_leaderboard_space", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

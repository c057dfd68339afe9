"""`truegap leaderboard submit --model | queue | work`: models that wait, and the worker that evaluates them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from truegap.hub.tokens import Owner
    from truegap.leaderboard import Request

_QUEUE = """Show what waits, runs, is finished or failed, with the reason; KEY shows one request and its log.

Examples:

  truegap leaderboard queue

  truegap leaderboard queue --json

  truegap leaderboard queue 1a2b3c4d5e6f
"""
_WORK = """Evaluate what waits in the queue, until it is interrupted; what runs then goes back to the queue.

Every evaluation is a process of its own, without a token, that reads little else than the model and the benchmark. Any
number of workers may work on one queue. Run it beside a page, on another machine with --store hf://ORG, or as one job
per request with --once --key.

Examples:

  truegap leaderboard work

  truegap leaderboard work --once --key 1a2b3c4d5e6f --store hf://ORG --device cuda
"""

Store = Annotated[
    str | None,
    typer.Option(help="A folder, or hf://ORG on the Hub; by default $TRUEGAP_STORE, else the user's data folder."),
]


def register(verbs: typer.Typer) -> None:
    """Adds the verbs of the queue."""
    verbs.command("queue", help=_QUEUE)(queue)
    verbs.command("work", help=_WORK)(work)


def submit_model(store: str | None, asked: Mapping[str, Any], *, as_json: bool) -> None:
    """Asks for an evaluation, as whoever runs this; `asked` is as `ask` takes it."""
    from truegap.errors import UserError
    from truegap.hub.snapshots import folder_at
    from truegap.leaderboard import Limits, ask, open_store

    board = open_store(store)
    # Who may write to the store is bounded by nothing else: the folder is theirs, or the Hub lets them.
    local = _is_folder(board.where)
    benchmark = asked["benchmark"]
    if not local and folder_at(benchmark):
        raise UserError(f"{benchmark} is a folder, which no other machine has: `truegap publish` it, or name it there")
    limits = Limits(benchmarks=(benchmark,), folders=local, again=0.0, requests_per_day=10_000, waiting=10_000)
    user = _user(local=local)
    request = ask(board, user=user.name, organizations=user.organizations, limits=limits, **asked)
    if as_json:
        typer.echo(request.model_dump_json(indent=1))
        return
    typer.echo(f"waits: {_line(request)}\nstore: {board.where}")
    typer.echo(f"next: truegap leaderboard queue {request.key[:12]}; truegap leaderboard work evaluates it")


def ask_leaderboard(space: str, asked: Mapping[str, Any], *, as_json: bool) -> None:
    """Asks a leaderboard that is served somewhere, through its API, which takes the same as `submit_model`."""
    from truegap.errors import UserError
    from truegap.hub.snapshots import folder_at, is_repository, split_revision
    from truegap.hub.space import ask_space
    from truegap.results.show import plain

    for each in (asked["model"], asked["benchmark"]):
        if not is_repository(split_revision(each)[0]) and folder_at(each):
            raise UserError(f"{each} is a folder, which a Space does not have: `truegap publish` it, or use --store")
    told = ask_space(space, asked)
    if as_json:
        typer.echo(json.dumps(told, indent=1))
        return
    state, key = (plain(told.get(name), 80) for name in ("state", "key"))
    found = f"{told.get('model')}@{str(told.get('revision'))[:12]} on {told.get('benchmark')} {told.get('version')}"
    typer.echo(f"waits: {state}  {key[:12]}  {plain(found, 300)}, {plain(told.get('user'))}")
    typer.echo(f"next: the queue of {plain(space)} shows what becomes of it")


def queue(
    key: Annotated[str, typer.Argument(help="The key of one request, or how it begins.")] = "",
    store: Store = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the requests as JSON.")] = False,
) -> None:
    """See `_QUEUE`."""
    from truegap.errors import UserError
    from truegap.leaderboard import open_store
    from truegap.results.show import plain

    board = open_store(store)
    found = board.queue()
    requests = [each for each in found.requests if each.key.startswith(key)]
    if as_json:
        told: dict[str, Any] = {"requests": [each.model_dump() for each in requests], "broken": found.broken}
        typer.echo(json.dumps(told, indent=1))
        return
    if key and len(requests) != 1:
        raise UserError(
            f"{plain(key)} is the beginning of {len(requests) or 'no'} keys: see `truegap leaderboard queue`"
        )
    if not requests:
        typer.echo(f"nothing in {board.where}; `truegap leaderboard submit --model` asks for an evaluation")
    for each in requests:
        typer.echo(_line(each))
    if key:
        typer.echo(board.log(requests[0].key) or "no log yet")
    for name, reason in found.broken.items():
        typer.echo(f"not read: {plain(name)}: {plain(reason)}", err=True)


def work(
    store: Store = None,
    once: Annotated[bool, typer.Option("--once", help="One request, then end.")] = False,
    key: Annotated[str | None, typer.Option(help="Only this request: its key, or how that begins.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    engine: Annotated[str, typer.Option(help="local, or ray: the evaluation runs on a cluster.")] = "local",
    parameters: Annotated[float, typer.Option(help="The largest model, in billions of parameters.", min=0)] = 2.0,
    hours: Annotated[float, typer.Option(help="For one evaluation.", min=0)] = 6.0,
    folders: Annotated[
        bool | None, typer.Option(help="Whether models may be folders of this machine; not with hf://ORG.")
    ] = None,
    parent: Annotated[int | None, typer.Option(hidden=True, help="End with this process.")] = None,
) -> None:
    """See `_WORK`."""
    import signal
    import threading

    from truegap.engine import check_engine
    from truegap.leaderboard import Limits, open_store
    from truegap.leaderboard import work as evaluate_requests
    from truegap.leaderboard.confined import hide_memory
    from truegap.leaderboard.worker import stop_with_parent

    check_engine(engine)
    board, stop = open_store(store), threading.Event()
    local = _is_folder(board.where)
    limits = Limits(
        folders=local if folders is None else folders and local,
        parameters=round(parameters * 1e9),
        weight_bytes=round(parameters * 4e9),
        seconds=hours * 3600,
    )
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: stop.set())
    if parent is not None:
        stop_with_parent(parent, stop)
    hide_memory()
    typer.echo(f"working on {board.where}", err=True)
    done = evaluate_requests(
        board,
        once=once,
        key=key,
        limits=limits,
        stop=stop,
        progress=lambda line: typer.echo(line, err=True),
        device=device,
        engine=check_engine(engine),
    )
    if once and not done:
        typer.echo("nothing to do", err=True)


def _line(request: Request) -> str:
    from truegap.results.show import plain

    asked = f"{request.model}@{request.revision.removeprefix('sha256:')[:12]} on {request.benchmark} {request.version}"
    said = f"{asked}, {request.protocol} {request.profile}, {request.user}"
    said += f": {request.reason}" if request.reason else ""
    said += f"; pull request {request.offer}" if request.offer else ""
    return f"{request.state:<9} {request.key[:12]}  {plain(said, 1000)}"


def _is_folder(where: str) -> bool:
    from truegap.leaderboard.store import HUB

    return not where.startswith(HUB)


def _user(*, local: bool) -> Owner:
    """Who asks: the machine's user, or on the Hub whoever the token belongs to."""
    from truegap.hub.commit import own_account
    from truegap.hub.tokens import Owner
    from truegap.leaderboard import local_user

    return Owner(local_user()) if local else own_account()

"""The queue: every request with its state and reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from truegap.leaderboard.request import Request
from truegap.leaderboard.site.sheet import Cell, Column, Sheet
from truegap.leaderboard.site.view import View
from truegap.results.show import plain

_SHOWN = 200


def states(requests: Sequence[Request]) -> list[tuple[str, int]]:
    """How many requests are in each state, in the order of a request's life."""
    counts = Counter(each.state for each in requests)
    return [(state, counts[state]) for state in ("PENDING", "RUNNING", "FINISHED", "FAILED") if counts[state]]


def queue_sheet(requests: Sequence[Request], view: View, *, whole: bool = False) -> Sheet:
    """The newest requests first; all of them if `whole`."""
    newest = sorted(requests, key=lambda each: (each.submitted, each.key), reverse=True)
    return Sheet(
        "queue",
        "Requests, the newest first",
        [
            Column("State", "what became of it", ("state",), number=False),
            Column("Model", "what is to be evaluated", ("model", "revision"), number=False),
            Column("Benchmark", "on what", ("benchmark", "version"), number=False),
            Column("Protocol", "how", ("protocol", "profile"), number=False),
            Column("User", "who asked", ("user",), number=False),
            Column("Submitted", "UTC", ("submitted",), number=False),
            Column("Attempts", "how many workers took it", ("attempts",)),
            Column("Reason", "why it failed, or waits once more", ("reason",), number=False),
            Column("Pull request", "to the model's repository, on its author's wish", ("pull_request",), number=False),
            Column("Note", "of the user", ("note",), number=False),
            Column("Log", "what the last attempt printed", (), number=False),
        ],
        [("", [_line(each, view) for each in (newest if whole else newest[:_SHOWN])])],
        csv=view.query(csv="queue"),
        head=1,
    )


def public(request: Request) -> dict[str, Any]:
    """A request as everybody may see it: where a folder lies, and who runs it, is for who runs this machine alone."""
    model = _last(request.model) if request.local else request.model
    reason, benchmark = request.reason.replace(request.model, model), request.benchmark
    if request.benchmark_revision is None:
        benchmark = _last(benchmark)
        reason = reason.replace(request.benchmark, benchmark)
    told = request.model_dump(exclude={"format_version", "worker", "lease_until"})
    return told | {"model": model, "benchmark": benchmark, "reason": reason}


def _line(request: Request, view: View) -> list[Cell]:
    told = public(request)
    model, asked, reason = told["model"], told["benchmark"], told["reason"]
    benchmark = _last(asked)
    return [
        Cell(request.state, (request.state,), badge=True),
        Cell(plain(model, 120), (model, request.revision), title=request.revision),
        Cell(f"{plain(benchmark, 80)} {plain(request.version)}", (asked, request.version)),
        Cell(f"{request.protocol}, {request.profile}", (request.protocol, request.profile)),
        Cell(plain(request.user, 60), (request.user,)),
        Cell(request.submitted[:16].replace("T", " "), (request.submitted,)),
        Cell(str(request.attempts), (request.attempts,)),
        Cell(plain(reason, 240) or "-", (reason,)),
        Cell(plain(request.offer, 240) or "-", (request.offer,)),
        Cell(plain(request.note, 120) or "-", (request.note,)),
        Cell("log", (), link=view.query(tab="queue", log=request.key)),
    ]


def _last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]

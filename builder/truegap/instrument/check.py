"""The whole check: benchmarks, runs, worlds, lines; what is finished is not done again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from truegap.engine import run_tasks
from truegap.errors import UserError
from truegap.files.atomic import write_bytes
from truegap.instrument import accuracy, chance, context, growth, matrix, retrieval, sampling, worlds
from truegap.instrument.benchmarks import BenchmarkTask, make, prediction
from truegap.instrument.evidence import Evidence
from truegap.instrument.plan import KINDS, READERS, Profile, asked, spec
from truegap.instrument.records import Check, Line
from truegap.instrument.runs import Measured, RunTask, evaluate
from truegap.results.environment import environment
from truegap.synthetic.reference import VERSION
from truegap.synthetic.scene import label
from truegap.synthetic.selection import GENERATOR

RESULT = "instrument.json"
_PLAN = "plan.json"
_ACCURACY = "accuracy"

LINES: tuple[Callable[[Evidence], Line], ...] = (
    growth.bias,
    growth.change,
    growth.untouched,
    matrix.prediction,
    matrix.diagonal,
    matrix.left,
    retrieval.moves,
    context.share,
    context.swap,
    chance.alarms,
    chance.max_skew,
    sampling.coverage,
    sampling.power,
    accuracy.nothing,
)
"""In the order in which they are shown."""

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


def check_instrument(
    out: Path, profile: Profile, *, seed: int = 0, workers: int | None = None, progress: Progress
) -> Check:
    """Measures planted truth with the instrument, and says line by line whether it is found.

    Args:
        out: Where benchmarks, runs and the result go; what an interrupted check left there is gone on with.
        profile: How much.
        seed: Another seed, other pictures.
        workers: Processes; None for one per core.
        progress: What shows progress.

    Returns:
        The lines with their figures; also written to `out` as `instrument.json`.

    Raises:
        UserError: `out` holds something else, or a check of another profile, seed or state of the code.
    """
    started = time.monotonic()
    _claim(out, profile, seed)
    benchmarks, runs, fresh = _tasks(out, profile, seed)
    for folder in ("benchmarks", "runs", "worlds"):
        (out / folder).mkdir(exist_ok=True)
    _all("drawing benchmarks", make, benchmarks, workers, progress)
    _all("asking reference models", evaluate, runs, workers, progress)
    _all("looking for gaps where none are", worlds.look, fresh, workers, progress)
    accuracy.look(benchmarks[-1].folder, out / _ACCURACY, progress)
    evidence = gathered(out, profile, seed)
    with progress("holding them against the truth", len(LINES)) as advance:
        lines = [_advanced(line(evidence), advance) for line in LINES]
    found = Check(
        profile=profile.name,
        seed=seed,
        images=profile.images,
        rhos=list(profile.rhos),
        seconds=round(time.monotonic() - started, 1),
        environment=environment(),
        lines=lines,
    )
    write_bytes(out / RESULT, found.model_dump_json(indent=1).encode())
    return found


def gathered(out: Path, profile: Profile, seed: int) -> Evidence:
    """What a check has run and predicted, read from its folder.

    Raises:
        UserError: A run is missing or broken.
    """
    benchmarks, runs, fresh = _tasks(out, profile, seed)
    return Evidence(
        profile=profile,
        seed=seed,
        runs={task.key: Measured.of(task) for task in runs},
        predicted={task.rho: prediction(task) for task in benchmarks},
        men=np.array([label(seed, index) == "man" for index in range(profile.images)]),
        worlds=[world for task in fresh for world in worlds.seen(task)],
        accuracies=accuracy.seen(out / _ACCURACY),
    )


def _tasks(out: Path, profile: Profile, seed: int) -> tuple[list[BenchmarkTask], list[RunTask], list[worlds.WorldTask]]:
    """All that is to be done, the longest first: the last one to begin should not be the last to end."""
    benchmarks = [
        BenchmarkTask(out / "benchmarks" / f"rho-{rho:g}", rho, profile, seed) for rho in reversed(profile.rhos)
    ]
    runs = [
        RunTask(
            each.folder,
            out / "runs" / f"rho-{each.rho:g}-{_name(kind, reader)}",
            each.rho,
            kind,
            reader,
            profile,
            seed,
        )
        for each in benchmarks
        for kind in KINDS
        for reader in READERS
        if asked(profile, each.rho, kind, reader)
    ]
    return benchmarks, runs, worlds.tasks(out / "worlds", profile, seed)


def _name(kind: str, reader: str) -> str:
    return spec(kind, reader).partition(":")[2].replace("*", "-").replace("+", "-")


def _all(
    what: str, function: Callable[[Any], object], tasks: Sequence[Any], workers: int | None, progress: Progress
) -> None:
    with progress(what, len(tasks)) as advance:
        for _ in run_tasks(function, tasks, workers=workers):
            advance(1)


def _advanced(line: Line, advance: Callable[[int], None]) -> Line:
    advance(1)
    return line


def _claim(out: Path, profile: Profile, seed: int) -> None:
    """Makes the folder, or goes on with the same check's: of the same profile and seed, by the same code.

    Two checkouts with uncommitted changes at the same commit are taken for the same code.

    Raises:
        UserError: It holds something else.
    """
    here = environment()
    code = {"truegap": here.truegap, "commit": here.commit, "dirty": here.dirty}
    wanted = {"profile": profile.name, "seed": seed, "generator": GENERATOR, "reference": VERSION, "code": code}
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out} is a file: give a folder")
    out.mkdir(parents=True, exist_ok=True)
    plan = out / _PLAN
    if not plan.exists():
        if any(out.iterdir()):
            raise UserError(f"--out {out} holds something else: give an empty folder")
        write_bytes(plan, json.dumps(wanted, sort_keys=True).encode())
        return
    found = _read(plan)
    if found == wanted:
        return
    if {**found, "code": code} == wanted:
        raise UserError(
            f"--out {out} holds a check that other code began, whose figures may differ from those of this truegap "
            f"({code['truegap']}, commit {code['commit'] or 'unknown'}): choose another --out"
        )
    raise UserError(f"--out {out} holds a check of another profile, seed or version: choose another --out")


def _read(plan: Path) -> dict[str, Any]:
    """What a folder was begun for; nothing where that cannot be read."""
    try:
        found = json.loads(plan.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}

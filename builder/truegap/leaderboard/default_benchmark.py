"""The benchmark of a leaderboard that was told of none: drawn figures with planted truth, made here, free for anybody.

`truegap build synthetic --limit 200 --rho background=0.9` makes the same one anywhere: with the same versions of the
libraries that draw and encode, its content is equal to the last byte. It shows that a leaderboard works, and whether a
model's answers follow a background that goes with the label; of photographs of people it says nothing.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from truegap.errors import UserError
from truegap.leaderboard.limits import DEFAULT_BENCHMARK, Limits
from truegap.resources import cache_folder

if TYPE_CHECKING:
    from truegap.build import Plan

IMAGES = 200
"""As many as profile `lite` asks of any benchmark."""
SEED = 0
RHO = {"background": 0.9}
"""The background goes with the label; nothing else does."""

Say = Callable[[str], object]


def _on_screen(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def default_benchmark(say: Say = _on_screen) -> Path:
    """The folder of the default benchmark; where it is not there yet, it is made first, which takes half a minute.

    Any number of processes may ask at once: one makes it, the others wait. It is kept under `cache_folder()`; what is
    not whole there, such as after a cache was tidied, is made anew.

    Args:
        say: Called with a line before and after it is made; by default they go to the screen.

    Raises:
        UserError: It cannot be made here.
    """
    from truegap.build import Workspace, build_shard

    plan = _plan()
    folder = cache_folder().resolve() / "benchmarks" / f"{DEFAULT_BENCHMARK}-{plan.key()[:12]}"
    if _is_whole(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f"{folder.name}.lock")):
            if not _is_whole(folder):
                for left in (folder, folder.with_name(f"{folder.name}.partial")):
                    if left.exists():
                        shutil.rmtree(left)
                workspace = Workspace(plan, folder)
                say(f"making the benchmark {DEFAULT_BENCHMARK}: {IMAGES} drawn pictures, plain and perturbed")
                with workspace.opened():
                    for task in workspace.tasks():
                        build_shard(task)
                    workspace.finish()
                say(f"made the benchmark {DEFAULT_BENCHMARK} in {folder}")
    except OSError as error:
        # Who asks may be a visitor: where files lie here is nobody's business.
        why = error.strerror or "no space, or no right to write"
        raise UserError(
            f"benchmark {DEFAULT_BENCHMARK} cannot be made here ({why}): set TRUEGAP_CACHE to a folder with 200 MB"
        ) from None
    return folder


def _is_whole(folder: Path) -> bool:
    """Whether the benchmark is there with all of its files."""
    from truegap.build.manifest import read_manifest

    try:
        manifest = read_manifest(folder)
    except UserError:
        return False
    files = sum(each.files for each in manifest.splits.values())
    return all(len([*folder.glob(f"data/{config}/*.parquet")]) == files for config in manifest.configs)


def _plan() -> Plan:
    from truegap.build import Plan
    from truegap.sources import load_benchmark
    from truegap.synthetic.selection import selection

    drawn = selection(IMAGES, seed=SEED, rho=RHO)
    return Plan("synthetic", load_benchmark("synthetic").version, drawn, seed=SEED)


def make_ready(limits: Limits, say: Say = _on_screen) -> None:
    """Makes the default benchmark if it is offered, so that nobody who asks waits for it; says what is in the way."""
    if DEFAULT_BENCHMARK in limits.offered:
        try:
            default_benchmark(say)
        except UserError as error:
            say(str(error))

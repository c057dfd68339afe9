"""The run that a confined evaluation wrote: taken over and compared with what was asked, since it is not trusted."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from truegap.build.manifest import Manifest
from truegap.errors import UserError
from truegap.leaderboard.foreign_answers import check_answers
from truegap.leaderboard.request import RUN_ID, Request
from truegap.leaderboard.stored import LARGEST_SCORES
from truegap.protocols.profiles import PROFILES
from truegap.results.answers import FILE as ANSWERS
from truegap.results.runs import RUN, SCORES, Run, read_run
from truegap.results.show import plain

LARGEST_ANSWERS = 1024**3
_CHUNK = 1024**2
_FILES = {SCORES: LARGEST_SCORES, ANSWERS: LARGEST_ANSWERS, RUN: LARGEST_SCORES}
"""What is taken of a run, and bytes of each at most; `run.json` last, as everywhere."""
_MOST_CUTS = 4
"""Values of k; a worker asks for none, and a protocol's own are two at most."""


def take_run(folder: Path, into: Path) -> Run:
    """Copies a run to where its writer cannot change it any more, then reads it.

    What was opened is what is looked at and copied: a process that outlived its evaluation can swap nothing.

    Args:
        folder: What the evaluation wrote.
        into: An empty folder that it cannot write to.

    Raises:
        UserError: It is no run, or one of its files is a link, a pipe or a device, or too large.
    """
    try:
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        raise UserError("the evaluation wrote no run") from None
    try:
        for name, limit in _FILES.items():
            # Whatever lacks a file lacks it in the copy too, which says so.
            with suppress(FileNotFoundError):
                _take(place, name, into / name, limit)
    finally:
        os.close(place)
    return read_run(into)


def check_run(run: Run, request: Request, manifest: Manifest, *, benchmark: str, spec: str) -> None:
    """Whether a run answers a request.

    Args:
        run: The run.
        request: What was asked.
        manifest: Of the benchmark as it lies here.
        benchmark: The benchmark as the evaluation was told it.
        spec: The model, likewise.

    Raises:
        UserError: It is of something else, or its answers are not what such a run has.
    """
    record = run.record
    told = (record.benchmark.spec, record.benchmark.content, record.protocol)
    if told != (benchmark, request.content, request.protocol) or manifest.content != request.content:
        raise UserError("the benchmark is not what it was when the model was submitted: submit it again")
    if (record.benchmark.name, record.benchmark.version) != (manifest.benchmark, request.version):
        raise UserError("the run names another benchmark than the one that was asked: submit it again")
    if str(record.options.get("profile", "")).partition("-")[0] != request.profile:
        raise UserError("the run is of another profile: submit it again")
    _check_options(record.protocol, record.options)
    if (record.model.spec, record.model.name) != (spec, Path(request.model).name):
        raise UserError(f"the run is of model {plain(record.model.spec)}, not of the one that was asked for")
    if not request.local and record.model.revision != request.revision:
        raise UserError(f"the run is of revision {plain(record.model.revision)}, not of the one that was asked for")
    if not RUN_ID.fullmatch(record.run_id):
        raise UserError("the run has an id that no run has")
    if run.answers.exists():
        images = len(manifest.rows.image_id)
        check_answers(run.answers, min(images, PROFILES[request.profile].images or images) * len(manifest.configs))


def _check_options(protocol: str, told: Mapping[str, Any]) -> None:
    """That a run followed the protocol's own conventions, as every worker asks: what follows is computed by them."""
    from truegap.protocols.choose import protocol_class

    usual: Any = protocol_class(protocol)()
    for each in fields(usual):
        own = getattr(usual, each.name)
        if isinstance(own, int | float | str) and told.get(each.name, own) != own:
            raise UserError(f"the run has {each.name} {plain(told[each.name], 40)}, and {own} was asked for")
    cuts = told.get("k", [])
    if not isinstance(cuts, list) or len(cuts) > _MOST_CUTS:
        raise UserError("the run has other values of k than a worker asks for")


def _take(place: int, name: str, target: Path, limit: int) -> None:
    def opener(path: str, _: int) -> int:
        # A pipe would never open for reading, if it was waited for.
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)

    try:
        file = open(name, "rb", opener=opener)  # noqa: SIM115  # closed below; relative to an open folder
    except FileNotFoundError:
        raise
    except OSError:
        raise UserError(f"the evaluation wrote a {name} that is no plain file") from None
    with file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise UserError(f"the evaluation wrote a {name} that is no plain file")
        if found.st_size > limit:
            raise UserError(f"the evaluation wrote a {name} of {found.st_size:,} bytes, and {limit:,} are read at most")
        # No more than that, even if somebody still writes to it.
        left = found.st_size
        with target.open("xb") as copy:
            while left > 0 and (chunk := file.read(min(left, _CHUNK))):
                left -= copy.write(chunk)

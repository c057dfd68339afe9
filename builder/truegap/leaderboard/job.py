"""One evaluation in a process of its own, which gets nothing of its parent but what it needs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
import threading
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import truegap
from truegap.hub.snapshots import without_secrets
from truegap.leaderboard.confined import Rules
from truegap.leaderboard.limits import Limits
from truegap.resources import cache_folder

_KEPT = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "RAY_ADDRESS", "TZ")
"""Of the parent's environment: nothing that could hold a secret."""
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|CREDENTIAL|API_?KEY", re.IGNORECASE)
_SHORTEST_SECRET = 6
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc", "/opt", "/proc", "/sys")
_CONFINED = "from truegap.leaderboard.confined import main; main()"
_DEVICES = ("/dev",)
_CARD = "/dev/nvidiactl"
_POLL = 0.2
_GRACE = 10.0
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_UNSEEN = ("Cc", "Cf", "Co", "Cs", "Cn")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an evaluation ended.

    Attributes:
        status: Its exit status; negative for a signal; None where it was stopped from here.
        log: What it printed, cut in the middle and without secrets.
        late: Whether it was stopped because its time was over.
    """

    status: int | None
    log: str
    late: bool = False


def run_job(
    arguments: Sequence[str],
    folder: Path,
    *,
    read: Sequence[Path],
    limits: Limits,
    stopped: Callable[[], bool],
    device: str = "cpu",
    cluster: bool = False,
) -> Outcome:
    """Runs `truegap` with these arguments, confined.

    Args:
        arguments: Of the command.
        folder: Empty; the only one that it may write to, its home and working folder.
        read: Files and folders that it may read beside the libraries.
        limits: Time, memory, disk and log.
        stopped: Asked again and again: whether to end it early.
        device: Where the model runs.
        cluster: Whether it hands its work on to a Ray cluster, where nothing of this holds it.
    """
    # A CUDA device takes address space for all of its memory.
    card = device != "cpu" and Path(_CARD).exists()
    rules = Rules(
        read=[*_SYSTEM, *_libraries(), *(str(path.resolve()) for path in read)],
        write=[str(folder.resolve()), *_DEVICES],
        memory=None if card or cluster else limits.memory,
        file=limits.disk,
        held=not cluster,
    )
    command = [sys.executable, "-P", "-c", _CONFINED, rules.as_json(), *arguments]
    process = subprocess.Popen(  # noqa: S603  # our own interpreter; the arguments are checked and no shell sees them
        command,
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    log = _Log(process.stdout, limits.log)
    end, status, late = time.monotonic() + limits.seconds, None, False
    try:
        while (status := process.poll()) is None and not stopped():
            if late := time.monotonic() > end:
                break
            time.sleep(_POLL)
    finally:
        _end(process)
    return Outcome(status, clean(log.text(), folder), late)


def environment(folder: Path) -> dict[str, str]:
    """What the process sees of the world: no token, no home but its own, no way to the Hub."""
    from huggingface_hub import constants

    return {
        **{name: os.environ[name] for name in _KEPT if name in os.environ},
        "PATH": os.defpath,
        "PYTHONPATH": os.pathsep.join(_path()),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LANG": "C.UTF-8",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "TRUEGAP_CACHE": str(folder / "cache" / "truegap"),
        "HF_HOME": str(folder / "cache" / "hub"),
        "HF_HUB_CACHE": str(constants.HF_HUB_CACHE),
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def clean(text: str, folder: Path, secrets: Mapping[str, str] | None = None) -> str:
    """What everybody may read: no secret of this process's environment, no path of it, no control characters."""
    from huggingface_hub import constants

    known = os.environ if secrets is None else secrets
    for name, value in known.items():
        if _SECRET.search(name) and len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, "…")
    for place, name in ((folder, "~"), (constants.HF_HUB_CACHE, "cache"), (cache_folder().resolve(), "cache")):
        text = text.replace(str(place), name)
    lines = _ANSI.sub("", without_secrets(text)).replace("\r\n", "\n").replace("\r", "\n")
    return "".join(each for each in lines if each in "\n\t" or unicodedata.category(each) not in _UNSEEN)


def _libraries() -> list[str]:
    """Where Python and its packages are."""
    places = {
        sys.prefix,
        sys.base_prefix,
        *sysconfig.get_paths().values(),
        *_path(),
        str(Path(truegap.__file__).parent),
    }
    return sorted({str(Path(each).resolve()) for each in places})


def _path() -> list[str]:
    """Where modules are looked for, but for the folder that somebody happens to work in."""
    return [each for each in sys.path if each and Path(each).resolve() != Path.cwd()]


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the process and all that it started."""
    for ending in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, ending)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
            if ending == signal.SIGKILL:
                return
    process.wait()


class _Log:
    """What a process prints: its first half and its last, however much that is."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self._limit, self._first, self._last, self._left_out = limit // 2, bytearray(), bytearray(), 0
        self._stream = stream
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while chunk := self._stream.read1(8192):  # type: ignore[attr-defined]
            room = self._limit - len(self._first)
            self._first += chunk[:room]
            self._last += chunk[room:] if room > 0 else chunk
            if (beyond := len(self._last) - self._limit) > 0:
                del self._last[:beyond]
                self._left_out += beyond

    def text(self) -> str:
        self._thread.join(_GRACE)
        middle = f"\n[{self._left_out:,} bytes left out]\n".encode() if self._left_out else b""
        return bytes(self._first + middle + self._last).decode(errors="replace")

"""What the tests of engines run on other processes, which import it by this name."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path


def square(n: int) -> int:
    return n * n


def complain(n: int) -> int:
    from truegap.errors import UserError

    raise UserError(f"task {n} cannot be done")


def die(n: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return n


def begin(path: Path) -> None:
    """Leaves a file behind, then takes longer than anybody waits."""
    path.touch()
    time.sleep(600)


@dataclass(frozen=True)
class Watched:
    """An image that notes how often it was read, and may kill the first process that reads it."""

    data: bytes
    reads: Path
    deadly: bool = False

    def read(self) -> bytes:
        first = not self.reads.exists()
        with self.reads.open("a") as file:
            file.write("read\n")
        if first and self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.data

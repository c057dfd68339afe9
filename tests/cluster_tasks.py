"""What the tests of engines run on other processes, which import it by this name."""

from __future__ import annotations

import hashlib
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


def make(folder: Path) -> Path:
    """What a worker makes once: leaves a file behind, named by its process."""
    (folder / str(os.getpid())).touch()
    return folder


def count_made(folder: Path, number: int) -> tuple[int, int]:
    return number, sum(each.name == str(os.getpid()) for each in folder.iterdir())


def die_made(_folder: Path, _number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def load_watched(spec: str, *, device: str):
    """A model that notes in the folder `spec` how often it saw an image, and has an image of its own to die or stop at.

    The file `deadly` names the image that kills the first process that sees it, `unwanted` the one that is refused.
    """
    from answerer import Answerer
    from truegap.errors import UserError

    folder = Path(spec)
    assert device == "cpu"

    class WatchedAnswerer(Answerer):
        def answer(self, image, questions, batch_size=32):
            name = image_name(image)
            first = not (folder / name).exists()
            with (folder / name).open("a") as file:
                file.write("seen\n")
            if first and _is(folder / "deadly", name):
                os.kill(os.getpid(), signal.SIGKILL)
            if _is(folder / "unwanted", name):
                raise UserError(f"{name} is not wanted")
            return super().answer(image, questions, batch_size)

    return WatchedAnswerer()


def image_name(image) -> str:
    return "image-" + hashlib.sha256(image.tobytes()).hexdigest()[:12]


def _is(file: Path, name: str) -> bool:
    return file.exists() and file.read_text() == name

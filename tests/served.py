"""A command of truegap that serves pages, run as a user runs it."""

from __future__ import annotations

import contextlib
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path


def free_port() -> int:
    """A port below those that the system gives away by itself: nobody takes it before the server does."""
    for port in random.sample(range(20_000, 30_000), 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no free port")


@contextlib.contextmanager
def serving(*arguments: str, log: Path) -> Iterator[str]:
    """The address at which `truegap` with these arguments answers; what it prints goes into `log`."""
    port = free_port()
    command = [sys.executable, "-c", "from truegap.cli import main; main()", *arguments, "--port", str(port)]
    with log.open("wb") as printed:
        server = subprocess.Popen(command, stdout=printed, stderr=subprocess.STDOUT)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(2400):
            try:
                urllib.request.urlopen(address, timeout=60).close()
                break
            except OSError:
                assert server.poll() is None, log.read_text()
                time.sleep(0.25)
        yield address
    finally:
        server.send_signal(signal.SIGINT)
        try:
            server.wait(300)
        finally:
            server.kill()

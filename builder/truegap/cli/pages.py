"""What commands that serve a page of `spaces/` share."""

from __future__ import annotations

import errno
import importlib.util
import os
import socket
from typing import Any


def check_gradio(page: str) -> None:
    """One clear line where gradio is not installed, before anything heavy is loaded.

    Args:
        page: What needs it, such as `the leaderboard's page`.

    Raises:
        UserError: It is not.
    """
    from truegap.errors import UserError

    # Before the import: gradio reads it once.
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    if importlib.util.find_spec("gradio") is None:
        raise UserError(f"{page} needs gradio: pip install 'truegap[space]'")


def check_port(host: str, port: int) -> None:
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


def load_page(name: str) -> Any:
    """The `app.py` of a folder of `spaces/` as a module: the same file runs on the Hub.

    Raises:
        UserError: There is no such folder.
    """
    from truegap.resources import house

    spec = importlib.util.spec_from_file_location(f"truegap_{name}_space", house("spaces", name, "app.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

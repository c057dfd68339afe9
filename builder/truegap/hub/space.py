"""Asking a leaderboard's Space for an evaluation, through its API and in the name of this user."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from truegap.errors import UserError, first_line
from truegap.hub.refusals import hub_errors
from truegap.hub.snapshots import is_repository, without_secrets
from truegap.results.show import plain

_OF_SPACES = ".hf.space"
_HERE = ("127.0.0.1", "::1", "localhost")
_CREATED, _ELSEWHERE = 201, range(300, 400)
_SECONDS = 120.0
"""For an answer: a submission is looked at while one waits, and a Space that slept begins to work."""
_MOST = 1_000_000
_REMEDIES = {
    404: "it has no API of a leaderboard at this address, or is private",
    429: "it is asked too much from your address; try again in a minute",
    502: "it does not run now; open it in a browser, and try again when it does",
    503: "it does not run now; open it in a browser, and try again when it does",
}


def ask_space(space: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Puts a model into the queue of a leaderboard.

    This user's saved token says who asks. It goes to Spaces of the Hub alone, over HTTPS or wherever the Hub says that
    a Space is, and follows no redirect; a leaderboard on this machine gets none, and needs none.

    Args:
        space: `ORG/NAME`, the address of its page on the Hub, its own (`https://….hf.space`), or of a leaderboard on
            this machine (`http://127.0.0.1:7860`).
        asked: What is asked for, as the API takes it.

    Returns:
        The request as everybody sees it.

    Raises:
        UserError: It was refused or cannot be asked; one line with the remedy.
    """
    address, trusted = _address(space)
    body = json.dumps(asked).encode()
    return _post(space, f"{address}/api/requests", _token(space) if trusted else None, body)


def _address(space: str) -> tuple[str, bool]:
    """Where a Space is, and whether the user's token may be shown there."""
    from huggingface_hub import HfApi, constants

    name = space.rstrip("/").removeprefix(f"{constants.ENDPOINT}/spaces/")
    if is_repository(name):
        with hub_errors(f"space {name}"):
            host = HfApi().space_info(name).host
        if not host:
            raise UserError(f"space {name}: the Hub does not say where it runs; give its address, https://….hf.space")
        return host.rstrip("/"), True
    try:
        parts = urlsplit(space)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        parts, port = urlsplit(""), ""
    host = parts.hostname or ""
    if parts.scheme == "https" and host.endswith(_OF_SPACES) and not port:
        return f"https://{host}", True
    if parts.scheme in ("http", "https") and host in _HERE:
        return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}", False
    raise UserError(
        f"--space {without_secrets(plain(space))}: give ORG/NAME, or https://….hf.space; your token goes nowhere else"
    )


def _token(space: str) -> str:
    from huggingface_hub import constants, get_token

    if constants.HF_HUB_OFFLINE:
        raise UserError(f"space {plain(space)}: HF_HUB_OFFLINE keeps the Hub away; unset it to submit")
    token = get_token()
    if token is None:
        raise UserError("you are not logged in: `hf auth login`")
    if not (token.isascii() and token.isprintable()):
        raise UserError("your saved token has characters that no token has: `hf auth login` with another")
    return token


def _post(space: str, address: str, token: str | None, asked: bytes) -> dict[str, Any]:
    import httpx2

    headers = {"accept-encoding": "identity", "content-type": "application/json"}
    headers |= {"authorization": f"Bearer {token}"} if token else {}
    # A proxy leads away from this machine.
    client = httpx2.Client(timeout=_SECONDS, follow_redirects=False, trust_env=token is not None)
    try:
        with client, client.stream("POST", address, headers=headers, content=asked) as response:
            body = bytearray()
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > _MOST:
                    raise UserError(f"space {plain(space)}: its answer is too long for one of a leaderboard")
            status = response.status_code
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        # Neither here nor in a chained traceback may a token be seen.
        raise UserError(f"space {plain(space)}: no answer ({without_secrets(first_line(error))})") from None
    try:
        told = json.loads(bytes(body))
    except (ValueError, RecursionError):
        told = None
    if status == _CREATED and isinstance(told, dict) and isinstance(told.get("key"), str):
        return told
    said = told.get("error") if isinstance(told, dict) else None
    if isinstance(said, str) and said:
        raise UserError(f"space {plain(space)}: {without_secrets(plain(said, 500))}")
    raise UserError(f"space {plain(space)}: {_remedy(status)}")


def _remedy(status: int) -> str:
    if status in _ELSEWHERE:
        return "it leads to another address, where your token does not go; give the address of the Space itself"
    return _REMEDIES.get(status, f"its answer is not one of a leaderboard (HTTP {status})")

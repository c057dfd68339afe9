"""What the Hub refuses to whoever writes to it, on one line and without a token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from truegap.errors import UserError, first_line
from truegap.hub.snapshots import without_secrets

_BY_STATUS = {
    401: "the Hub does not accept your token; `hf auth login` with another",
    402: "the Hub asks its owner for a payment first; see the owner's billing page",
    403: "your token may not write there; make one with the role write, or ask the organization's owners",
    409: "somebody else changed it meanwhile; run the same command again",
    412: "somebody else changed it meanwhile; run the same command again",
    429: "the Hub asks for patience; run the same command again in some minutes, it goes on where it was",
}


@contextmanager
def hub_errors(what: str) -> Iterator[None]:
    """Makes one line of whatever the Hub refuses; no token is in it, nor in a chained traceback.

    Args:
        what: The repository, for the message.

    Raises:
        UserError: In place of the library's error.
    """
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    try:
        yield
    except (httpx2.HTTPError, OfflineModeIsEnabled, HfHubHTTPError) as error:
        raise UserError(f"{what}: {_reason(error)}") from None
    except (RuntimeError, ValueError) as error:
        # An upload that fails comes wrapped, with what happened as its cause.
        raise UserError(f"{what}: {_reason(error.__cause__ or error)}") from None
    except OSError as error:
        if error.errno is not None and error.filename is not None:
            # Of this disk, not of the Hub.
            raise
        raise UserError(f"{what}: {_reason(error)}") from None


def _reason(error: BaseException) -> str:
    """What went wrong and what to do."""
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled, RepositoryNotFoundError

    said = without_secrets(first_line(error))
    if isinstance(error, RepositoryNotFoundError):
        return "no such repository on the Hub, or it is private and your token may not see it"
    if isinstance(error, OfflineModeIsEnabled):
        return "HF_HUB_OFFLINE keeps the Hub away; unset it to publish"
    if isinstance(error, HfHubHTTPError):
        return _BY_STATUS.get(error.response.status_code, said)
    if isinstance(error, ValueError | RuntimeError):
        return said
    return f"the Hub cannot be reached ({said}); run the same command again, it goes on where it was"

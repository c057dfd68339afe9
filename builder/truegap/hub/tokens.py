"""Whose a token is that somebody else has shown: asked of the Hub, used for that one call and kept nowhere."""

from __future__ import annotations

import re
from dataclasses import dataclass

from truegap.errors import UserError

_TOKEN = re.compile(r"[\x21-\x7e]{8,4096}")
_UNKNOWN = (401, 403)


@dataclass(frozen=True, slots=True)
class Owner:
    """A user of the Hub.

    Attributes:
        name: Of the user.
        organizations: Those that the user belongs to.
    """

    name: str
    organizations: tuple[str, ...] = ()


def owner_of(token: str) -> Owner | None:
    """The user whom a token belongs to; None where the Hub knows no such token, or it is not a user's.

    Raises:
        UserError: The Hub cannot be asked; nothing of the token is in the message, nor in a chained error.
    """
    import httpx2
    from huggingface_hub import HfApi, errors

    if not _TOKEN.fullmatch(token):
        return None
    try:
        told = HfApi(token=False).whoami(token)
    except errors.HfHubHTTPError as error:
        if error.response.status_code in _UNKNOWN:
            return None
        raise UserError("the Hub does not say whose the token is: try again in a minute") from None
    except (httpx2.HTTPError, OSError, ValueError):
        raise UserError("the Hub cannot be asked whose the token is: try again in a minute") from None
    if told.get("type") != "user":
        return None
    organizations = [each.get("name") for each in told.get("orgs") or ()]
    return Owner(str(told.get("name") or ""), tuple(str(each) for each in organizations if each))

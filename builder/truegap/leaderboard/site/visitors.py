"""Where a request comes from, as far as that can be believed: whatever a client can write itself, it may have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from truegap.leaderboard.site.asgi import Message

_HERE = ("127.0.0.1", "::1", "localhost")
_PORT = re.compile(r"\[(?P<six>[^\]]+)\](:\d+)?|(?P<four>[\d.]+):\d+")


def address_of(scope: Message, *, behind_proxy: bool) -> str | None:
    """The address of who asks, for counting; of IPv6 the /64, all of which one household has.

    Args:
        scope: Of the ASGI request.
        behind_proxy: Whether one proxy that belongs to the house stands before this server, as in a Space. It appends
            to `X-Forwarded-For` whom it speaks to: the last entry is its own, all before it the client's.

    Returns:
        The address; None where none is known that belongs to one visitor.
    """
    if not behind_proxy:
        client = scope.get("client")
        address = _address(client[0]) if client else None
    else:
        address = _address(",".join(headers(scope, b"x-forwarded-for")).rpartition(",")[2].strip())
        # A machine of the proxy's house stands for all of its visitors.
        address = address if address and address.is_global else None
    if isinstance(address, IPv6Address):
        return str(ip_network((int(address) >> 64 << 64, 64)))
    return str(address) if address else None


def is_here(scope: Message) -> bool:
    """Whether a visitor sits at this machine and asked for it by a name that is its own.

    The name matters: a page of any site can have its own name lead to this machine, and is then taken for its page.
    """
    return sits_here(scope) and urlsplit(_valid(f"//{next(headers(scope, b'host'), '')}")).hostname in _HERE


def sits_here(scope: Message) -> bool:
    """Whether the connection is from this machine itself, which is its user's, or a proxy's."""
    client = scope.get("client")
    return client is not None and client[0] in _HERE


def is_foreign(scope: Message, own: tuple[str, ...] = ()) -> bool:
    """Whether a page of another site made the browser send this; a program that is no browser does not say.

    Args:
        scope: Of the ASGI request.
        own: Names of this server beside the one that it was asked by.
    """
    names = {each.lower() for each in (*headers(scope, b"host"), *own) if each}
    return any(urlsplit(_valid(origin)).netloc.lower() not in names for origin in headers(scope, b"origin"))


def headers(scope: Message, name: bytes) -> Iterator[str]:
    """The values of a header, in their order."""
    return (value.decode("latin-1") for each, value in scope.get("headers", ()) if each.lower() == name)


def _valid(address: str) -> str:
    """An address that can be taken apart, else nothing."""
    try:
        urlsplit(address)
    except ValueError:
        return ""
    return address


def _address(text: str) -> IPv4Address | IPv6Address | None:
    if parts := _PORT.fullmatch(text):
        text = parts["six"] or parts["four"]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address

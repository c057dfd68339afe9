"""Foreign text inside Markdown: shown as it is, never read as markup."""

from __future__ import annotations

import re

from truegap.results.show import plain

_LONGEST = 2000
_MARKUP = re.compile(r"([\\`*_{}<>|#~&!])")
_LINK = re.compile(r"\](?=[(\[:])")
_ADDRESS = re.compile(r"(?i)(://|\bwww\.|\bmailto:|@(?=[\w-]+\.))")


class Ours(str):
    """Text of our own that may hold markup."""

    __slots__ = ()


def escape(value: object) -> str:
    """What a template writes: text of our own as it is, everything else on one line without meaning to Markdown.

    Pipes, angle brackets, backticks and all emphasis are escaped; links, images and bare addresses come apart.
    """
    if isinstance(value, Ours):
        return value
    text = _MARKUP.sub(r"\\\1", plain(value, _LONGEST))
    text = _LINK.sub(r"\\]", text)
    return _ADDRESS.sub(lambda found: _apart(found[1]), text)


def code(value: object) -> Ours:
    """Foreign text as inline code, also inside a table: backticks become apostrophes, pipes are escaped."""
    text = plain(value, _LONGEST).replace("`", "'").replace("|", "\\|")
    return Ours(f"`{text}`" if text else "(empty)")


def _apart(address: str) -> str:
    return {"://": ":\\//", "@": "\\@"}.get(address, f"{address[:-1]}\\{address[-1]}")

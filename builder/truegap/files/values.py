"""Single values of an archive, checked: ids, file names, addresses, numbers, genders."""

from __future__ import annotations

import re
from typing import Any

from truegap.schema import MAX_PIXELS, Gender, Size

_FAR = 1e9
"""No coordinate is as large as this."""

_GENDERS: dict[str, Gender] = {
    "woman": "woman",
    "female": "woman",
    "feminine": "woman",
    "predominantly feminine": "woman",
    "man": "man",
    "male": "man",
    "masculine": "man",
    "predominantly masculine": "man",
}

_CREATIVE_COMMONS = re.compile(r"creativecommons\.org/licenses/(by(?:-nc|-nd|-sa)*)/(\d\.\d)")
_OTHER_LICENSES = {
    "creativecommons.org/publicdomain/zero/1.0": "CC0 1.0",
    "flickr.com/commons/usage": "No known copyright restrictions",
    "usa.gov/copyright": "United States Government Work",
}

NOT_PLAIN = "file name is not that of a file in the folder of images"


def whole(value: Any) -> int | None:
    """An id as a 64-bit integer: written as a number, as `9.001e11`, or as a string of digits; else None."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:  # noqa: PLR2004
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63 else None


def is_plain(name: Any) -> bool:
    """Whether a file name leads nowhere but into its folder."""
    return (
        isinstance(name, str)
        and 0 < len(name) <= 255  # noqa: PLR2004
        and name.isprintable()
        and not set(name) & set("/\\:")
        and name.strip(". ") != ""
    )


def is_plain_path(path: Any) -> bool:
    """Whether a relative path, such as `a/b.jpg`, leads nowhere but into its folder."""
    return isinstance(path, str) and len(path) <= 1000 and all(map(is_plain, path.split("/")))  # noqa: PLR2004


def address(url: Any) -> str:
    r"""A web address as it may be shown (`/` may be written `\/`); empty if it is none."""
    text = url.replace("\\", "") if isinstance(url, str) else ""
    return text if text.isprintable() and re.fullmatch(r"https?://[^\s<>\"'`]{1,2000}", text) else ""


def number(value: Any) -> float | None:
    """A finite number of believable size, written as a number or as text; else None."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    return float(value) if type(value) in {int, float} and abs(value) < _FAR else None  # false for nan


def flag(cell: str) -> bool:
    """Whether a cell of 0 and 1 is set; other programs write `1.0` or `True`."""
    return cell.strip().lower() in {"1", "1.0", "true"}


def gender(word: Any) -> Gender | None:
    """The label that a source's word stands for, such as `Predominantly Feminine`; None for every other word."""
    return _GENDERS.get(word.strip().lower()) if isinstance(word, str) else None


def shown(word: Any) -> str:
    """A word of the archive as it may stand in a reason: short, printable, `empty` if there is nothing."""
    text = "".join(c for c in str(word).strip() if c.isprintable())[:40] if word is not None else ""
    return text or "empty"


def storable(text: str) -> str:
    r"""Text as files can hold it: JSON may write half of a character (`"\ud83d"`), which becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def photo_size(height: Any, width: Any) -> Size | None:
    """`(height, width)` if they are those of a photograph."""
    rows, columns = whole(height), whole(width)
    return (rows, columns) if rows and columns and rows * columns <= MAX_PIXELS else None


def license_name(url: Any, name: Any) -> str:
    r"""Short name of a licence, from the address in COCO's table (where `/` may be written `\/`) or else its name."""
    link = url.replace("\\", "") if isinstance(url, str) else ""
    if match := _CREATIVE_COMMONS.search(link):
        return f"CC {match[1].upper()} {match[2]}"
    for part, short in _OTHER_LICENSES.items():
        if part in link:
            return short
    return name if isinstance(name, str) and 0 < len(name) <= 80 and name.isprintable() else "unknown"  # noqa: PLR2004

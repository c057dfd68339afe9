"""What a visitor looks at, as the query of an address: every view can be linked to."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from truegap.results.show import plain
from truegap.schema import Feature

PAGES = ("table", "plane", "model", "compare", "submit", "queue", "about")
KINDS = ("verified", "community", "local", "published")
TYPES = ("dual-encoder", "generative", "captioner", "endpoint", "baseline")
SIZES = {
    "under 100M": (0.0, 1e8),
    "100M to 1B": (1e8, 1e9),
    "1B to 10B": (1e9, 1e10),
    "above 10B": (1e10, float("inf")),
    "unknown": (0.0, 0.0),
}
"""Buckets of the number of parameters, from and below."""
FEATURES = tuple(f"delta_{feature}" for feature in Feature)
SHOWN = ("bias", "null", "mean_delta", *FEATURES, "floor", "floor_hsv", "size", "type", "kind")
COLUMNS = (*SHOWN, "submitted", "source")
"""Which a visitor may choose; rank and model are always there."""
SORTS = ("bias", "mean_delta", *FEATURES, "floor", "floor_hsv", "size", "model", "submitted")

_SEVERAL = {"kind": KINDS, "type": TYPES, "size": tuple(SIZES), "show": COLUMNS}
_LONGEST = 200
_LONGEST_QUERY = 8000
_LAST = 1_000_000


@dataclass(frozen=True, slots=True)
class View:
    """One view; empty means all.

    Attributes:
        tab: One of `PAGES`.
        q: Words that the model's name holds.
        board: Name of a board.
        benchmark: Name of a benchmark.
        protocol: Name of a protocol.
        kind: Some of `KINDS`.
        type: Some of `TYPES`.
        size: Some of `SIZES`.
        show: Some of `COLUMNS`.
        sort: One of `SORTS`.
        desc: `1` for the largest first.
        start: How many rows lie before the first that is shown.
        model: Key of a row, or how it begins.
        a: Key of one row to compare.
        b: Key of the other.
        log: Key of the request whose log is shown.
        csv: Which table of the page to give as CSV.
    """

    tab: str = "table"
    q: str = ""
    board: str = ""
    benchmark: str = ""
    protocol: str = ""
    kind: tuple[str, ...] = ()
    type: tuple[str, ...] = ()
    size: tuple[str, ...] = ()
    show: tuple[str, ...] = field(default=SHOWN)
    sort: str = "bias"
    desc: str = ""
    start: int = 0
    model: str = ""
    a: str = ""
    b: str = ""
    log: str = ""
    csv: str = ""

    def query(self, **changes: Any) -> str:
        """The query that leads here, or to this view with some changes; what is at its default is left out.

        >>> View(q="clip", kind=("local",)).query(sort="size")
        '?q=clip&kind=local&sort=size'
        """
        view = replace(self, **changes)
        pairs: list[tuple[str, Any]] = []
        for each in fields(View):
            value = getattr(view, each.name)
            if value != getattr(_DEFAULT, each.name):
                pairs += [(each.name, one) for one in value] if isinstance(value, tuple) else [(each.name, value)]
        return "?" + urlencode(pairs)


_DEFAULT = View()


def parse(query: str) -> View:
    """The view of a query; whatever is unknown, too long or out of range is as if it were not there.

    >>> parse("?kind=local&kind=evil&start=-3&sort=size").query()
    '?kind=local&sort=size'
    """
    found: dict[str, Any] = {}
    names = {each.name for each in fields(View)}
    for name, raw in parse_qsl(query.removeprefix("?")[:_LONGEST_QUERY], max_num_fields=None):
        value = plain(raw, _LONGEST)
        if name in _SEVERAL:
            if value in _SEVERAL[name] and value not in found.get(name, ()):
                found[name] = (*found.get(name, ()), value)
        elif name == "start":
            found[name] = min(int(value), _LAST) if value.isascii() and value.isdigit() else 0
        elif name in names:
            found[name] = value
    if found.get("tab") not in PAGES:
        found.pop("tab", None)
    if found.get("sort") not in SORTS:
        found.pop("sort", None)
    return View(**found)

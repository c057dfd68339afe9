"""From a view to its page, CSV, BibTeX or picture."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from truegap.errors import UserError
from truegap.leaderboard.site.cite import bibtex, own_entry
from truegap.leaderboard.site.compare_page import ComparePage, sheet_of, tested
from truegap.leaderboard.site.listing import LABELS, PART, chosen, listing, ordered
from truegap.leaderboard.site.model_page import ModelPage, model_page
from truegap.leaderboard.site.plane import drawable, plane
from truegap.leaderboard.site.queue_page import queue_sheet, states
from truegap.leaderboard.site.sheet import Sheet, to_csv
from truegap.leaderboard.site.shelf import Row, Rows, Shelf, short
from truegap.leaderboard.site.view import COLUMNS, KINDS, SIZES, TYPES, View
from truegap.leaderboard.store import Store
from truegap.results.show import interval, number, percent
from truegap.results.show import short as rounded
from truegap.schema import Feature

TITLES = {
    "table": "Table",
    "plane": "Bias and sensitivity",
    "compare": "Compare",
    "submit": "Submit",
    "queue": "Queue",
    "about": "About",
}
"""The pages that the header leads to."""
_KEPT = ("table", "plane", "about")
"""Pages that follow from the rows alone."""
_JPEG = b"\xff\xd8\xff"


class Pages:
    """The pages of one store."""

    def __init__(self, store: Store) -> None:
        """Reads nothing yet."""
        self.store = store
        self.shelf = Shelf(store)

    def document(self, view: View) -> str:
        """A whole page."""
        return _templates().get_template("document.html.j2").render(title=_title(view), fragment=self.fragment(view))

    def fragment(self, view: View) -> Markup:
        """Header and content of a page, to be put into one that is open."""
        if view.tab in _KEPT:
            return self.shelf.kept(("fragment", view.query()), lambda: self._fragment(view)) or Markup()
        return self._fragment(view)

    def _fragment(self, view: View) -> Markup:
        rows = self.shelf.rows()
        view, special = self._special(view, rows)
        template = _templates().get_template("fragment.html.j2")
        # The template escapes all that it is given.
        return Markup(template.render(**_common(view, rows), **special))  # noqa: S704

    def header(self, view: View) -> Markup:
        """The header alone, for the page that is not made here."""
        # The template escapes all that it is given.
        return Markup(_templates().get_template("header.html.j2").render(**_links(view)))  # noqa: S704

    def csv(self, view: View) -> tuple[str, str]:
        """A table of a page: its name, and the CSV with all its rows.

        Raises:
            UserError: The page has no such table.
        """
        rows = self.shelf.rows()
        sheet: Sheet | None = None
        if view.csv == "rows":
            sheet = listing(rows, view, whole=True).sheet
        elif view.csv == "queue":
            sheet = queue_sheet(self.shelf.requests(), view, whole=True)
        elif view.csv == "compared":
            sheet = self._compare(view, rows).sheet
        elif (row := rows.find(view.model)) and view.csv in ("configs", "questions"):
            sheet = getattr(self._model(row, rows), view.csv)
        if sheet is None:
            raise UserError("there is no such table")
        return f"truegap-{sheet.name}.csv", to_csv(sheet)

    def bibtex(self, view: View) -> str:
        """The entries of a page's rows."""
        rows = self.shelf.rows()
        row = rows.find(view.model)
        return bibtex([row] if row else chosen(rows.every, view))

    def picture(self, key: str, name: str) -> bytes | None:
        """A retrieved image, by the row's key and its name; None where there is none that may be shown."""
        row = self.shelf.rows().find(key)
        details = self.shelf.details(row["key"]) if row else None
        try:
            data = base64.b64decode(details.pictures[name] if details else "", validate=True)
        except (KeyError, ValueError):
            return None
        return data if data.startswith(_JPEG) else None

    def _special(self, view: View, rows: Rows) -> tuple[View, dict[str, Any]]:
        """What the template of a page needs beyond what all need; and the view, with what it left open chosen."""
        if view.tab == "table":
            return view, {
                "listing": listing(rows, view),
                "part": PART,
                "columns": [(name, LABELS[name][0]) for name in COLUMNS],
            }
        if view.tab == "plane":
            view = view if view.board in rows.boards else replace(view, board=_first(rows, drawable))
            found = chosen(rows.every, view)
            drawn = drawable(found)
            chart = plane(drawn, f"Bias against sensitivity of {len(drawn)} models")
            return view, {"drawn": drawn, "without": len(found) - len(drawn), "chart": chart}
        if view.tab == "model":
            row = rows.find(view.model)
            return view, {"page": self._model(row, rows) if row else None}
        if view.tab == "compare":
            return self._comparing(view, rows)
        if view.tab == "queue":
            requests = self.shelf.requests()
            known = any(each.key == view.log for each in requests)
            log = self.shelf.log(view.log) if known else None
            return view, {"states": states(requests), "sheet": queue_sheet(requests, view), "log": log}
        return view, {"own_entry": own_entry()}

    def _model(self, row: Row, rows: Rows) -> ModelPage:
        scores = self.shelf.scores(row["key"])
        offer = self.shelf.offer(scores.run_id) if scores and row["kind"] == "verified" else ""
        return model_page(row, rows, scores, self.shelf.details(row["key"]), offer)

    def _comparing(self, view: View, rows: Rows) -> tuple[View, dict[str, Any]]:
        page = self._compare(view, rows)
        board = view.board if view.board in rows.boards else page.first["board"] if page.first else _first(rows)
        view = replace(view, board=board, a=short(view.a), b=short(view.b))
        rivals = ordered(chosen(rows.every, View(board=board)), View(sort="model"), rows.boards)
        return view, {"page": page, "rivals": [(short(each["key"]), each["model"]) for each in rivals]}

    def _compare(self, view: View, rows: Rows) -> ComparePage:
        first, second = rows.find(view.a), rows.find(view.b)
        if first is None or second is None:
            return ComparePage(first, second)
        details = (self.shelf.details(first["key"]), self.shelf.details(second["key"]))
        test, no_test = tested(first, second, details)
        return ComparePage(first, second, sheet_of(first, second, view), test, no_test)


def _first(rows: Rows, shown: Any = None) -> str:
    """The first board, of those that have something to show."""
    for board in rows.boards:
        if shown is None or shown([row for row in rows.every if row["board"] == board]):
            return board
    return next(iter(rows.boards), "")


def _title(view: View) -> str:
    return f"{TITLES.get(view.tab, 'Model')} · truegap leaderboard"


def _links(view: View) -> dict[str, Any]:
    def link(page: str) -> str:
        keeps = {"table", "plane"}
        kept = replace(view, start=0, log="", csv="") if {page, view.tab} <= keeps else View()
        return kept.query(tab=page)

    return {"view": view, "pages": list(TITLES.items()), "link": link}


def _common(view: View, rows: Rows) -> dict[str, Any]:
    """What every template may use."""
    return _links(view) | {
        "rows": rows,
        "title": _title(view),
        "options": {
            "boards": [(board, f"{board} ({n})") for board, n in rows.boards.items()],
            "benchmarks": _same(rows.benchmarks),
            "protocols": _same(rows.protocols),
            "kinds": _same(KINDS),
            "types": _same(TYPES),
            "sizes": _same(SIZES),
        },
        "features": [feature.value for feature in Feature],
        "board_link": lambda board: View(board=board).query(),
        "model_link": lambda row: View(tab="model", model=short(row["key"])).query(),
        "key": lambda row: short(row["key"]),
        "size": lambda parameters: rounded(parameters) if parameters else "unknown",
        "number": number,
        "percent": percent,
        "interval": interval,
    }


def _same(values: Iterable[str]) -> list[tuple[str, str]]:
    return [(value, value) for value in values]


@cache
def _templates() -> Environment:
    loader = PackageLoader("truegap.leaderboard.site")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)

"""A check of the instrument as a page: what must come out, what comes out, and what perturbations do not remove."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from truegap import __version__
from truegap.errors import UserError
from truegap.files.atomic import write_bytes
from truegap.instrument.records import Check, Line, Row, number
from truegap.report.instrument_charts import Cell, Step, growth, heat

HTML = "index.html"


def write_instrument_report(check: Check, out: Path) -> Path:
    """Writes the page.

    Args:
        check: What was found.
        out: A folder, made where it is absent; an earlier page in it is replaced.

    Returns:
        The page.

    Raises:
        UserError: `out` cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_bytes(out / HTML, instrument_page(check).encode())
    except OSError as error:
        raise UserError(f"{out} cannot be written: {error.strerror}; choose another --out") from None
    return out / HTML


def instrument_page(check: Check) -> str:
    """The page as HTML."""
    made = Environment(
        loader=PackageLoader("truegap.report"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
    )
    assert made.loader is not None
    style = made.loader.get_source(made, "report.css")[0]
    lines = {line.key: line for line in check.lines}
    return made.get_template("instrument.html.j2").render(
        check=check,
        style=Markup(style),  # noqa: S704  our own file
        version=__version__,
        left=left_chart(lines["left"]),
        matrix=matrix_chart(lines["prediction"]),
        growth=growth_chart(lines["bias"], lines["change"]),
        shown=shown,
        heading=lambda name: name.replace("_", " "),
    )


def left_chart(line: Line) -> Markup:
    """What each perturbation leaves of the gap of each reader: where it works and where it does not, in one figure."""
    readers, configs = _names(line.rows, "reader"), _names(line.rows, "config")
    cells = {
        (row["config"], row["reader"]): Cell(
            100 * number(row, "left"), 100 * number(row, "predicted"), row["own"] == "yes"
        )
        for row in line.rows
    }
    rows = [(config, [cells[config, reader] for reader in readers]) for config in configs]
    return heat(rows, [f"reads {reader}" for reader in readers], "Share of each reader's gap left by each perturbation")


def matrix_chart(line: Line) -> Markup:
    """Readers x perturbations of absolute change, in points of YGap."""
    readers, configs = _names(line.rows, "reader"), _names(line.rows, "config")
    cells = {
        (row["reader"], row["config"]): Cell(
            100 * number(row, "abs_change"),
            100 * abs(number(row, "predicted")),
            row["config"] == f"{row['reader']}-strong",
        )
        for row in line.rows
    }
    rows = [(f"reads {reader}", [cells[reader, config] for config in configs]) for reader in readers]
    return heat(
        rows, configs, "Absolute change of YGap of each reader under each strong perturbation", unit="", full=50
    )


def growth_chart(bias: Line, change: Line) -> Markup:
    """Bias and own change of each reader against the planted correlation."""
    moved = {(row["reader"], row["rho"]): row for row in change.rows}
    panels = []
    for reader in _names(bias.rows, "reader"):
        steps = []
        for row in bias.rows:
            if row["reader"] != reader:
                continue
            own = moved.get((row["reader"], row["rho"]))
            steps.append(
                Step(
                    rho=number(row, "rho"),
                    bias=number(row, "ygap"),
                    low=number(row, "low"),
                    high=number(row, "high"),
                    planted=number(row, "planted"),
                    change=None if own is None else number(own, "abs_change"),
                    predicted=None if own is None else number(own, "predicted"),
                )
            )
        panels.append((f"reads {reader}", steps))
    return growth(panels, "YGap and its absolute change under the own perturbation, against the planted correlation")


def shown(value: str | float | None) -> str:
    """A cell of a table.

    >>> shown(0.12345), shown(1200.0), shown(None), shown("yes")
    ('0.123', '1,200', 'none', 'yes')
    """
    if value is None:
        return "none"
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if value == int(value) else f"{value:.3f}"


def _names(rows: Sequence[Row], column: str) -> list[str]:
    return list(dict.fromkeys(str(row[column]) for row in rows))

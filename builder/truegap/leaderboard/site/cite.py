"""BibTeX of what a table shows: truegap, the benchmarks, and the papers of published rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from truegap import __version__
from truegap.errors import UserError
from truegap.leaderboard.site.shelf import Row
from truegap.results.published import TABLES, Paper

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def own_entry() -> str:
    """The entry of this package."""
    return (
        "@software{truegap,\n"
        "  title = {truegap: gender-bias benchmarks with their sensitivity to spurious features},\n"
        "  author = {{The truegap authors}},\n"
        f"  version = {{{__version__}}}\n"
        "}\n"
    )


def bibtex(rows: Iterable[Row]) -> str:
    """Every entry that these rows need, each once.

    The entries are those of the house: of a row, only names that it knows are looked up.
    """
    benchmarks = {row["benchmark"] for row in rows}
    papers = {row["source"] for row in rows} - {""}
    entries = [own_entry(), *(_benchmark(name) for name in sorted(benchmarks))]
    entries += [_paper(each) for each in _papers().values() if each.key in papers]
    return "\n".join(dict.fromkeys(each.strip() + "\n" for each in entries if each))


@cache
def _benchmark(name: str) -> str:
    from truegap.sources.benchmark import load_benchmark

    if not _NAME.fullmatch(name):
        return ""
    try:
        return load_benchmark(name).citation or ""
    except UserError:
        return ""


def _papers() -> dict[str, Paper]:
    return {each.paper.key: each.paper for each in TABLES.values()}


def _paper(paper: Paper) -> str:
    name = re.sub(r"\W", "", paper.key.replace(" et al. ", "").lower())
    year = re.search(r"\d{4}", paper.key)
    lines = [f"  title = {{{paper.title}}}", f"  note = {{{paper.key}}}"]
    lines += [f"  year = {{{year[0]}}}"] if year else []
    lines += [f"  url = {{{paper.url}}}"] if paper.url else []
    return f"@misc{{{name},\n" + ",\n".join(lines) + "\n}\n"

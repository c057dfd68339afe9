"""One reader per archive that people download: `read("coco-gender", "/data/coco")` gives a `Selection` of examples.

A source is a module with a `SOURCE` and a line in the table below.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from truegap.errors import UserError
from truegap.schema import Selection
from truegap.sources._source import Options, Source
from truegap.sources.benchmark import BenchmarkSpec, load_benchmark, load_card

_HOME = {
    "coco-gender": "truegap.sources.coco_gender",
    "facet": "truegap.sources.facet",
    "miap": "truegap.sources.miap",
    "phase": "truegap.sources.phase",
    "visogender": "truegap.sources.visogender",
    "genderbias-vl": "truegap.sources.genderbias_vl",
    "celeba-dialog": "truegap.sources.celeba_dialog",
    "folder": "truegap.sources.folder",
}

NAMES = tuple(_HOME)
"""The sources that `read` knows."""

__all__ = ["NAMES", "BenchmarkSpec", "Options", "Source", "load_benchmark", "load_card", "read", "source"]


def source(name: str) -> Source[Any]:
    """The source of this name: its options, its metadata, its reader.

    Raises:
        UserError: There is none.
    """
    if name not in _HOME:
        raise UserError(f"there is no source {name!r}; there are: {', '.join(NAMES)}")
    found: Source[Any] = importlib.import_module(_HOME[name]).SOURCE
    return found


def read(name: str, folder: str | Path, **options: Any) -> Selection:
    """Read an archive as it unpacks.

    Args:
        name: One of `NAMES`.
        folder: Where the archive is.
        **options: Those of the source; `source(name).options` describes them.

    Returns:
        The examples with the counts of every filter step and every dropped image with its reason.

    Raises:
        UserError: The name, an option or the archive cannot be used, or no image is left after the filters.
    """
    return source(name).read(Path(folder), **options)

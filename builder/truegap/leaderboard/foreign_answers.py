"""The table of answers that a confined evaluation wrote: what it would take in memory is known before it is read."""

from __future__ import annotations

from pathlib import Path

from truegap.errors import UserError
from truegap.files.parquet_pages import open_guarded, pages
from truegap.results.answers import COLUMNS, EXTRA, schema
from truegap.results.show import plain

ROWS_PER_IMAGE = 1000
"""Of one image in one config at most: 81 questions of three options are 243."""
_BYTES_PER_ROW = 128
_SPARE = 64 * 1024**2
_LARGEST_DICTIONARY = 4 * 1024**2
"""Arrow stops at 1 MiB, and writes what comes after it as it is."""
_MOST_PAGES = 200_000
"""75 million rows have about so many."""


def check_answers(path: Path, cells: int) -> None:
    """Whether a table is of the form that a run writes, and no larger than what was asked can make it.

    Only its footer and the headers of its pages are read.

    Args:
        path: `answers.parquet`, where nobody changes it.
        cells: How many images were asked about, counted once per config.

    Raises:
        UserError: It is not.
    """
    with open_guarded(path) as file:
        metadata = file.metadata
        names = file.schema_arrow.names
        expected = [*COLUMNS, *names[len(COLUMNS) :]]
        if names != expected or not set(names[len(COLUMNS) :]) <= set(EXTRA) or len(set(names)) < len(names):
            raise UserError(f"{path.name} has other columns than a table of answers: {plain(names, 200)}")
        if not file.schema_arrow.equals(schema(names[len(COLUMNS) :])):
            raise UserError(f"{path.name} has columns of other types than a table of answers")
        if metadata.num_rows > cells * ROWS_PER_IMAGE:
            raise UserError(f"{path.name} has {metadata.num_rows:,} rows about {cells:,} images")
        groups = (metadata.row_group(number).num_rows for number in range(metadata.num_row_groups))
        if sum(groups) != metadata.num_rows:
            raise UserError(f"{path.name} has other numbers of rows in its parts than in all")
        left = _SPARE + _BYTES_PER_ROW * metadata.num_rows
        for count, page in enumerate(pages(path, metadata)):
            left -= page.unpacked
            if left < 0 or count >= _MOST_PAGES or (page.is_dictionary and page.unpacked > _LARGEST_DICTIONARY):
                raise UserError(f"{path.name} would take too much memory")

"""VisoGender: 690 photographs of people at work, by address; an occupation with an object or a second person.

The folder holds the authors' tables (`OO_Visogender_*.tsv`, `OP_Visogender_*.tsv`) and `images/`, which `fetch` fills:
only addresses are published. A photograph that could not be had is left out with the downloader's reason. The
photographs have no boxes, so persons and objects are to be detected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator

from truegap.errors import UserError
from truegap.files.atomic import write_bytes
from truegap.files.tables import Row, maybe_file, rows
from truegap.files.values import address, gender, is_plain, shown
from truegap.schema import Dropped, Example, Gender, ImageFile, Selection
from truegap.sources._funnel import Funnel
from truegap.sources._photos import by_stem, files
from truegap.sources._source import Options, Source, listed
from truegap.sources.download import Report, download
from truegap.sources.download_options import DownloadOptions
from truegap.sources.download_record import refused, verified

Kind = Literal["OO", "OP"]

IMAGES = "images"
"""The folder that the downloader fills."""

_URL = "URL type"
"""How the column of addresses begins; its name goes on and has changed before."""
_SHARED = ("IDX", "Sector", "Specialisation", "Occupation", "Occupation_perceived_gender")
_OTHER = {"OO": ("Object",), "OP": ("Participant", "Participant_perceived_gender")}


class VisoGenderOptions(Options):
    """How VisoGender becomes a benchmark."""

    kinds: Annotated[tuple[Kind, ...], BeforeValidator(listed)] = ("OO", "OP")
    """`OO`: an occupation and an object, one person. `OP`: an occupation and a participant, two persons."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of a table."""

    gender: Gender | None
    reason: str
    url: str
    columns: dict[str, Any]


def read(folder: Path, options: VisoGenderOptions) -> Selection:
    """The selection; `Source.read` checks options and folder first."""
    entries, apart = read_tables(folder, options.kinds)
    photos = by_stem(files([folder / IMAGES]))
    altered = verified(folder / IMAGES)
    unfetched = refused(folder / IMAGES)
    funnel = Funnel({image: entry.gender for image, entry in entries.items()}, apart)
    funnel.keep("label", lambda image: entries[image].reason)
    funnel.keep("download", lambda image: None if image in photos else _why(unfetched.get(image)))
    sizes = funnel.keep_photos(photos)
    funnel.keep("checksum", altered.get)

    def example(image: str, label: Gender) -> Example:
        return Example(
            image_id=image,
            gender=label,
            image=ImageFile(photos[image]),
            size=sizes[image],
            persons=(),
            source=photos[image].relative_to(folder).as_posix(),
            attribution=entries[image].url,
            extra=entries[image].columns,
        )

    return funnel.selection("visogender", folder, example, options.model_dump(mode="json"), Counter())


SOURCE = Source("visogender", VisoGenderOptions, read)


def addresses(folder: Path) -> dict[str, str]:
    """The address of every photograph of the tables in `folder`, by its id.

    Raises:
        UserError: The folder holds no tables.
    """
    entries, _ = read_tables(folder)
    return {image: entry.url for image, entry in entries.items()}


def fetch(
    folder: Path,
    options: DownloadOptions | None = None,
    advance: Callable[[int], None] = lambda _: None,
    *,
    out: Path | None = None,
) -> Report:
    """Download the photographs of the tables in `folder`, as far as they are not there.

    Args:
        folder: Holds the authors' tables.
        options: Of the downloader.
        advance: Called with the number of addresses that are done.
        out: Gets the photographs, in `images/`, and a copy of the tables; None for `folder` itself.

    Raises:
        UserError: The folder holds no tables, or `out` other ones of the same name.
    """
    urls = addresses(folder)
    target = folder if out is None else out
    for table in _tables(folder, get_args(Kind)).values():
        if table is not None:
            _copy(table, target / table.name)
    return download(urls, target / IMAGES, options, advance)


def read_tables(folder: Path, kinds: tuple[str, ...] = get_args(Kind)) -> tuple[dict[str, Entry], list[Dropped]]:
    """The rows of the authors' tables by IDX, and the rows that cannot be used at all.

    Raises:
        UserError: There is no table of any of these kinds, or one that is none of VisoGender's.
    """
    entries: dict[str, Entry] = {}
    apart: list[Dropped] = []
    tables = _tables(folder, kinds)
    if not any(tables.values()):
        raise UserError(f"visogender: {folder} holds no table; expected {' or '.join(kinds)}_Visogender_<date>.tsv")
    for kind, table in tables.items():
        if table is None:
            continue
        for row in rows(table, [*_SHARED, *_OTHER[kind]], delimiter="\t"):
            image = row["IDX"]
            if not is_plain(image):
                apart.append(Dropped(row.where, "IDX cannot be the name of a file"))
            elif image in entries:
                apart.append(Dropped(image, f"IDX stands twice: {row.where} left out"))
            else:
                entries[image] = _entry(row, kind)
    return entries, apart


def _tables(folder: Path, kinds: tuple[str, ...]) -> dict[str, Path | None]:
    return {kind: maybe_file("visogender", folder, [f"{kind}_Visogender*.tsv"], f"kind {kind}") for kind in kinds}


def _copy(table: Path, target: Path) -> None:
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(target, table.read_bytes())
    elif target.read_bytes() != table.read_bytes():
        raise UserError(f"visogender: {target} is there already and differs from {table}: choose another folder")


def _why(reason: str | None) -> str | None:
    return None if reason is None else f"not downloaded, {reason}"


def _entry(row: Row, kind: str) -> Entry:
    label = gender(row["Occupation_perceived_gender"])
    participant = gender(row["Participant_perceived_gender"]) if kind == "OP" else None
    url = address(next((row[column] for column in row if column.startswith(_URL)), ""))
    reason = ""
    if label is None:
        reason = f"gender of the occupation: {shown(row['Occupation_perceived_gender'])}"
    elif kind == "OP" and participant is None:
        reason = f"gender of the participant: {shown(row['Participant_perceived_gender'])}"
    elif row.get("Error codes"):
        reason = f"error code of the annotators: {shown(row['Error codes'])}"
    columns = {
        "kind": kind,
        "sector": row["Sector"],
        "specialisation": row["Specialisation"],
        "occupation": row["Occupation"],
        "occupation_gender": label,
        "object": row.get("Object") or None,
        "participant": row.get("Participant") or None,
        "participant_gender": participant,
    }
    return Entry(None if reason else label, reason, url, columns)

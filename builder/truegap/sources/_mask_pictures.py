"""Masks that an archive holds as pictures, in a folder or in zip files, read with suspicion."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from truegap.errors import UserError
from truegap.regions.masks import MaskError, encode
from truegap.schema import MAX_PIXELS, Size

_MAX_BYTES = 32_000_000
"""No mask of a photograph takes as much as a PNG."""


@dataclass(frozen=True, slots=True)
class MaskPictures:
    """PNG files by name. Members of a zip are read in place: nothing is unpacked, so no path in it can lead anywhere.

    Attributes:
        places: The folder of the file, or the zip and the name in it.
    """

    places: dict[str, tuple[Path, str | None]]

    def __contains__(self, name: object) -> bool:
        return name in self.places

    def read(self, name: str, size: Size) -> str:
        """The mask of everything that is not 0, as counts for an image of this size.

        Args:
            name: The file's name, without folders.
            size: `(height, width)` of the image; a mask of another size is brought to it by nearest neighbours.

        Raises:
            MaskError: There is none, or it is no picture of believable size, or empty.
        """
        if name not in self.places:
            raise MaskError("mask picture is absent")
        inside = _decode(_bytes(*self.places[name]), size)
        if not inside.any():
            raise MaskError("mask is empty")
        return encode(inside)


def mask_pictures(folders: Iterable[Path], zips: Iterable[Path]) -> MaskPictures:
    """The PNG files in these folders and zip files; of two with one name, the earlier.

    Raises:
        UserError: A zip file cannot be read.
    """
    places: dict[str, tuple[Path, str | None]] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.png")):
            places.setdefault(path.name, (path, None))
    for archive in zips:
        try:
            with ZipFile(archive) as file:
                for member in file.namelist():
                    if member.endswith(".png"):
                        places.setdefault(member.rpartition("/")[2], (archive, member))
        except (BadZipFile, OSError) as error:
            raise UserError(f"{archive}: not a zip file of masks: {error}; fetch it again") from None
    return MaskPictures(places)


def _bytes(path: Path, member: str | None) -> bytes:
    try:
        if member is None:
            with path.open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
        else:
            # What a member says of its size may be wrong: no more than the limit is unpacked.
            with ZipFile(path) as archive, archive.open(member) as file:
                data = file.read(_MAX_BYTES + 1)
    # zipfile raises each of these on damaged, encrypted or exotic members.
    except (OSError, BadZipFile, RuntimeError, NotImplementedError, EOFError, ValueError):
        raise MaskError("mask picture cannot be read") from None
    if len(data) > _MAX_BYTES:
        raise MaskError("mask picture is too large")
    return data


def _decode(data: bytes, size: Size) -> NDArray[np.bool_]:
    from PIL import Image

    try:
        with warnings.catch_warnings():
            # Pillow warns at its own limit; ours is checked before any pixel is decoded.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            return _inside(Image.open(BytesIO(data), formats=("PNG",)), size)
    except Image.DecompressionBombError:
        raise MaskError("mask picture is too large") from None
    except MaskError:
        raise
    except (OSError, ValueError, SyntaxError, EOFError):
        # Pillow's decoders raise all of these on damaged files.
        raise MaskError("mask picture cannot be read") from None


def _inside(picture: Any, size: Size) -> NDArray[np.bool_]:
    from PIL import Image

    if picture.width * picture.height > MAX_PIXELS:
        raise MaskError("mask picture is too large")
    if picture.mode not in {"1", "P", "L", "I", "I;16"}:
        raise MaskError("mask picture has colours instead of labels")
    if picture.size != (size[1], size[0]):
        picture = picture.resize((size[1], size[0]), Image.Resampling.NEAREST)
    return np.asarray(picture, dtype=np.int32).astype(np.bool_)

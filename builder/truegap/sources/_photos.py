"""Image files of an archive: where they are, and how large they are upright."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path

from truegap.regions.boxes import Unusable
from truegap.schema import MAX_PIXELS, Size

_FORMATS = ("JPEG", "PNG", "WEBP")
_ORIENTATION = 0x0112
_SIDEWAYS = 5
"""EXIF orientations from here on swap width and height."""


def files(folders: Iterable[Path]) -> dict[str, Path]:
    """Every file in these folders by name; of two with one name, the one of the earlier folder."""
    found: dict[str, Path] = {}
    for folder in folders:
        if folder.is_dir():
            # One listing instead of a look-up per photograph: archives have hundreds of thousands of them.
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name not in found and entry.is_file():
                        found[entry.name] = folder / entry.name
    return found


def by_stem(paths: dict[str, Path]) -> dict[str, Path]:
    """The same by name without extension."""
    return {name.rpartition(".")[0] or name: path for name, path in sorted(paths.items(), reverse=True)}


def upright_size(path: Path, *, exif: bool = True) -> Size:
    """`(height, width)` of a photograph as it is shown, from its header alone.

    Args:
        path: A JPEG, PNG or WebP file.
        exif: Whether the photograph may say that it is to be turned. Boxes in shares of the image do not know whether
            they were drawn before or after.

    Raises:
        Unusable: It is no image of these kinds, or too large, or says that it is to be turned and may not.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            # Pillow warns at its own limit; ours is checked below, before any pixel is decoded.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(path, formats=_FORMATS) as image:
                width, height = image.size
                orientation = image.getexif().get(_ORIENTATION, 1)
    except UnidentifiedImageError:
        raise Unusable("not a JPEG, PNG or WebP image") from None
    except Image.DecompressionBombError:
        raise Unusable("image is too large") from None
    except (OSError, ValueError, SyntaxError, EOFError):
        # Pillow's readers raise all of these on damaged headers.
        raise Unusable("image file is damaged") from None
    if width * height > MAX_PIXELS:
        raise Unusable("image is too large")
    if not exif and orientation not in (0, 1):
        raise Unusable("image is to be turned (EXIF), and its boxes do not say whether they know")
    return (width, height) if orientation >= _SIDEWAYS else (height, width)

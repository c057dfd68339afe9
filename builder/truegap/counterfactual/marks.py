"""What an image says about its own making, in a text chunk of its PNG file: so that work is not done twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image, PngImagePlugin

from truegap.counterfactual.files import write_bytes

_CHUNK = "truegap"


def sha256(path: Path) -> str:
    """Of a file's bytes.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_image(path: Path, image: Image.Image, mark: Mapping[str, Any]) -> None:
    """Writes a PNG aside, then renames it.

    Args:
        path: Where.
        image: RGB.
        mark: What it was made from; JSON.

    Raises:
        UserError: It cannot be written.
    """
    chunk = PngImagePlugin.PngInfo()
    chunk.add_text(_CHUNK, json.dumps(mark, sort_keys=True))
    stream = BytesIO()
    image.save(stream, "PNG", pnginfo=chunk)
    write_bytes(path, stream.getvalue())


def read_mark(path: Path) -> dict[str, Any]:
    """What `write_image` was told; empty where the file is absent or does not say."""
    try:
        with Image.open(path, formats=["PNG"]) as image:
            mark = json.loads(image.info.get(_CHUNK, "{}"))
    except (OSError, ValueError, SyntaxError, TypeError, RecursionError, Image.DecompressionBombError):
        return {}
    return mark if isinstance(mark, dict) else {}

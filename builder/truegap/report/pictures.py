"""The example image of a run: original beside perturbed."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from truegap.schema import Feature

SHOWN = {
    "original": "original",
    **{f"{feature}-strong": f"{feature}, strong" for feature in Feature},
}
"""Which configs are shown, in this order, and the caption of each."""

_LARGEST = 4 * 1024 * 1024
_MOST_PIXELS = 4_000_000


@dataclass(frozen=True, slots=True)
class Picture:
    """A small JPEG."""

    config: str
    caption: str
    data: bytes
    width: int
    height: int

    @property
    def uri(self) -> str:
        """The picture inside a page."""
        return f"data:image/jpeg;base64,{base64.b64encode(self.data).decode('ascii')}"


def read_pictures(folder: Path) -> list[Picture]:
    """The pictures of a run, fewer or none where files are absent or not small JPEGs."""
    pictures = (_read(folder / f"{config}.jpg", config, caption) for config, caption in SHOWN.items())
    return [picture for picture in pictures if picture]


def _read(path: Path, config: str, caption: str) -> Picture | None:
    from PIL import Image

    if not path.is_file() or path.stat().st_size > _LARGEST:
        return None
    data = path.read_bytes()
    try:
        with Image.open(BytesIO(data), formats=["JPEG"]) as image:
            width, height = image.size
            if width * height > _MOST_PIXELS:
                return None
            image.load()
    except (OSError, Image.DecompressionBombError):
        return None
    return Picture(config, caption, data, width, height)

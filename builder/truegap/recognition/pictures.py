"""The pictures of a study by item, as bytes that the manifest vouches for."""

from __future__ import annotations

import base64
import hashlib

from truegap.errors import UserError
from truegap.hub.benchmark import Benchmark
from truegap.recognition.records import Study
from truegap.recognition.study import Item

_TYPES = ((b"\xff\xd8\xff", "image/jpeg"), (b"\x89PNG\r\n\x1a\n", "image/png"), (b"RIFF", "image/webp"))


class Pictures:
    """The encoded images of a study's configs; safe in threads."""

    def __init__(self, benchmark: Benchmark, study: Study) -> None:
        """Looks at every picture of the study once, so that nobody finds a damaged one half way.

        Raises:
            UserError: The benchmark lacks files, or a picture is not what the manifest says, or no JPEG, PNG or WebP.
        """
        ids = benchmark.image_ids()
        self._places = {image_id: place for place, image_id in enumerate(ids)}
        self._images = {config: benchmark.images(config) for config in study.configs}
        for config in study.configs:
            for image_id in filter(study.images.__contains__, ids):
                self._read(Item(config, image_id))

    def address(self, item: Item) -> str:
        """A picture as a `data:` address: no file's name and no id, which may name the label, gets to the page.

        Raises:
            UserError: The picture was changed since.
        """
        kind, data = self._read(item)
        return f"data:{kind};base64,{base64.b64encode(data).decode()}"

    def _read(self, item: Item) -> tuple[str, bytes]:
        images, place = self._images[item.config], self._places[item.image_id]
        data = images[place]
        kind = next((kind for start, kind in _TYPES if data.startswith(start)), None)
        if kind is None or hashlib.sha256(data).hexdigest() != images.sha256[place]:
            raise UserError(f"image {item.image_id} of {item.config} is damaged: copy or build the benchmark again")
        return kind, data

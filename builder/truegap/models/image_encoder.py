"""What the cache of embeddings asks of a model: less than a dual encoder, so that a backbone will do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from PIL import Image

from truegap.models.base import FloatArray


class ImageEncoder(Protocol):
    """A model that maps images to vectors."""

    @property
    def cache_key(self) -> str:
        """Features made under the same key may stand for each other."""

    def preprocess(self, image: Image.Image) -> Any:
        """Turn one upright RGB image into what `encode_preprocessed` takes a sequence of; must be safe in threads."""

    def encode_preprocessed(self, inputs: Sequence[Any]) -> FloatArray:
        """Features of one batch of preprocessed images, float32 `(n, d)`.

        Raises:
            UserError: A feature is NaN or infinite, or one image alone does not fit into memory.
        """

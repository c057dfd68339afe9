"""What a model must offer, and the part that is the same for all of them: batches, normalisation, memory, checks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from truegap.errors import UserError
from truegap.models._images import ImageLike, as_image
from truegap.models._memory import in_halves
from truegap.results.records import Compute, ModelRecord

FloatArray = npt.NDArray[np.float32]

BATCH_TOLERANCE = 1e-5
"""Largest absolute difference of a float32 feature (of unit length) between two batch sizes.

Matrix products add in another order for another batch shape, so bits differ, features do not. In bfloat16 and float16,
whose steps are 2^-8 and 2^-11, expect up to 2e-2 and 2e-3.
"""


class DualEncoder(ABC):
    """A model that maps images and texts to vectors of one space, in which the cosine says how well they fit.

    A subclass gives `record`, `preprocess`, `image_features` and `text_features`; the rest follows. `preprocess` (one
    image, on the CPU, from several threads at once) and `image_features` (one batch, from one thread) are apart so that
    decoding, preprocessing and forward passes, of texts too, can overlap. Features do not depend on the batch beyond
    `BATCH_TOLERANCE`.
    """

    compute: Compute | None = None
    """Where it runs and in which numbers, for the run's record; None for what does not run here."""

    _image_limit: int | None = None  # largest batch that fitted into memory, once one did not

    @abstractmethod
    def record(self) -> ModelRecord:
        """Which model this is, exactly; cheap, since error messages use it too."""

    @abstractmethod
    def preprocess(self, image: Image.Image) -> Any:
        """Turn one upright RGB image into whatever `image_features` takes a sequence of; must be safe in threads."""

    @abstractmethod
    def image_features(self, inputs: Sequence[Any]) -> FloatArray:
        """Raw features of preprocessed images, float32 `(n, d)`, of any length."""

    @abstractmethod
    def text_features(self, texts: Sequence[str]) -> FloatArray:
        """Raw features of texts, float32 `(n, d)`, of any length."""

    @property
    def cache_key(self) -> str:
        """Features made under the same key may stand for each other; by default the record's content hash."""
        return self.record().content

    def release_memory(self) -> None:  # noqa: B027 (a hook that most plug-ins do not need)
        """Give back what the device still holds after a batch that did not fit; nothing by default."""

    def encode_images(self, images: Sequence[ImageLike], batch_size: int = 32) -> FloatArray:
        """Features of images.

        Args:
            images: PIL images, or uint8 arrays `(height, width, 3)` in RGB; at least one.
            batch_size: Images per forward pass, halved by itself where the memory does not suffice.

        Returns:
            float32 `(n, d)`, rows of unit length.

        Raises:
            UserError: A feature is NaN, infinite or all zero, or one image alone does not fit into memory.
            ValueError: `images` is empty, or one is neither a PIL image nor such an array.
        """
        batches = (images[start : start + batch_size] for start in _starts(len(images), batch_size))
        return np.concatenate(
            [self.encode_preprocessed([self.preprocess(as_image(i)) for i in batch]) for batch in batches]
        )

    def encode_preprocessed(self, inputs: Sequence[Any]) -> FloatArray:
        """Features of one batch of preprocessed images; same result and errors as `encode_images`."""
        raw, self._image_limit = self._in_halves(self.image_features, inputs, self._image_limit)
        return self._unit(raw, "images")

    def encode_texts(self, texts: Sequence[str], batch_size: int = 256) -> FloatArray:
        """Features of texts.

        Args:
            texts: At least one; what is longer than the model's context is cut off, as the model's authors do.
            batch_size: Texts per forward pass, halved by itself where the memory does not suffice.

        Returns:
            float32 `(n, d)`, rows of unit length.

        Raises:
            UserError: A feature is NaN, infinite or all zero, or one text alone does not fit into memory.
            ValueError: `texts` is empty.
        """
        limit: int | None = None
        parts = []
        for start in _starts(len(texts), batch_size):
            raw, limit = self._in_halves(self.text_features, texts[start : start + batch_size], limit)
            parts.append(self._unit(raw, "texts"))
        return np.concatenate(parts)

    def _in_halves(
        self, forward: Callable[[Sequence[Any]], FloatArray], batch: Sequence[Any], limit: int | None
    ) -> tuple[FloatArray, int | None]:
        """The batch's features, in smaller pieces where the memory asks for it, and the size that fitted."""
        parts, limit = in_halves(forward, batch, limit, model=self.record().name, release=self.release_memory)
        return np.concatenate(parts), limit

    def _unit(self, raw: FloatArray, what: str) -> FloatArray:
        """The rows scaled to unit length, after a check that they have one."""
        with np.errstate(over="ignore", invalid="ignore"):
            length = np.linalg.norm(raw, axis=1, keepdims=True)
        if not np.isfinite(length).all():
            raise UserError(
                f"model {self.record().name}: features of {what} are NaN or infinite; "
                "the weights are damaged, or the dtype is too small (use float32)"
            )
        if not length.all():
            raise UserError(f"model {self.record().name}: features of {what} are all zero; the weights are damaged")
        return np.asarray(raw / length, dtype=np.float32)


def _starts(length: int, batch_size: int) -> range:
    if not length:
        raise ValueError("nothing to encode")
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}: it must be at least 1")
    return range(0, length, batch_size)

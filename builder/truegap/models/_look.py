"""One image and the texts that go with it, as a processor prepares them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from PIL import Image

from truegap.errors import UserError, first_line
from truegap.models._rows import Ids

Tensors = Mapping[str, torch.Tensor]


class Look:
    """The processor, bound to an image, which is prepared once however many texts go with it."""

    def __init__(self, name: str, processor: Any, image: Image.Image) -> None:
        """Take the model's name, its processor and an image."""
        self._name = name
        self._image = image
        self._processor = copy.copy(processor)
        self._processor.image_processor = _Once(processor.image_processor)
        self._made: dict[str, Tensors] = {}
        self.heads: dict[Ids, Ids] = {}
        """The tokens before the image, and those with it, of the texts that were read so far."""

    def __call__(self, text: str, **options: Any) -> Tensors:
        """The model's inputs, a batch of 1, for a text and options of the processor that depend on it alone.

        Raises:
            UserError: The processor refuses the image or the text.
        """
        if text not in self._made:
            try:
                inputs = self._processor(images=[self._image], text=[text], return_tensors="pt", **options)
            except (ValueError, TypeError, IndexError) as error:
                raise UserError(
                    f"model {self._name}: its processor refuses an image of {self._image.width} x {self._image.height} "
                    f"pixels with the text {text!r}: {first_line(error)}"
                ) from error
            self._made[text] = dict(inputs)
        return self._made[text]


class _Once:
    """An image processor that remembers what it made: for the texts that go with one image."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._made: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __call__(self, images: Any, **options: Any) -> Any:
        key = repr(sorted(options.items()))
        if key not in self._made:
            self._made[key] = self._inner(images, **options)
        return copy.copy(self._made[key])  # processors take entries out

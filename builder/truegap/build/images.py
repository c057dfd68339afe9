"""Encoded bytes to pixels and back: guarded on the way in, recorded on the way out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError, features

from truegap.perturbations.pictures import picture_of
from truegap.schema import MAX_PIXELS

FORMATS = ("JPEG", "PNG", "WEBP")

Encoding = Literal["jpeg", "png", "webp"]


class UnusableImageError(Exception):
    """An image that cannot be in a benchmark; the message is the reason that is counted."""


def decode(data: bytes) -> NDArray[np.uint8]:
    """Pixels of an encoded image: RGB (H, W, 3), upright; arguments and errors as of `opened`."""
    return np.asarray(opened(data))


def opened(data: bytes) -> Image.Image:
    """The pixels of an encoded image: RGB, upright.

    The EXIF rotation is applied, as `datasets` applies it when it decodes.

    Raises:
        UnusableImageError: Not a JPEG, PNG or WebP image, truncated, or too large.
    """
    try:
        with warnings.catch_warnings():
            # Pillow warns at its own limit; ours is checked below, before any pixel is decoded.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image = Image.open(BytesIO(data), formats=FORMATS)
        width, height = image.size
        if width * height > MAX_PIXELS:
            raise UnusableImageError(f"too large: more than {MAX_PIXELS // 1_000_000} million pixels")
        ImageOps.exif_transpose(image, in_place=True)
        image.load()
        upright = image if image.mode == "RGB" else image.convert("RGB")
    except Image.DecompressionBombError:
        raise UnusableImageError(f"too large: more than {MAX_PIXELS // 1_000_000} million pixels") from None
    except UnidentifiedImageError:
        raise UnusableImageError("not a JPEG, PNG or WebP image") from None
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        # Pillow's decoders raise all of these on damaged files.
        reason = "truncated" if "truncated" in str(error).lower() else "damaged"
        raise UnusableImageError(f"image file is {reason}") from error
    upright.info = {}  # pixels alone: nothing of the file is written into another
    return upright


@dataclass(frozen=True, slots=True)
class Encoder:
    """How perturbed images are stored; re-encoding is itself a perturbation, so it is recorded.

    Attributes:
        encoding: `jpeg` (quality 95, no chroma subsampling), or lossless `png` or `webp`.
    """

    encoding: Encoding = "jpeg"

    def __post_init__(self) -> None:
        if self.encoding not in get_args(Encoding):
            raise ValueError(f"unknown encoding {self.encoding!r}: use one of {', '.join(get_args(Encoding))}")

    def encode(self, image: NDArray[np.uint8]) -> bytes:
        """RGB (H, W, 3), or RGBX (H, W, 4), to bytes; both to the same."""
        stream = BytesIO()
        if image.shape[2] > 3 and self.encoding == "jpeg":  # noqa: PLR2004
            # Pillow's JPEG encoder passes over the fourth channel itself: nothing is copied.
            size = (image.shape[1], image.shape[0])
            picture = Image.frombuffer("RGBX", size, np.ascontiguousarray(image), "raw", "RGBX", 0, 1)
        else:
            picture = picture_of(image)
        picture.save(stream, self.encoding.upper(), **_PARAMETERS[self.encoding])
        return stream.getvalue()

    def record(self) -> dict[str, Any]:
        """What a manifest keeps: parameters and library versions, on which the bytes depend."""
        codec = {"jpeg": "jpg", "png": "zlib", "webp": "webp"}[self.encoding]
        return {
            "encoding": self.encoding,
            **_PARAMETERS[self.encoding],
            "codec": f"{codec} {features.version(codec)}",
        }


_PARAMETERS: dict[Encoding, dict[str, Any]] = {
    # subsampling 0 is 4:4:4
    "jpeg": {"quality": 95, "subsampling": 0},
    "png": {"compress_level": 1},
    # the fastest lossless setting: 6 % larger, 18 times faster than the default
    "webp": {"lossless": True, "method": 0, "quality": 0},
}

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from examples import encoded
from truegap.build.images import Encoder, UnusableImageError, decode


def _png_header(width: int, height: int) -> bytes:
    """A PNG that claims a size and holds no pixels: what a decompression bomb looks like from outside."""
    import struct
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a JPEG, PNG or WebP image"),
        (b"<svg onload=alert(1)>", "not a JPEG, PNG or WebP image"),
        (encoded(fmt="GIF"), "not a JPEG, PNG or WebP image"),
        (encoded()[:-300], "truncated"),
        (encoded(fmt="PNG")[:-40], "truncated|damaged"),
        (_png_header(9000, 9000), "too large: more than 64 million pixels"),
        (_png_header(60000, 60000), "too large: more than 64 million pixels"),
        (_png_header(10, 10), "truncated|damaged"),
    ],
)
def test_unusable_images_have_a_reason(data, reason):
    with pytest.raises(UnusableImageError, match=reason):
        decode(data)


@pytest.mark.parametrize("mode", ["RGB", "L", "P", "CMYK"])
def test_modes_become_rgb(mode):
    stream = BytesIO()
    Image.new(mode, (4, 3)).save(stream, "JPEG" if mode == "CMYK" else "PNG")
    assert decode(stream.getvalue()).shape == (3, 4, 3)


def test_exif_rotation_is_applied():
    # given a picture stored on its side, white on top once upright
    picture = Image.fromarray(np.repeat(np.uint8([[[255, 255, 255]] * 8 + [[0, 0, 0]] * 8]), 6, axis=0))
    exif = Image.Exif()
    exif[274] = 6
    stream = BytesIO()
    picture.save(stream, "PNG", exif=exif)
    upright = decode(stream.getvalue())
    assert upright.shape == (16, 6, 3)
    assert upright[:8].min() == 255
    assert upright[8:].max() == 0


@pytest.mark.parametrize("encoding", ["png", "webp"])
def test_lossless_encodings_are_lossless(encoding):
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    np.testing.assert_array_equal(decode(Encoder(encoding).encode(pixels)), pixels)


def test_jpeg_has_quality_95_and_no_chroma_subsampling():
    pixels = decode(encoded())
    image = Image.open(BytesIO(Encoder().encode(pixels)))
    assert [component[1:3] for component in image.layer] == [(1, 1)] * 3
    reference = BytesIO()
    Image.fromarray(pixels).save(reference, "JPEG", quality=95, subsampling="4:4:4")
    assert Image.open(reference).quantization == image.quantization


def test_unknown_encoding_is_refused():
    with pytest.raises(ValueError, match="unknown encoding 'gif': use one of jpeg, png, webp"):
        Encoder("gif")


@pytest.mark.parametrize("encoding", ["jpeg", "png", "webp"])
def test_a_fourth_channel_changes_no_byte(encoding):
    encoder, pixels = Encoder(encoding), decode(encoded())
    noise = np.random.default_rng(0).integers(0, 256, (*pixels.shape[:2], 1), np.uint8)
    plain = encoder.encode(pixels)
    assert encoder.encode(np.concatenate([pixels, noise], axis=2)) == plain

"""Hue and value of 8-bit pixels, shifted on the 0-255 scale of Pillow's `HSV` mode.

Both ways give what Pillow gives, level by level, for each of the 16.7 million colors (the tests go through them all),
ten times faster. A process's first pictures are left to Pillow itself.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from truegap.perturbations.compiled import compiled, pays_by_now
from truegap.perturbations.pictures import Pixels, picture_of, pixels_of

Planes = NDArray[np.uint8]
"""Hue, saturation and value, (3, H, W)."""

_Plane = NDArray[np.uint8]
_Packed = NDArray[np.uint32]  # RGBX, the red in the lowest byte

_RGBX = 4

_f, _d, _level = np.float32, np.float64, np.uint8  # numba takes these for casts
_int, _word = np.int32, np.uint32


def to_hsv(image: Pixels) -> Planes:
    """Hue, saturation and value.

    Args:
        image: RGB or RGBX, (H, W, 3 or 4), contiguous.
    """
    if not pays_by_now(image[..., 0].size):
        return np.stack([np.asarray(band) for band in picture_of(image).convert("HSV").split()])
    rgbx = image if image.shape[2] == _RGBX else cv2.cvtColor(image, cv2.COLOR_RGB2RGBA)
    planes = np.empty((3, *image.shape[:2]), np.uint8)
    hues, saturations, values = planes.reshape(3, -1)
    _to_hsv(_packed(rgbx), hues, saturations, values)
    return planes


def from_hsv(planes: Planes, *, hue: int = 0, value: int = 0, channels: int = 3) -> Pixels:
    """The pixels of hue, saturation and value, of which two are shifted (Hirota et al. 2025, section 3).

    Without a shift it is the way back of the 8-bit round trip, whose mean error is about half a level.

    Args:
        planes: From `to_hsv`.
        hue: What is added to the hue, which wraps round; saturation and value are kept.
        value: What is added to the value, which is clipped; hue and saturation are kept.
        channels: 3 for RGB, 4 for RGBX.

    Returns:
        A new array (H, W, channels).
    """
    if not pays_by_now(planes[0].size):
        brightened = np.clip(planes[2].astype(np.int16) + value, 0, 255).astype(np.uint8)
        bands = planes[0] + np.uint8(hue % 256), planes[1], brightened
        picture = Image.merge("HSV", [Image.fromarray(band) for band in bands]).convert("RGB")
        return pixels_of(picture)[..., :channels].copy()
    rgbx: Pixels = np.empty((*planes.shape[1:], _RGBX), np.uint8)
    hues, saturations, values = planes.reshape(3, -1)
    _from_hsv(hues, saturations, values, _packed(rgbx), hue % 256, value)
    return rgbx if channels == _RGBX else cv2.cvtColor(rgbx, cv2.COLOR_RGBA2RGB)


def _packed(rgbx: Pixels) -> _Packed:
    return rgbx.reshape(-1).view("<u4")


@compiled
def _to_hsv(pixels: _Packed, hues: _Plane, saturations: _Plane, values: _Plane) -> None:
    sixth = _d(1 / 6)
    for x in range(pixels.size):
        pixel = pixels[x]
        red = _f(_int(pixel & _word(255)))
        green = _f(_int((pixel >> _word(8)) & _word(255)))
        blue = _f(_int((pixel >> _word(16)) & _word(255)))
        highest = max(red, green, blue)
        chroma = highest - min(red, green, blue)
        # One branch for all pixels, so that many are done at a time: grey ones divide by one, and get 0.
        divisor = max(chroma, _f(1))
        is_red, is_green = red == highest, green == highest
        added = highest - (blue if is_red else (red if is_green else green))
        taken = highest - (green if is_red else (blue if is_green else red))
        corner = _f(0) if is_red else (_f(2) if is_green else _f(4))
        # Pillow rounds to single precision here and there, and then cuts: nothing may be shortened.
        turn = _d(_f((_d(corner) + _d(added / divisor)) - _d(taken / divisor))) * sixth
        turn = _d(_f(turn if turn >= _d(0) else turn + _d(1)))
        hues[x] = _level(_int(turn * _d(255)))
        saturations[x] = _level(_int(chroma * _f(255) / max(highest, _f(1))))
        values[x] = _level(_int(highest))


@compiled
def _from_hsv(hues: _Plane, saturations: _Plane, values: _Plane, pixels: _Packed, hue: int, value: int) -> None:
    turned, brightened = _level(hue), _f(value)
    unit = _f(1 / (85 * 255))
    for x in range(pixels.size):
        # 510 steps round the circle, 85 from one corner of the hexagon to the next.
        step = _f(_level(hues[x] + turned)) * _f(2)
        highest = min(max(_f(values[x]) + brightened, _f(0)), _f(255))
        chroma = _f(saturations[x]) * highest * unit
        red, green, blue = step + _f(425), step + _f(255), step + _f(85)
        red = red - _f(510) if red >= _f(510) else red
        green = green - _f(510) if green >= _f(510) else green
        blue = blue - _f(510) if blue >= _f(510) else blue
        # What each channel lacks of the value: nothing on its own third of the circle, all of the chroma opposite.
        red = highest - chroma * min(max(min(red, _f(340) - red), _f(0)), _f(85))
        green = highest - chroma * min(max(min(green, _f(340) - green), _f(0)), _f(85))
        blue = highest - chroma * min(max(min(blue, _f(340) - blue), _f(0)), _f(85))
        pixels[x] = (
            _word(_int(red + _f(0.5)))
            | (_word(_int(green + _f(0.5))) << _word(8))
            | (_word(_int(blue + _f(0.5))) << _word(16))
        )

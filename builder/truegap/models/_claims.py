"""What a model's files claim, held against what they are: a configuration can ask for more than any machine has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from truegap.errors import UserError

MOST_LAYERS = 1000
"""Several times as many as any model has."""
LARGEST_SIDE = 8192
"""Pixels; several times as many as any model reads."""
MOST_PER_BYTE = 8
"""Numbers that a byte of weights may stand for: quantised ones take half a byte, and some are stored once for two."""

_DEPTH = re.compile(r"(.*_)?(layers?|depths?|repeats?)")
_SIDES = ("image_size", "size", "crop_size", "max_image_size", "image_grid_pinpoints")


def check_depth(spec: str, config: Mapping[str, Any]) -> None:
    """Refuses a configuration of more layers than can be made.

    Raises:
        UserError: It asks for such.
    """
    for name, value in _entries(config):
        if _DEPTH.fullmatch(name) and (most := max(_numbers(value), default=0)) > MOST_LAYERS:
            raise UserError(f"model {spec}: its configuration asks for {most:.4g} layers ({name}), which no model has")


def check_sides(spec: str, settings: Mapping[str, Any], *, edges: bool = True) -> None:
    """Refuses preparation that makes images of more pixels than can be held.

    Args:
        spec: What the user typed, for the message.
        settings: Of the image processor, or of a vision tower.
        edges: Whether the shortest and longest edge are lengths; some families keep areas under that name.

    Raises:
        UserError: It makes such.
    """
    for name, value in _entries(settings):
        if name not in _SIDES:
            continue
        parts = value if isinstance(value, Mapping) else {name: value}
        sides = [own for key, own in parts.items() if edges or not key.endswith("_edge")]
        if (most := max(_numbers(sides), default=0)) > LARGEST_SIDE:
            raise UserError(f"model {spec}: its files ask for images of {most:.4g} pixels a side ({name}), as no model")


def check_amount(spec: str, model: Any, weights: Iterable[Path]) -> None:
    """Refuses a model that has far more numbers than its files could hold.

    Args:
        spec: What the user typed, for the message.
        model: Made on the meta device, where nothing takes memory.
        weights: Its files; where there are none, nothing is said.

    Raises:
        UserError: It has.
    """
    claimed = sum(tensor.numel() for tensor in (*model.parameters(), *model.buffers()))
    size = sum(path.stat().st_size for path in weights)
    if size and claimed > MOST_PER_BYTE * size:
        raise UserError(
            f"model {spec}: its configuration asks for {claimed:.4g} numbers, and its weights are {size:.4g} bytes; "
            "they do not belong together, or a file is cut off"
        )


def _entries(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every name with its value, those of parts too."""
    for name, value in settings.items():
        yield str(name), value
        if isinstance(value, Mapping):
            yield from _entries(value)


def _numbers(value: Any) -> list[float]:
    if isinstance(value, (list, tuple)):
        return [number for each in value for number in _numbers(each)]
    return [value] if isinstance(value, (int, float)) else []

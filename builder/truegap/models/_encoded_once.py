"""Image encoders that run once per image, where a model reads every question with the image of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch

PARTS = ("vision_tower", "vision_model", "visual", "image_encoder", "qformer", "image_to_text_projection")
"""What transformers' classes call the parts that make of an image what their language model reads."""
IN_ONE_ROW = "image_sizes"
"""A part that is told the size of every image, as Pixtral's, lays all of them out in one row."""
_COMPARABLE = (bool, int, float, str, type(None))


@dataclass(slots=True)
class Reused:
    """How many rows were spared."""

    rows: int = 0


@contextmanager
def encoded_once(model: Any) -> Iterator[Reused]:
    """Within it, every part that encodes images runs once for as long as it gets the same.

    A batch whose rows are all alike, as those of questions about one image are, goes through as one row. Nothing is
    assumed: inputs are compared, and what differs, such as the question that a Q-Former reads, is computed.
    """
    reused = Reused()
    with ExitStack() as stack:
        for part in _parts(model):
            stack.enter_context(_replaced(part, _Once(part.forward, reused)))
        yield reused


def _parts(model: Any) -> list[Any]:
    owners = (model, model.base_model, getattr(model, "model", None))
    found = (getattr(owner, name, None) for name in PARTS for owner in owners)
    return list({id(part): part for part in found if isinstance(part, torch.nn.Module)}.values())


@contextmanager
def _replaced(part: Any, forward: Callable[..., Any]) -> Iterator[None]:
    own = part.__dict__.get("forward")  # accelerate puts one there
    part.forward = forward
    try:
        yield
    finally:
        del part.forward
        if own is not None:
            part.forward = own


class _Once:
    """A forward pass that remembers the last row that it got, and what it made of it."""

    def __init__(self, forward: Callable[..., Any], reused: Reused) -> None:
        self._forward = forward
        self._reused = reused
        self._last: tuple[dict[Any, Any], Any] | None = None

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        given: dict[Any, Any] = {**dict(enumerate(arguments)), **options}
        tensors = [value for value in given.values() if isinstance(value, torch.Tensor)]
        rows = {len(tensor) if tensor.ndim else 0 for tensor in tensors}
        alike = len(rows) == 1 and 0 not in rows and all(torch.equal(t, t[:1].expand_as(t)) for t in tensors)
        if rows != {1} and IN_ONE_ROW in given:
            return self._forward(*arguments, **options)
        if not alike or not all(isinstance(value, (torch.Tensor, *_COMPARABLE)) for value in given.values()):
            return self._forward(*arguments, **options)
        one = {name: value[:1] if isinstance(value, torch.Tensor) else value for name, value in given.items()}
        number = rows.pop()
        if self._last is None or not _same(self._last[0], one):
            output = self._forward(*(one[n] for n in range(len(arguments))), **{name: one[name] for name in options})
            self._last = one, output
            self._reused.rows -= 1
        self._reused.rows += number
        return _repeated(self._last[1], number)


def _same(one: dict[Any, Any], other: dict[Any, Any]) -> bool:
    return one.keys() == other.keys() and all(_equal(value, other[name]) for name, value in one.items())


def _equal(value: Any, other: Any) -> bool:
    if type(value) is not type(other):
        return False
    if isinstance(value, torch.Tensor):
        return value.dtype == other.dtype and torch.equal(value, other)
    return bool(value == other)


def _repeated(output: Any, times: int) -> Any:
    """What a part gives for so many equal rows, from what it gives for one."""
    if isinstance(output, torch.Tensor):
        return output.repeat(times, *[1] * (output.ndim - 1))
    if isinstance(output, dict):  # transformers' outputs are
        return type(output)(**{name: _repeated(value, times) for name, value in output.items()})
    if isinstance(output, (tuple, list)):
        return type(output)(_repeated(value, times) for value in output)
    return output

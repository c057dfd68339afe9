"""Batches that shrink until they fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from truegap.errors import UserError

_SIGNS = ("out of memory", "can't allocate memory", "not enough memory", "status_alloc_failed")
"""CUDA and MPS, Linux, Windows, CUDA's libraries."""

T = TypeVar("T")
R = TypeVar("R")


def in_halves(
    forward: Callable[[Sequence[T]], R],
    batch: Sequence[T],
    limit: int | None,
    *,
    model: str,
    release: Callable[[], None],
) -> tuple[list[R], int | None]:
    """A batch's results, in smaller pieces where the memory asks for it, and the size that fitted.

    Args:
        forward: What is done with a piece.
        batch: The inputs.
        limit: The largest piece that is tried; None for the whole batch.
        model: Its name, for the message.
        release: Gives back what the device still holds after a piece that did not fit.

    Raises:
        UserError: A single input does not fit.
    """
    parts: list[R] = []
    done = 0
    while done < len(batch):
        piece = batch[done : done + (limit or len(batch))]
        try:
            parts.append(forward(piece))
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            if len(piece) == 1:
                raise UserError(
                    f"model {model}: a single input does not fit into memory; "
                    "use a smaller model or dtype, or another device"
                ) from error
            limit = len(piece) // 2
        else:
            done += len(piece)
            continue
        release()  # only here: the exception, gone by now, kept the batch alive
    return parts, limit


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on any device (torch's own class is not imported for this)."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    message = str(error).lower()
    return any(sign in message for sign in _SIGNS)

"""Questions read whole, image and all: for models in which nothing can be shared, and to check those where it can."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from truegap.models._rows import Ids, Row

ELSEWHERE = "qformer_"
"""What these are called goes along with tokens that another part of the model reads."""


class Sheet(NamedTuple):
    """A row with all that the model gets for it, a batch of 1."""

    row: Row
    inputs: Mapping[str, torch.Tensor]


def batches(sheets: Sequence[Sheet], size: int) -> Iterator[list[int]]:
    """Which sheets go through the model together, by place: those of one shape, so that nothing is padded."""
    alike: dict[tuple[Any, ...], list[int]] = {}
    for place, sheet in enumerate(sheets):
        shapes = tuple(sorted((name, tuple(tensor.shape)) for name, tensor in sheet.inputs.items()))
        alike.setdefault((len(sheet.row.ids), shapes), []).append(place)
    for places in alike.values():
        for start in range(0, len(places), size):
            yield places[start : start + size]


def read(model: Any, batch: Sequence[Sheet], dtype: torch.dtype) -> list[list[float]]:
    """Log-probabilities of every read of sheets of one shape: one pass."""
    inputs = {
        name: torch.cat([sheet.inputs[name] for sheet in batch]).to(
            model.device, dtype if tensor.is_floating_point() else None
        )
        for name, tensor in batch[0].inputs.items()
    }
    length = len(batch[0].row.ids)
    # Counted from the end, since some models put the image before the first token.
    kept = sorted({read.position - length for sheet in batch for read in sheet.row.reads})
    if takes_positions(model):
        logits = model(**inputs, logits_to_keep=torch.tensor(kept, device=model.device)).logits
    else:
        logits = model(**inputs).logits[:, kept]
    return [
        read_off(own, sheet.row, [kept.index(read.position - length) for read in sheet.row.reads])
        for own, sheet in zip(logits, batch, strict=True)
    ]


@contextmanager
def largest_logit(model: Any) -> Iterator[list[float]]:
    """Within it, the one entry of what is given is the largest absolute logit so far."""
    largest = [0.0]

    def look(_module: Any, _given: Any, logits: torch.Tensor) -> None:
        largest[0] = max(largest[0], float(logits.abs().max()))

    hook = model.get_output_embeddings().register_forward_hook(look)
    try:
        yield largest
    finally:
        hook.remove()


def takes_positions(model: Any) -> bool:
    """Whether a model spares the logits of positions that nobody reads."""
    return "logits_to_keep" in inspect.signature(model.forward).parameters


def read_off(logits: torch.Tensor, row: Row, places: Sequence[int]) -> list[float]:
    """Log-probabilities of a row's reads.

    Args:
        logits: `(positions, vocabulary)`.
        row: The row.
        places: Where in `logits` each read is.
    """
    log_probs = logits[list(places)].float().log_softmax(-1)
    return [float(own[list(read.tokens)].logsumexp(0)) for read, own in zip(row.reads, log_probs, strict=True)]


def per_token(name: str, tensor: torch.Tensor, ids: torch.Tensor) -> bool:
    """Whether an input goes along with each of the tokens."""
    return tensor.shape[:2] == ids.shape and not tensor.is_floating_point() and not name.startswith(ELSEWHERE)


def fitted(
    inputs: Mapping[str, torch.Tensor], ids: Ids, last: Mapping[str, int] | None = None
) -> dict[str, torch.Tensor]:
    """The inputs for these ids: what goes along with each token is cut to their length, or goes on as it ends.

    Args:
        inputs: The model's inputs, a batch of 1.
        ids: The tokens that it shall read instead.
        last: What goes along with tokens that are added, where that is not what goes along with the last one.
    """
    own = inputs["input_ids"]
    made: dict[str, torch.Tensor] = {}
    for name, tensor in inputs.items():
        if not per_token(name, tensor, own):
            made[name] = tensor
            continue
        more = tensor[:, -1:].repeat(1, max(0, len(ids) - own.shape[1]), *[1] * (tensor.ndim - 2))
        if last and name in last:
            more = torch.full_like(more, last[name])
        made[name] = torch.cat([tensor[:, : len(ids)], more], 1)
    return {**made, "input_ids": torch.tensor([ids], device=inputs["input_ids"].device)}

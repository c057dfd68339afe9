"""Many questions about one image for little more than the price of one: what they share is read once.

The image and everything else that the questions have in common is run first, and kept as the keys and values of every
layer. The rest of the questions then follows as one sequence in which a token sees the common part and its own
question alone: a mask does what a batch would do with a copy of the common part per question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

from truegap.models._rows import Row, shared
from truegap.models._whole import fitted, per_token, read_off

PACK = 512
"""Most tokens that follow the prefix in one pass: attention grows with the square, a pass should fill the machine."""


class NotShareableError(Exception):
    """Why these questions cannot share a prefix."""


class NeverShareableError(NotShareableError):
    """Why no questions can, in this model."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """What all rows begin with, read.

    Attributes:
        length: In tokens.
        states: Keys and values of every layer.
        lag: How far the position of a token lags behind its place, in models with positions in three dimensions.
    """

    length: int
    states: Sequence[tuple[torch.Tensor | None, torch.Tensor | None]]
    lag: torch.Tensor | None


def read_prefix(model: Any, inputs: Mapping[str, torch.Tensor], rows: Sequence[Row], image_end: int | None) -> Prefix:
    """Read what the rows have in common.

    Args:
        model: A decoder with a cache of keys and values.
        inputs: The inputs of any one row, on the model's device.
        rows: At least two.
        image_end: The place after the image's last token; None where that is not known.

    Raises:
        NotShareableError: The image is not in what they have in common, or a row is longer than a sliding window.
        NeverShareableError: The cache holds more than keys and values, or tokens are told apart by more than an id.
    """
    length = min(shared([row.ids for row in rows]), *(read.position for row in rows for read in row.reads))
    if image_end is None or length < image_end:
        raise NotShareableError("text that differs between questions stands before the image")
    for name, tensor in inputs.items():
        if name in {"input_ids", "attention_mask"} or not per_token(name, tensor, inputs["input_ids"]):
            continue
        if tensor[:, image_end:].any():  # 0 is what a model takes where it is told nothing
            raise NeverShareableError(f"{name} says more of the tokens after the image than that they are text")
    output = model(**fitted(inputs, rows[0].ids[:length]), use_cache=True, logits_to_keep=1)
    longest = max(len(row.ids) for row in rows)
    states = []
    for layer in output.past_key_values.layers:
        if type(layer) not in {DynamicLayer, DynamicSlidingWindowLayer}:
            raise NeverShareableError(f"its layers keep more than keys and values ({type(layer).__name__})")
        if isinstance(layer, DynamicSlidingWindowLayer) and longest > layer.sliding_window:
            raise NotShareableError(f"{longest} tokens are more than its sliding window of {layer.sliding_window}")
        states.append((layer.keys, layer.values))
    return Prefix(length, states, getattr(getattr(model, "model", None), "rope_deltas", None))


def packs(rows: Sequence[Row], common: int, most: int) -> Iterator[list[Row]]:
    """The rows in groups that go through the model together."""
    pack: list[Row] = []
    size = 0
    for row in rows:
        new = len(row.ids) - common
        if pack and (len(pack) == most or size + new > PACK):
            yield pack
            pack, size = [], 0
        pack.append(row)
        size += new
    if pack:
        yield pack


def read_rests(model: Any, prefix: Prefix, pack: Sequence[Row]) -> list[list[float]]:
    """Log-probabilities of every read of some rows: one pass over their rests, which do not see each other."""
    device, length = model.device, prefix.length
    sizes = [len(row.ids) - length for row in pack]
    ids = torch.tensor([[token for row in pack for token in row.ids[length:]]], device=device)
    place = torch.cat([torch.arange(size) for size in sizes]).to(device)
    owner = torch.repeat_interleave(torch.arange(len(pack)), torch.tensor(sizes)).to(device)
    seen = (owner[:, None] == owner[None, :]) & (place[:, None] >= place[None, :])
    mask = torch.zeros((len(place), length + len(place)), dtype=model.dtype, device=device)
    mask[:, length:].masked_fill_(~seen, torch.finfo(model.dtype).min)
    positions = (place + length)[None]
    if prefix.lag is not None:
        positions = (positions + prefix.lag.to(device)).expand(3, 1, -1)
    starts = [sum(sizes[:n]) - length for n in range(len(sizes))]
    places = [[start + read.position for read in row.reads] for start, row in zip(starts, pack, strict=True)]
    kept = sorted({place for row in places for place in row})
    logits = model(
        input_ids=ids,
        attention_mask=mask[None, None],
        position_ids=positions,
        past_key_values=DynamicCache(prefix.states),  # grows by copying: the prefix stays as it is
        use_cache=True,
        logits_to_keep=torch.tensor(kept, device=device),
    ).logits[0]
    return [read_off(logits, row, list(map(kept.index, own))) for row, own in zip(pack, places, strict=True)]

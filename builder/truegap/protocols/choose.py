"""Which protocol suits a benchmark and a kind of model."""

from __future__ import annotations

from truegap.errors import UserError
from truegap.hub.benchmark import Benchmark
from truegap.models import DualEncoder
from truegap.protocols.base import ORIGINAL, Model, Protocol
from truegap.protocols.counterfactual import Counterfactual
from truegap.protocols.occupation_retrieval import OccupationRetrieval
from truegap.protocols.resolution import Resolution
from truegap.protocols.retrieval import Retrieval
from truegap.protocols.vqa import Vqa

PROTOCOLS: dict[str, type[Protocol]] = {
    each.name: each for each in (Vqa, Retrieval, Resolution, OccupationRetrieval, Counterfactual)
}


def protocol_class(name: str) -> type[Protocol]:
    """A protocol by its name.

    Raises:
        UserError: There is none of that name.
    """
    if name not in PROTOCOLS:
        raise UserError(f"unknown protocol {name!r}: use {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]


def default_protocol(benchmark: Benchmark, model: Model) -> str:
    """The protocol made for a benchmark's own columns, else the one for the kind of model."""
    columns = benchmark.column_names(ORIGINAL)
    own = (each for each in PROTOCOLS.values() if each.columns_needed and set(each.columns_needed) <= set(columns))
    fallback = Retrieval if isinstance(model, DualEncoder) else Vqa
    return next(own, fallback).name

"""Answers of a cluster's workers, got before the protocol asks, so that all that it asks is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from itertools import islice
from typing import Any, TypeVar

from truegap.engine.models import BATCHES, IMAGES, ClusterAnswerer, ClusterEncoder, Item
from truegap.models.answer_cache import AnswerCache, Asked
from truegap.models.cache import EmbeddingCache
from truegap.protocols.base import Asking, Session

Piece = TypeVar("Piece")
Advance = Callable[[int], object]


def ask_ahead(
    asking: Asking[Any],
    session: Session,
    configs: Sequence[str],
    progress: Callable[[int], AbstractContextManager[Advance]],
) -> int:
    """Asks the workers, where the model is a cluster's, what the cache lacks of all configs.

    Shards are cut in the order of configs and images, a dual encoder's along the batches of a run without a cluster.
    Each is kept as it comes: a second run asks only for the others.

    Args:
        asking: What is asked.
        session: The model, the images and the cache.
        configs: Which configs.
        progress: Shows progress: called with how many images are to be asked about.

    Returns:
        How many answers or embeddings were computed.

    Raises:
        UserError: An image, a question or an answer is unusable, or a shard's worker died again and again.
    """
    model, cache = session.model, session.cache
    if isinstance(model, ClusterEncoder):
        assert isinstance(cache, EmbeddingCache)
        return _embed(model, cache, _items(model, cache, session, configs), session.batch_size, progress)
    if isinstance(model, ClusterAnswerer):
        assert isinstance(cache, AnswerCache)
        asked = (each for config in configs for each in session.asked(config, asking))
        return _answer(model, cache, list(_cut(cache.lacking(model, asked), IMAGES)), session.batch_size, progress)
    return 0


def _items(
    encoder: ClusterEncoder, cache: EmbeddingCache, session: Session, configs: Sequence[str]
) -> list[Sequence[Item]]:
    """The shards of every config; what two configs share is the first one's."""
    planned: set[str] = set()
    shards: list[Sequence[Item]] = []
    for config in configs:
        new = [each for each in cache.lacking(encoder, session.items(config)) if each[0] not in planned]
        planned.update(sha for sha, _ in new)
        shards += _cut(new, BATCHES * session.batch_size)
    return shards


def _embed(
    encoder: ClusterEncoder,
    cache: EmbeddingCache,
    shards: list[Sequence[Item]],
    batch_size: int,
    progress: Callable[[int], AbstractContextManager[Advance]],
) -> int:
    total = sum(map(len, shards))
    if total:
        with progress(total) as advance, closing(encoder.embed(shards, batch_size)) as results:
            for number, features in results:
                cache.keep(encoder, features)
                shards[number] = ()  # a file that nobody reads any more is let go
                advance(len(features))
    return total


def _answer(
    model: ClusterAnswerer,
    cache: AnswerCache,
    shards: list[Sequence[Asked]],
    batch_size: int,
    progress: Callable[[int], AbstractContextManager[Advance]],
) -> int:
    total = 0
    if shards:
        with progress(sum(map(len, shards))) as advance, closing(model.answer_shards(shards, batch_size)) as results:
            for number, answers in results:
                for asked, given in zip(shards[number], answers, strict=True):
                    cache.keep(model, asked, given)
                    total += len(given)
                advance(len(answers))
                shards[number] = ()
    return total


def _cut(pieces: Iterable[Piece], size: int) -> Iterator[Sequence[Piece]]:
    source = iter(pieces)
    while shard := tuple(islice(source, size)):
        yield shard

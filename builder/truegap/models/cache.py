"""Embeddings computed once: an SQLite file, keyed by model and image content, that outlives any kill."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from truegap.build.images import UnusableImageError, opened
from truegap.cores import cores
from truegap.errors import UserError
from truegap.models._images import as_image
from truegap.models._pipeline import ahead, batches
from truegap.models._sqlite import SqliteFile, digest_of
from truegap.models.base import DualEncoder, FloatArray
from truegap.models.image_encoder import ImageEncoder

__all__ = ["Embedded", "EmbeddingCache", "Source", "features_of", "image_of"]

Source = bytes | Callable[[], bytes | Image.Image]
"""Encoded bytes, or a function that gives them (or the image) when they are needed, called in a thread."""

LOOKUP = 256
MOST_DECODERS = 8


class Embedded(NamedTuple):
    """Features in the order of the items, and where the distinct ones came from."""

    features: FloatArray
    """float32 `(n, d)`, rows of unit length."""
    cached: int
    """Distinct images taken from the cache."""
    computed: int
    """Distinct images encoded now."""


class EmbeddingCache(SqliteFile):
    """Features of images and texts on disk, for as many models and processes as there are.

    The key is the encoder's `cache_key` (weights, preprocessing, dtype, libraries, kind of device) and the SHA-256 of
    the encoded image, or of the text behind a prefix that no image file has. Every batch is committed by itself, so
    that a kill costs one batch. Use one object per thread; several processes may share the file, on a local disk
    (SQLite's write-ahead log does not work over a network).
    """

    FILE = "embeddings.sqlite"
    HOLDS = "embeddings"
    NAME = "embedding cache"
    TABLE = (
        "CREATE TABLE IF NOT EXISTS embeddings ("
        "model BLOB NOT NULL, image BLOB NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (model, image))"
    )

    def embed_images(
        self,
        encoder: ImageEncoder,
        items: Iterable[tuple[str, Source]],
        batch_size: int = 64,
        progress: Callable[[int], object] | None = None,
        workers: int | None = None,
        meanwhile: Callable[[], object] | None = None,
    ) -> Embedded:
        """Features of images, each distinct one computed at most once.

        Decoding and preprocessing run in threads, ahead of the forward passes. Only a few batches of images are in
        memory at a time, so `items` may be a generator over any number of them.

        Args:
            encoder: The model.
            items: SHA-256 (hexadecimal) of an image's encoded bytes, and the bytes or a function giving them.
            batch_size: Images per forward pass, halved by itself where the memory does not suffice.
            progress: Called with the number of distinct images just finished.
            workers: Threads that decode and preprocess; by default one per core, at most 8, less one where the model
                runs on the CPU itself.
            meanwhile: Called once, when the first images are being decoded.

        Returns:
            Features in the order of `items` (`(0, 0)` without any) and the counts.

        Raises:
            UserError: An image cannot be decoded or has another hash than its key, a feature is NaN or infinite, or the
                cache is damaged or full.
        """
        key = _digest(encoder)
        rows: dict[str, FloatArray] = {}
        order: list[str] = []
        counts = {"cached": 0, "computed": 0}
        report = progress or (lambda _: None)

        def missing() -> Iterator[tuple[str, Source]]:
            """Look items up; give each distinct one that is not there, the first time it comes."""
            seen: set[str] = set()
            rest = iter(items)
            while chunk := list(islice(rest, LOOKUP)):
                order.extend(sha for sha, _ in chunk)
                new = {sha: source for sha, source in chunk if sha not in seen}
                seen.update(new)
                found = self._find(key, list(new))
                rows.update(found)
                counts["cached"] += len(found)
                if found:
                    report(len(found))
                yield from ((sha, source) for sha, source in new.items() if sha not in found)

        with closing(features_of(encoder, missing(), batch_size, workers, meanwhile)) as computed:
            for batch in computed:
                rows.update(self._store(key, batch))
                counts["computed"] += len(batch)
                report(len(batch))
        features = self._stacked([rows[sha] for sha in order]) if order else np.empty((0, 0), np.float32)
        return Embedded(features, counts["cached"], counts["computed"])

    def embed_texts(self, encoder: DualEncoder, texts: Sequence[str]) -> FloatArray:
        """Features of texts, each distinct one computed at most once.

        Args:
            encoder: The model.
            texts: At least one.

        Returns:
            float32 `(n, d)` in the order of the texts, rows of unit length.

        Raises:
            UserError: A feature is NaN or infinite, or the cache is damaged or full.
            ValueError: `texts` is empty.
        """
        if not texts:
            raise ValueError("nothing to encode")
        key = _digest(encoder)
        rows: dict[str, FloatArray] = {}
        for chunk in batches({_text_digest(text): text for text in texts}.items(), LOOKUP):
            found = self._find(key, [sha for sha, _ in chunk])
            new = {sha: text for sha, text in chunk if sha not in found}
            if new:
                computed = encoder.encode_texts(list(new.values()))
                found |= self._store(key, dict(zip(new, computed, strict=True)))
            rows |= found
        return self._stacked([rows[_text_digest(text)] for text in texts])

    def lacking(self, encoder: ImageEncoder, items: Iterable[tuple[str, Source]]) -> Iterator[tuple[str, Source]]:
        """The items that are not known, each distinct one the first time it comes.

        Raises:
            UserError: The cache is damaged.
        """
        key = _digest(encoder)
        seen: set[str] = set()
        for chunk in batches(items, LOOKUP):
            new = {sha: source for sha, source in chunk if sha not in seen}
            seen.update(new)
            found = self._find(key, list(new))
            yield from ((sha, source) for sha, source in new.items() if sha not in found)

    def keep(self, encoder: ImageEncoder, fresh: Mapping[str, FloatArray]) -> None:
        """Commits features that were computed elsewhere, by the SHA-256 of their images.

        Raises:
            UserError: The cache is damaged or full.
        """
        self._store(_digest(encoder), fresh)

    def _stacked(self, rows: list[FloatArray]) -> FloatArray:
        if len({len(row) for row in rows}) > 1:
            raise self._damaged("rows of different lengths")
        return np.stack(rows)

    def _find(self, model: bytes, images: list[str]) -> dict[str, FloatArray]:
        """The stored ones among these images."""
        marks = ", ".join("?" * len(images))
        query = f"SELECT image, vector FROM embeddings WHERE model = ? AND image IN ({marks})"  # noqa: S608 (only ?)
        with self._readable_errors():
            found = self._db.execute(query, [model, *map(digest_of, images)]).fetchall()
        if any(len(vector) % 4 or not vector for _, vector in found):
            raise self._damaged("a row is cut off")
        return {image.hex(): np.frombuffer(vector, "<f4").astype(np.float32, copy=False) for image, vector in found}

    def _store(self, model: bytes, fresh: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
        """Commit a batch; where another process was faster its rows stand, so that all runs read the same bits."""
        rows = [(model, digest_of(sha), vector.astype("<f4").tobytes()) for sha, vector in fresh.items()]
        with self._readable_errors(), self._transaction():
            inserted = self._db.executemany("INSERT OR IGNORE INTO embeddings VALUES (?, ?, ?)", rows).rowcount
        return fresh if inserted == len(rows) else self._find(model, list(fresh))


def features_of(
    encoder: ImageEncoder,
    items: Iterable[tuple[str, Source]],
    batch_size: int = 64,
    workers: int | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> Generator[dict[str, FloatArray], None, None]:
    """Features of distinct images, batch by batch; decoding and preprocessing run in threads, ahead of the passes.

    Arguments and errors as of `EmbeddingCache.embed_images`.
    """

    def prepare(item: tuple[str, Source]) -> tuple[str, Any]:
        sha, source = item
        return sha, encoder.preprocess(image_of(sha, source))

    threads = workers or _decoders(encoder)
    with ahead(prepare, items, threads, window=2 * batch_size + threads) as prepared:
        if meanwhile:
            meanwhile()
        for batch in batches(prepared, batch_size):
            features = encoder.encode_preprocessed([inputs for _, inputs in batch])
            yield {sha: row for (sha, _), row in zip(batch, features, strict=True)}


def _decoders(encoder: ImageEncoder) -> int:
    """Threads that decode: forward passes that wait for a core cost more than images that wait for a thread."""
    compute = getattr(encoder, "compute", None)
    taken = 1 if compute and compute.device == "cpu" else 0
    return max(1, min(MOST_DECODERS, cores() - taken))


def _digest(encoder: ImageEncoder) -> bytes:
    return hashlib.sha256(encoder.cache_key.encode()).digest()


def _text_digest(text: str) -> str:
    return hashlib.sha256(b"text\0" + text.encode("utf-8", "surrogatepass")).hexdigest()


def image_of(sha: str, source: Source) -> Image.Image:
    """The upright RGB image of an item, after a check that its bytes are those of the key."""
    content = source if isinstance(source, bytes) else source()
    if isinstance(content, Image.Image):
        return as_image(content)
    if hashlib.sha256(content).hexdigest() != sha:
        raise UserError(
            f"image {sha[:12]}: its bytes do not have this SHA-256; the benchmark was altered, build it again"
        )
    try:
        return opened(content)
    except UnusableImageError as error:
        raise UserError(f"image {sha[:12]}: cannot be decoded ({error}); build the benchmark again") from error

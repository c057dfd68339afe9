"""The tidy table of answers: one row per image, config and prompt, from which every score follows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

FILE = "answers.parquet"

COLUMNS = {
    "config": "which config of the benchmark",
    "prompt_set": "name of the prompt set",
    "prompt_id": "the prompt's id in its set",
    "prompt": "what the model read",
    "topic": "what the prompt is about",
    "option": "which option the score is of; null where there are none, as in retrieval",
    "draw": "which draw the row belongs to; null where it counts in every draw that holds the image",
    "image_id": "the same in all configs",
    "gender": "woman or man",
    "score": "cosine similarity (retrieval)",
}
"""What each column holds."""


def schema() -> pa.Schema:
    """The Arrow schema; texts that repeat are dictionaries, so that 25 million rows stay small."""
    import pyarrow as pa

    text = pa.dictionary(pa.int32(), pa.string())
    types: dict[str, Any] = dict.fromkeys(COLUMNS, text) | {"draw": pa.int16(), "score": pa.float32()}
    return pa.schema([(name, types[name]) for name in COLUMNS])


class AnswersWriter:
    """Writes answers config by config; the file has its name only when it is whole."""

    def __init__(self, folder: Path) -> None:
        """Begins `answers.parquet` in a folder that exists."""
        from pyarrow.parquet import ParquetWriter

        self._path = folder / FILE
        for left in folder.glob(f".{FILE}.*"):
            left.unlink(missing_ok=True)  # what a killed run left
        self._aside = folder / f".{FILE}.{os.getpid()}"
        self._writer: Any = ParquetWriter(self._aside, schema(), compression="zstd")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()
        if kind is None:
            self._aside.replace(self._path)
        else:
            self._aside.unlink(missing_ok=True)

    def write(
        self,
        config: str,
        prompts: Sequence[tuple[str, str, str, str]],
        image_ids: Sequence[str],
        genders: Sequence[str],
        scores: NDArray[np.float32],
    ) -> None:
        """Adds all answers to one config.

        Args:
            config: Its name.
            prompts: Per prompt: name of its set, id, text, topic.
            image_ids: Per image.
            genders: Per image.
            scores: (prompts, images).
        """
        import pyarrow as pa

        n_prompts, n_images = scores.shape
        prompt = np.repeat(np.arange(n_prompts, dtype=np.int32), n_images)
        image = np.tile(np.arange(n_images, dtype=np.int32), n_prompts)

        def column(codes: NDArray[np.int32], values: Sequence[str]) -> Any:
            return pa.DictionaryArray.from_arrays(codes, pa.array(values, pa.string()))

        sets, ids, texts, topics = zip(*prompts, strict=True)
        rows = n_prompts * n_images
        columns = {
            "config": column(np.zeros(rows, np.int32), [config]),
            "prompt_set": column(prompt, sets),
            "prompt_id": column(prompt, ids),
            "prompt": column(prompt, texts),
            "topic": column(prompt, topics),
            "option": pa.nulls(rows, schema().field("option").type),
            "draw": pa.nulls(rows, pa.int16()),
            "image_id": column(image, image_ids),
            "gender": column(image, genders),
            "score": pa.array(scores.reshape(-1), pa.float32()),
        }
        self._writer.write_table(pa.table(columns, schema=schema()))


def read_answers(folder: Path, *, config: str | None = None) -> pa.Table:
    """The answers of a run, of one config if it is named."""
    import pyarrow.parquet as pq

    return pq.read_table(folder / FILE, filters=None if config is None else [("config", "=", config)])

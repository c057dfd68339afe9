"""The tidy table of answers: one row per image, config, prompt and option, from which every score follows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
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
    "gender": "woman or man: who the prompt is about",
    "score": "cosine similarity, or natural logarithm of the option's probability; null where the model gives neither",
}
"""What each column of every table holds."""

EXTRA = {
    "probability": "the option's, under the run's conventions: this is what scores count; 0 or 1 for answers alone",
    "letter": "under which letter the option stood",
    "polarity": "positive or negative, where the option Yes says something good or bad",
    "template": "whom the pronoun refers to: occupation or participant",
    "other_gender": "woman or man: of the other person; null where there is nobody else",
    "occupation": "of the person whom the prompt is about",
    "sector": "the occupation's",
    "specialisation": "the occupation's",
    "context": "what changes in the counterfactual: VL image and word, V the image, L the word",
    "role": "base or counterfactual",
    "order": "0, or 1 with the options swapped",
    "pair": "the male-dominated and the female-dominated occupation, as occ_m|occ_f",
    "right": "1 for the right option, else 0",
    "tokens": "over how many tokens the score sums",
}
"""Columns that some protocols add."""


def schema(extra: Sequence[str] = ()) -> pa.Schema:
    """The Arrow schema; texts that repeat are dictionaries, so that 25 million rows stay small.

    Args:
        extra: Some of `EXTRA`.
    """
    import pyarrow as pa

    text = pa.dictionary(pa.int32(), pa.string())
    types: dict[str, Any] = dict.fromkeys([*COLUMNS, *extra], text) | {
        "draw": pa.int16(),
        "score": pa.float32(),
        "probability": pa.float32(),
        "order": pa.int8(),
        "right": pa.int8(),
        "tokens": pa.int16(),
    }
    return pa.schema([(name, types[name]) for name in (*COLUMNS, *extra)])


def coded(codes: NDArray[Any], values: Sequence[str | None]) -> Any:
    """A column of texts that repeat, from each row's place in `values`; a None among them is a null."""
    import pyarrow as pa

    known = {place: number for number, place in enumerate(n for n, value in enumerate(values) if value is not None)}
    moved = np.array([known.get(place, -1) for place in range(len(values))], np.int32)[codes]
    indices = pa.array(moved, pa.int32(), mask=moved < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array([values[place] for place in known], pa.string()))


def repeated(texts: Sequence[str | None]) -> Any:
    """A column of texts that repeat, from each row's own."""
    places: dict[str | None, int] = {}
    codes = np.fromiter((places.setdefault(text, len(places)) for text in texts), np.int32, len(texts))
    return coded(codes, list(places))


class AnswersWriter:
    """Writes answers config by config; the file has its name only when it is whole."""

    def __init__(self, folder: Path, extra: Sequence[str] = ()) -> None:
        """Begins `answers.parquet` in a folder that exists, with some of the columns of `EXTRA`."""
        from pyarrow.parquet import ParquetWriter

        self._path = folder / FILE
        for left in folder.glob(f".{FILE}.*"):
            left.unlink(missing_ok=True)  # what a killed run left
        self._aside = folder / f".{FILE}.{os.getpid()}"
        self._schema = schema(extra)
        self._writer: Any = ParquetWriter(self._aside, self._schema, compression="zstd")

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

    def add(self, config: str, columns: Mapping[str, Any]) -> None:
        """Adds rows of one config.

        Args:
            config: Its name.
            columns: By name, Arrow arrays or NumPy arrays of one length; a column that is absent is null.

        Raises:
            ValueError: A column is none of this table's.
        """
        import pyarrow as pa

        if unknown := [name for name in columns if name not in self._schema.names]:
            raise ValueError(f"{', '.join(unknown)}: no such column in a table of answers")
        rows = len(next(iter(columns.values())))
        filled = {name: pa.nulls(rows, self._schema.field(name).type) for name in self._schema.names}
        filled |= {"config": coded(np.zeros(rows, np.int32), [config])}
        self._writer.write_table(pa.table({**filled, **columns}).cast(self._schema))

    def write(
        self,
        config: str,
        prompts: Sequence[tuple[str, str, str, str]],
        image_ids: Sequence[str],
        genders: Sequence[str],
        scores: NDArray[np.float32],
    ) -> None:
        """Adds all answers to one config, every prompt asked of every image.

        Args:
            config: Its name.
            prompts: Per prompt: name of its set, id, text, topic.
            image_ids: Per image.
            genders: Per image.
            scores: (prompts, images).
        """
        self.add(config, grid(prompts, image_ids, genders) | {"score": scores.reshape(-1)})


def grid(
    prompts: Sequence[tuple[str, str, str, str]], image_ids: Sequence[str], genders: Sequence[str], options: int = 1
) -> dict[str, Any]:
    """The columns of a table in which every prompt is asked of every image: by prompt, then image, then option."""
    rows = (len(prompts), len(image_ids), options)
    prompt, image, _ = (place.reshape(-1) for place in np.indices(rows, dtype=np.int32))
    sets, ids, texts, topics = zip(*prompts, strict=True)
    return {
        "prompt_set": coded(prompt, sets),
        "prompt_id": coded(prompt, ids),
        "prompt": coded(prompt, texts),
        "topic": coded(prompt, topics),
        "image_id": coded(image, image_ids),
        "gender": coded(image, genders),
    }


def read_answers(folder: Path, *, config: str | None = None) -> pa.Table:
    """The answers of a run, of one config if it is named."""
    import pyarrow.parquet as pq

    return pq.read_table(folder / FILE, filters=None if config is None else [("config", "=", config)])

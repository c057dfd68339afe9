"""A built benchmark, opened: a folder on disk, or a Hub dataset whose files come to one as they are read."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from truegap.build.manifest import FILE, Manifest, read_manifest
from truegap.build.recipe import FILE as RECIPE
from truegap.errors import UserError, first_line
from truegap.hub.snapshots import locate, snapshot, split_revision
from truegap.schema import Split


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A built benchmark on this disk.

    Attributes:
        spec: What the user typed.
        folder: Where it is.
        manifest: What it holds.
        revision: Commit on the Hub, where it came from there.
    """

    spec: str
    folder: Path
    manifest: Manifest
    revision: str | None = None

    def image_ids(self, split: Split = "test") -> list[str]:
        """The ids of a split's images, in the order of its rows in every config.

        Raises:
            UserError: The benchmark has no such split.
        """
        return self.manifest.rows.image_id[self.manifest.places(split)]

    def images(self, config: str, split: Split = "test") -> ParquetImages:
        """The encoded images of a config, in the order of `image_ids`.

        Raises:
            UserError: The benchmark has no such split, or lacks files.
        """
        hashes = self.manifest.rows.image_sha256[config][self.manifest.places(split)]
        return ParquetImages(self._files(config, split), hashes)

    def column(self, config: str, name: str, split: Split = "test") -> list[Any]:
        """One column of a config, in the order of `image_ids`.

        Raises:
            UserError: The benchmark has no such split, or lacks files.
        """
        import pyarrow.parquet as pq

        values: list[Any] = []
        for file in self._files(config, split):
            # `read_table` would import pandas first.
            with _readable(file), pq.ParquetFile(file) as opened:
                values.extend(opened.read(columns=[name]).column(name).to_pylist())
        return values

    def column_names(self, config: str, split: Split = "test") -> list[str]:
        """The columns of a config.

        Raises:
            UserError: The benchmark has no such split, or lacks files.
        """
        import pyarrow.parquet as pq

        first = self._files(config, split)[0]
        with _readable(first):
            return list(pq.read_schema(first).names)

    def fetch(self, configs: Sequence[str]) -> None:
        """Brings all files of some configs to the folder, where they are not there yet.

        Raises:
            UserError: They cannot be downloaded.
        """
        if self.revision is not None:
            patterns = [f"data/{config}/*" for config in configs]
            snapshot(split_revision(self.spec)[0], self.revision, patterns)

    def _files(self, config: str, split: Split) -> list[Path]:
        self.manifest.places(split)
        pattern = f"data/{config}/{split}-*.parquet"
        files, expected = sorted(self.folder.glob(pattern)), self.manifest.splits[split].files
        if len(files) != expected and self.revision is not None:
            snapshot(split_revision(self.spec)[0], self.revision, [pattern])
            files = sorted(self.folder.glob(pattern))
        if len(files) != expected:
            where, remedy = str(self.folder), "copy or build the benchmark again"
            if self.revision is not None:
                where = f"{split_revision(self.spec)[0]}@{self.revision[:12]}"
                remedy = "the repository is not whole: take another revision"
            raise UserError(f"{where}: split {split} of config {config} has {len(files)} of {expected} files: {remedy}")
        return files


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """A damaged file is told on one line."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{file}: {first_line(error)}; copy or build the benchmark again") from None


class ParquetImages:
    """Images of one config by position, read a row group at a time; safe in threads."""

    _KEPT = 4

    def __init__(self, files: Sequence[Path], sha256: Sequence[str]) -> None:
        """Looks at the files' row groups; reads no image yet."""
        import pyarrow.parquet as pq

        self.sha256 = sha256
        self._groups: list[tuple[Path, int]] = []
        sizes: list[int] = []
        for file in files:
            with _readable(file):
                metadata = pq.read_metadata(file)
            for group in range(metadata.num_row_groups):
                self._groups.append((file, group))
                sizes.append(metadata.row_group(group).num_rows)
        self._ends = list(accumulate(sizes))
        self._read: OrderedDict[int, list[bytes]] = OrderedDict()
        self._lock = threading.Lock()
        if (self._ends[-1] if sizes else 0) != len(sha256):
            raise UserError(
                f"{files[0].parent if files else 'data'}: rows differ from {FILE}: build the benchmark again"
            )

    def __len__(self) -> int:
        return len(self.sha256)

    def __getitem__(self, place: int) -> bytes:
        """The encoded image; that its bytes are those of the manifest is the caller's check."""
        import pyarrow.parquet as pq

        number = bisect_right(self._ends, place)
        with self._lock:
            if number not in self._read:
                file, group = self._groups[number]
                with _readable(file), pq.ParquetFile(file) as opened:
                    column = opened.read_row_group(group, columns=["image.bytes"]).column("image")
                self._read[number] = [each["bytes"] for each in column.to_pylist()]
                while len(self._read) > self._KEPT:
                    self._read.popitem(last=False)
            rows = self._read[number]
        return rows[place - (self._ends[number - 1] if number else 0)]

    def __iter__(self) -> Iterator[bytes]:
        return (self[place] for place in range(len(self)))


def open_benchmark(spec: str, configs: Sequence[str] | None = None) -> Benchmark:
    """Opens a built benchmark; of one on the Hub the manifest comes, and every other file when somebody reads it.

    Args:
        spec: A folder, or `ORG/NAME` or `ORG/NAME@TAG` on the Hub.
        configs: Which configs it must have.

    Raises:
        UserError: It is neither, cannot be downloaded, or lacks a config.
    """
    files = locate(spec, [FILE, RECIPE], "a built benchmark")
    if (files.folder / RECIPE).is_file() and not (files.folder / FILE).is_file():
        raise UserError(
            f"{spec} is a recipe, which holds no images: build it from your copy of the source with "
            f"`truegap build --recipe {spec} --source DIR --out DIR`"
        )
    manifest = read_manifest(files.folder)
    if missing := [config for config in configs or () if config not in manifest.configs]:
        raise UserError(f"{spec} has no config {', '.join(missing)}: it has {', '.join(manifest.configs)}")
    return Benchmark(spec, files.folder, manifest, files.commit)

"""A built benchmark, opened: a folder on disk, or a Hub dataset brought to one."""

from __future__ import annotations

import re
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from truegap.build.manifest import FILE, Manifest, read_manifest
from truegap.errors import UserError

_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


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

    def images(self, config: str) -> ParquetImages:
        """The encoded images of a config, in the order of `manifest.rows.image_id`."""
        return ParquetImages(self._files(config), self.manifest.rows.image_sha256[config])

    def column(self, config: str, name: str) -> list[Any]:
        """One column of a config, in the order of `manifest.rows.image_id`."""
        import pyarrow.parquet as pq

        values: list[Any] = []
        for file in self._files(config):
            values.extend(pq.read_table(file, columns=[name]).column(name).to_pylist())
        return values

    def _files(self, config: str) -> list[Path]:
        files = sorted((self.folder / "data" / config).glob("test-*.parquet"))
        if len(files) != self.manifest.configs[config].files:
            raise UserError(
                f"{self.folder}: config {config} has {len(files)} of {self.manifest.configs[config].files} files: "
                "copy or build the benchmark again"
            )
        return files


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
                column = pq.ParquetFile(file).read_row_group(group, columns=["image.bytes"]).column("image")
                self._read[number] = [each["bytes"] for each in column.to_pylist()]
                while len(self._read) > self._KEPT:
                    self._read.popitem(last=False)
            rows = self._read[number]
        return rows[place - (self._ends[number - 1] if number else 0)]

    def __iter__(self) -> Iterator[bytes]:
        return (self[place] for place in range(len(self)))


def open_benchmark(spec: str, configs: Sequence[str] | None = None) -> Benchmark:
    """Opens a built benchmark.

    Args:
        spec: A folder, or `ORG/NAME` or `ORG/NAME@TAG` on the Hub.
        configs: Which configs will be read (all if None): only those are downloaded.

    Raises:
        UserError: It is neither, cannot be downloaded, or lacks a config.
    """
    folder = Path(spec).expanduser()
    revision = None
    if not folder.is_dir():
        wanted = [f"data/{config}/*" for config in configs] if configs else ["data/*"]
        folder, revision = download(spec, [FILE, *wanted], "a built benchmark")
    manifest = read_manifest(folder)
    if missing := [config for config in configs or () if config not in manifest.configs]:
        raise UserError(f"{spec} has no config {', '.join(missing)}: it has {', '.join(manifest.configs)}")
    return Benchmark(spec, folder, manifest, revision)


def download(spec: str, patterns: Sequence[str], what: str) -> tuple[Path, str]:
    """Brings files of a Hub dataset to this disk.

    Args:
        spec: `ORG/NAME` or `ORG/NAME@TAG`.
        patterns: Which files.
        what: What the user should have given, for the message.

    Returns:
        The folder and the commit.

    Raises:
        UserError: The name is not one, or the files cannot be had.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    repository, _, tag = spec.partition("@")
    if not _REPOSITORY.fullmatch(repository):
        raise UserError(f"{spec} is neither a folder nor ORG/NAME[@TAG]: give {what}")
    try:
        path = snapshot_download(repository, repo_type="dataset", revision=tag or None, allow_patterns=list(patterns))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(f"{spec} is not a folder here and cannot be had from the Hub: {reason}") from None
    return Path(path), Path(path).name

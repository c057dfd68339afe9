"""What `--source` means: a folder, or a dataset on the Hub where the authors of a benchmark publish theirs there."""

from __future__ import annotations

from pathlib import Path

from truegap.cli.progress import progress
from truegap.hub.snapshots import Files


def archive(name: str, source: Path) -> Files:
    """The folder of an archive; from the Hub it is brought and unpacked first, once for every commit.

    Args:
        name: The benchmark.
        source: A folder, or `ORG/NAME[@REVISION]`.

    Returns:
        A folder, which may be absent if it is none on the Hub; with the commit if it is one.

    Raises:
        UserError: The dataset cannot be had or unpacked.
    """
    from truegap.hub.archives import bring
    from truegap.hub.snapshots import is_repository, split_revision
    from truegap.resources import cache_folder
    from truegap.sources import load_benchmark

    spec = str(source)
    published = any(origin.hub for origin in load_benchmark(name).origins)
    if source.is_dir() or not published or not is_repository(split_revision(spec)[0]):
        return Files(source)
    return bring(spec, cache_folder() / "archives", progress)

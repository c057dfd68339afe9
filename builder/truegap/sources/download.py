"""Images that are published as addresses: fetched politely, checked, recorded, and not fetched twice.

The folder holds the images as `<id>.<jpg|png|webp>` and `downloads.jsonl`, one line per address: what came of it, and
the SHA-256 of what was stored. The line is written when the image is in its place, so that an interrupted run goes on
where it stopped.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from urllib.parse import urlsplit

from truegap.errors import UserError
from truegap.files.values import is_plain
from truegap.sources._fetch import Fetched, Fetcher, Refused
from truegap.sources.download_options import DownloadOptions
from truegap.sources.download_record import MANIFEST, Journal, Outcome, intact, read_manifest, write_manifest

_PROGRESS = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Report:
    """What a run did.

    Attributes:
        outcomes: Of every address that was asked for, by image id.
        fetched: How many images were fetched now.
        kept: How many were there already.
    """

    outcomes: Mapping[str, Outcome]
    fetched: int
    kept: int

    @property
    def missing(self) -> list[Outcome]:
        """The addresses without an image, dead or not."""
        return [outcome for outcome in self.outcomes.values() if not outcome.file]

    def counts(self) -> str:
        """How many images there are, on one line."""
        return f"{self.fetched} images fetched, {self.kept} were there already, {len(self.missing)} missing"

    def reasons(self) -> list[tuple[str, bool, int]]:
        """Why images are missing: reason, whether it lasts, and of how many; the commonest first."""
        counts = Counter((outcome.reason, outcome.lasting) for outcome in self.missing)
        return [(reason, lasting, number) for (reason, lasting), number in counts.most_common()]

    def summary(self) -> str:
        """Counts on one line, then a line for every reason why images are missing."""
        return "\n".join([self.counts(), *(f"missing: {number} ({reason})" for reason, _, number in self.reasons())])


def download(
    urls: Mapping[str, str],
    folder: Path,
    options: DownloadOptions | None = None,
    advance: _PROGRESS = lambda _: None,
) -> Report:
    """Fetch images by their addresses into a folder; run it again to go on, or to try again what failed for now.

    Args:
        urls: Address by image id. The id becomes the file's name.
        folder: Where images and manifest go; made if absent.
        options: Limits and manners.
        advance: Called with the number of addresses that are done.

    Returns:
        What came of every address.

    Raises:
        UserError: An image cannot be written.
    """
    chosen = options or DownloadOptions()
    folder.mkdir(parents=True, exist_ok=True)
    before = read_manifest(folder)
    outcomes: dict[str, Outcome] = {}
    waiting: dict[str, str] = {}
    for image, url in urls.items():
        earlier = before.get(image)
        if not is_plain(image):
            outcomes[image] = Outcome(image, url, reason="id cannot be the name of a file", lasting=True)
        elif earlier is not None and earlier.url == url and _settled(folder, earlier, chosen):
            outcomes[image] = earlier
        else:
            waiting[image] = url
    kept = sum(bool(outcome.file) for outcome in outcomes.values())
    advance(len(outcomes))
    for outcome in _run(waiting, folder, chosen):
        outcomes[outcome.id] = outcome
        earlier = before.get(outcome.id)
        if earlier is not None and outcome.file and earlier.file not in {"", outcome.file}:
            (folder / earlier.file).unlink(missing_ok=True)
        advance(1)
    write_manifest(folder, before | outcomes)
    ordered = {image: outcomes[image] for image in urls}
    return Report(ordered, sum(bool(ordered[image].file) for image in waiting), kept)


def _run(waiting: Mapping[str, str], folder: Path, options: DownloadOptions) -> Iterable[Outcome]:
    hosts: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for image, url in waiting.items():
        hosts[_host(url)].append((image, url))
    # One address of each host in turn, so that a large host does not hold up the others.
    turns = [each for each in chain.from_iterable(zip_longest(*hosts.values())) if each is not None]
    journal = Journal(folder / MANIFEST)
    stop = threading.Event()
    with closing(journal), Fetcher(options, stop) as fetcher, ThreadPoolExecutor(options.workers) as pool:
        try:
            futures = [pool.submit(_one, image, url, folder, fetcher, journal) for image, url in turns]
            for future in as_completed(futures):
                yield future.result()
        finally:
            # Interrupted, or somebody stopped listening: what is under way gives up at its next step.
            stop.set()
            pool.shutdown(cancel_futures=True)


def _one(image: str, url: str, folder: Path, fetcher: Fetcher, journal: Journal) -> Outcome:
    try:
        outcome = _store(image, url, folder, fetcher.fetch(url))
    except Refused as refusal:
        outcome = Outcome(image, url, reason=str(refusal), lasting=refusal.lasting)
    journal.write(outcome)
    return outcome


def _store(image: str, url: str, folder: Path, fetched: Fetched) -> Outcome:
    name = f"{image}.{fetched.extension}"
    aside = folder / f".{name}.part"  # always the same: what a killed run left is written over
    try:
        aside.write_bytes(fetched.data)
        aside.replace(folder / name)
    except OSError as error:
        raise UserError(f"{folder / name}: cannot be written: {error.strerror or error}") from None
    digest = hashlib.sha256(fetched.data).hexdigest()
    return Outcome(image, url, name, digest, len(fetched.data), fetched.width, fetched.height)


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _settled(folder: Path, outcome: Outcome, options: DownloadOptions) -> bool:
    return intact(folder, outcome) if outcome.file else outcome.lasting and not options.retry_dead

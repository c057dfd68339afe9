"""Images that are published as addresses: fetched politely, checked, recorded, and not fetched twice.

The folder holds the images as `<id>.<jpg|png|webp>` and `downloads.jsonl`, one line per address: what came of it, and
the SHA-256 of what was stored. The line is written when the image is in its place, so that an interrupted run goes on
where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field

from truegap.errors import UserError
from truegap.files.atomic import write_bytes
from truegap.files.values import is_plain
from truegap.schema import MAX_PIXELS
from truegap.sources._fetch import Fetched, Fetcher, Refused
from truegap.sources._source import Names, Options

MANIFEST = "downloads.jsonl"

_UNUSUAL = re.compile(r"[^\w (),.-]")
"""What no reason of ours has: the record is a file, and anybody could have written it."""
_PROGRESS = Callable[[int], None]


class DownloadOptions(Options):
    """How images are fetched."""

    workers: int = Field(default=8, ge=1, le=64)
    """Downloads at a time, over all hosts."""
    per_host: int = Field(default=2, ge=1, le=16)
    """Downloads at a time from one host."""
    timeout: float = Field(default=20.0, gt=0)
    """Seconds to wait for a connection and for each part of an answer."""
    deadline: float = Field(default=120.0, gt=0)
    """Seconds that one answer may take in all, however steadily it trickles."""
    attempts: int = Field(default=4, ge=1, le=10)
    """Tries per address, where another may help: no answer, 408, 425, 429 and 5xx."""
    backoff: float = Field(default=1.0, ge=0)
    """Seconds before the second try; doubled before each further one, with jitter."""
    longest_wait: float = Field(default=120.0, ge=0)
    """Most seconds to wait before a try, also where the host asks for more (`Retry-After`)."""
    max_bytes: int = Field(default=32_000_000, ge=1)
    """Largest image file."""
    max_pixels: int = Field(default=MAX_PIXELS, ge=1)
    """Largest image; it is checked before any pixel is decoded."""
    max_redirects: int = Field(default=5, ge=0)
    """Redirects per address."""
    private_hosts: Names = ()
    """Hosts that may be in a private network or this machine; every other such address is refused, and so is every
    redirect to one."""
    retry_dead: bool = False
    """Whether addresses that an earlier run found dead (404, no image, …) are tried again."""
    user_agent: str = "truegap (benchmark image downloader)"
    """What the hosts are told."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one address, as `downloads.jsonl` holds it.

    Attributes:
        id: Of the image.
        url: As published.
        file: Name of the stored file; empty if there is none.
        sha256: Of the stored file.
        n_bytes: Its size.
        width: In pixels.
        height: In pixels.
        reason: Why there is no image.
        lasting: Another run would find the same: the address is dead.
    """

    id: str
    url: str
    file: str = ""
    sha256: str = ""
    n_bytes: int = 0
    width: int = 0
    height: int = 0
    reason: str = ""
    lasting: bool = False


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
    _write_manifest(folder, before | outcomes)
    ordered = {image: outcomes[image] for image in urls}
    return Report(ordered, sum(bool(ordered[image].file) for image in waiting), kept)


def read_manifest(folder: Path) -> dict[str, Outcome]:
    """What earlier runs recorded, by image id; of several lines the last counts, and a torn line counts for nothing."""
    found = {}
    path = folder / MANIFEST
    if path.is_file():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                outcome = Outcome(**json.loads(line))
            except (ValueError, TypeError, RecursionError):
                continue
            if is_plain(outcome.id) and (outcome.file == "" or is_plain(outcome.file)):
                found[outcome.id] = outcome
    return found


def verified(folder: Path) -> dict[str, str]:
    """A reason by image id for every file that is no longer what was downloaded; without a manifest there is none."""
    return {
        image: "image file differs from what was downloaded"
        for image, outcome in read_manifest(folder).items()
        if outcome.file and (folder / outcome.file).is_file() and not _intact(folder, outcome)
    }


def refused(folder: Path) -> dict[str, str]:
    """The recorded reason by image id for every image that could not be downloaded."""
    return {
        image: _UNUSUAL.sub("", str(outcome.reason))[:80] or "no reason"
        for image, outcome in read_manifest(folder).items()
        if not outcome.file
    }


def _run(waiting: Mapping[str, str], folder: Path, options: DownloadOptions) -> Iterable[Outcome]:
    hosts: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for image, url in waiting.items():
        hosts[_host(url)].append((image, url))
    # One address of each host in turn, so that a large host does not hold up the others.
    turns = [each for each in chain.from_iterable(zip_longest(*hosts.values())) if each is not None]
    journal = _Journal(folder / MANIFEST)
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


def _one(image: str, url: str, folder: Path, fetcher: Fetcher, journal: _Journal) -> Outcome:
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


class _Journal:
    """Lines added to the manifest as they come, from several threads."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._file = path.open("ab")
        if self._file.tell():
            # A line that a kill tore apart must not run into the next one.
            self._file.write(b"\n")

    def write(self, outcome: Outcome) -> None:
        with self._lock:
            self._file.write(_line(outcome).encode())
            self._file.flush()

    def close(self) -> None:
        self._file.close()


def _write_manifest(folder: Path, outcomes: Mapping[str, Outcome]) -> None:
    write_bytes(folder / MANIFEST, "".join(_line(outcomes[image]) for image in sorted(outcomes)).encode())


def _line(outcome: Outcome) -> str:
    fields: dict[str, Any] = asdict(outcome)
    return json.dumps(fields, ensure_ascii=True) + "\n"


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _settled(folder: Path, outcome: Outcome, options: DownloadOptions) -> bool:
    return _intact(folder, outcome) if outcome.file else outcome.lasting and not options.retry_dead


def _intact(folder: Path, outcome: Outcome) -> bool:
    try:
        return hashlib.sha256((folder / outcome.file).read_bytes()).hexdigest() == outcome.sha256
    except OSError:
        return False

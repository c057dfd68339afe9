"""One request: somebody asks for a model to be evaluated, and everybody sees what becomes of it."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from truegap.hub.snapshots import is_repository
from truegap.leaderboard.limits import DEFAULT_BENCHMARK
from truegap.results.records import Record
from truegap.results.show import plain

State = Literal["PENDING", "RUNNING", "FINISHED", "FAILED"]
ProfileName = Literal["lite", "full"]
Library = Literal["transformers", "open_clip"]

NOTE = 280
"""Characters of a note."""
REASON = 500

_COMMIT = re.compile(r"[0-9a-f]{40}")
_CONTENT = re.compile(r"sha256:[0-9a-f]{64}")
USER = re.compile(r"[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
"""The name of a user."""
RUN_ID = re.compile(r"[0-9a-f]{1,64}")
_WORD = re.compile(r"[a-z][a-z-]{0,39}", re.ASCII)
_VERSION = re.compile(r"\w[\w.+-]{0,59}", re.ASCII)
_PATH = 1000


def _clean(limit: int) -> AfterValidator:
    def check(text: str) -> str:
        if text != plain(text, limit):
            raise ValueError(f"must be one line of at most {limit} printable characters")
        return text

    return AfterValidator(check)


def _moment(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("must be a time with its zone")
    return text


def _place(text: str) -> str:
    """A Hub id, or the absolute path of a folder, which leads nowhere else."""
    if is_repository(text) and ".." not in text and len(text) <= 200:  # noqa: PLR2004
        return text
    if text != plain(text, _PATH) or not text.startswith("/") or str(Path(text).resolve()) != text:
        raise ValueError(
            "must be ORG/NAME on the Hub, or the path of a folder, in printable characters and single spaces"
        )
    return text


def _benchmark(text: str) -> str:
    """As a model, or the name of the benchmark that every leaderboard can make."""
    return text if text == DEFAULT_BENCHMARK else _place(text)


def _matches(pattern: re.Pattern[str], what: str) -> AfterValidator:
    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"is not {what}")
        return text

    return AfterValidator(check)


def _pinned(text: str) -> str:
    if not (_COMMIT.fullmatch(text) or _CONTENT.fullmatch(text)):
        raise ValueError("is neither a commit nor a folder's content")
    return text


Moment = Annotated[str, AfterValidator(_moment)]
Place = Annotated[str, AfterValidator(_place)]
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Request(Record):
    """A line of the queue. Its identity is what is asked, not who asks: the same question is asked once."""

    format_version: Literal[1] = 1
    key: Hash
    """SHA-256 of what is asked, see `key_of`; also the name of its file."""
    model: Place
    """`ORG/NAME` on the Hub, or a folder (absolute) where the store is on this machine."""
    revision: Annotated[str, AfterValidator(_pinned)]
    """Commit on the Hub; of a folder `sha256:` and the hash of its files."""
    library: Library = "transformers"
    """Which library its files are for."""
    benchmark: Annotated[str, AfterValidator(_benchmark)]
    """`ORG/NAME` on the Hub, a folder, or `synthetic@v1`."""
    benchmark_revision: Annotated[str, _matches(_COMMIT, "a commit")] | None = None
    version: Annotated[str, _matches(_VERSION, "a version")]
    """Of the benchmark, by its manifest."""
    content: Hash
    """Of the benchmark, by its manifest."""
    protocol: Annotated[str, _matches(_WORD, "a protocol")]
    profile: ProfileName
    user: Annotated[str, _matches(USER, "a user's name")]
    note: Annotated[str, _clean(NOTE)] = ""
    model_type: Annotated[str, _clean(60)] = ""
    """As the model's configuration says, such as `clip`."""
    parameters: int | None = Field(default=None, ge=0)
    licence: Annotated[str, _clean(60)] | None = None
    state: State = "PENDING"
    reason: Annotated[str, _clean(REASON)] = ""
    """Why it failed, or waits once more."""
    attempts: int = Field(default=0, ge=0)
    """How many times a worker took it."""
    submitted: Moment
    """UTC, ISO 8601."""
    changed: Moment
    worker: Annotated[str, _clean(120)] | None = None
    """Who runs it, or ran it last."""
    lease_until: Moment | None = None
    """The worker's, while it runs; after that, and some patience for clocks, another may take it."""
    run_id: Annotated[str, _matches(RUN_ID, "a run's id")] | None = None
    pull_request: bool = False
    """Whether the model's author wishes the numbers as a pull request to its repository."""
    pull_request_url: Annotated[str, _clean(REASON)] | None = None
    """Where that is."""
    pull_request_reason: Annotated[str, _clean(REASON)] = ""
    """Why it could not be opened."""

    @property
    def offer(self) -> str:
        """What became of the pull request, in one line; empty where nobody wishes one."""
        if not self.pull_request:
            return ""
        if self.pull_request_url:
            return self.pull_request_url
        return f"not opened: {self.pull_request_reason}" if self.pull_request_reason else "after the evaluation"

    @property
    def local(self) -> bool:
        """Whether the model is a folder on this machine."""
        return self.model.startswith("/")

    @model_validator(mode="after")
    def _named_after_what_is_asked(self) -> Request:
        if self.key != key_of(self.model, self.revision, self.version, self.content, self.protocol, self.profile):
            raise ValueError("its key is not that of what it asks")
        if self.state == "RUNNING" and (self.worker is None or self.lease_until is None):
            raise ValueError("a running request has a worker and a lease")
        if self.local == (_COMMIT.fullmatch(self.revision) is not None):
            raise ValueError("a model on the Hub has a commit, a folder the hash of its content")
        return self


def key_of(model: str, revision: str, version: str, content: str, protocol: str, profile: str) -> str:
    """What is asked, as a SHA-256: model at a commit, benchmark by version and content, protocol and profile."""
    asked = [model, revision, version, content, protocol, profile]
    return hashlib.sha256(json.dumps(asked, ensure_ascii=True).encode()).hexdigest()


def now() -> datetime:
    """This moment, in UTC."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """A moment as records hold it: UTC, ISO 8601, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")

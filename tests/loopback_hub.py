"""A Hub on this machine: what `huggingface_hub`, `datasets` and `evaluate` ask of the real one, over real HTTP.

Repositories of datasets, models and Spaces with commits, branches, tags and pull requests; commits that refuse another
parent than the newest; tags that stay; private and gated repositories; users who may write here and not there; large
files behind a redirect, as in git LFS; connections that break in the middle; a log of what was asked.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from loopback_hub_answers import LARGE, PAGE, Answer

__all__ = ["LARGE", "PAGE", "READER_TOKEN", "TOKEN", "LoopbackHub", "Repository", "User"]

TOKEN = "hf_aTokenThatThisHubKnows"  # noqa: S105  # opens nothing but this
READER_TOKEN = "hf_aTokenThatMayOnlyRead"  # noqa: S105
FIRST_FILES = {".gitattributes": b"*.parquet filter=lfs diff=lfs merge=lfs -text\n"}
"""What the Hub puts into a repository when it makes it."""


@dataclass(frozen=True)
class User:
    """Who a token stands for."""

    name: str
    organizations: tuple[str, ...] | None = ()
    """None: every namespace is the user's."""
    writes: bool = True
    """Whether the token may be used to write."""

    def belongs_to(self, namespace: str) -> bool:
        return self.organizations is None or namespace in (self.name, *self.organizations)


@dataclass
class Repository:
    """Commits by their id, oldest first, each with all its files; branches, tags and pull requests."""

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    """The commit of every branch, tag and pull request (`refs/pr/1`)."""
    tags: set[str] = field(default_factory=set)
    """Which of the refs are tags."""
    titles: dict[str, str] = field(default_factory=dict)
    """First line of a commit's message."""
    private: bool = False
    gated: bool = False
    """Everybody sees the list of its files, nobody gets one."""
    pull_requests: list[str] = field(default_factory=list)
    """Titles; the first is number 1."""
    authors: list[str] = field(default_factory=list)
    """Of the pull requests."""
    closed: dict[int, str] = field(default_factory=dict)
    """Pull requests that are not open any more: `closed` or `merged`, by number."""
    info: dict[str, Any] = field(default_factory=dict)
    """Further fields of what the Hub says of it, such as `safetensors`."""

    def resolve(self, revision: str) -> str | None:
        """The commit of a branch, tag or commit."""
        commit = self.refs.get(revision, revision)
        return commit if commit in self.commits else None

    def add(self, files: dict[str, bytes], title: str, *refs: str) -> str:
        """A further commit with these files and no others, under these names."""
        content = json.dumps([len(self.commits), title, {path: sha1(data) for path, data in files.items()}])
        commit = sha1(content.encode())
        self.commits[commit] = dict(files)
        self.titles[commit] = title
        self.refs |= dict.fromkeys(refs, commit)
        return commit


class LoopbackHub:
    """Serves until closed."""

    def __init__(self) -> None:
        self.repositories: dict[tuple[str, str], Repository] = {}
        """By kind (`dataset`, `model`, `space`) and `ORG/NAME`."""
        self.users = {TOKEN: User("owner", None), READER_TOKEN: User("reader", None, writes=False)}
        """By token; any other token is refused."""
        self.uploaded: dict[str, bytes] = {}
        """Large files by SHA-256, whether or not a commit names them."""
        self.lock = threading.Lock()
        """Held while a repository changes."""
        self.asked: Counter[str] = Counter()
        """Calls by method and path; of large files, by the file's path."""
        self.ranges: list[str] = []
        """What `Range` headers asked for."""
        self.tokens: set[tuple[str, str]] = set()
        """Every token that was shown, after the first part of the path that it was shown to."""
        self.cut: dict[str, int] = {}
        """After so many bytes of this file the connection breaks, once."""
        self.broken: int | None = None
        """A status that every call gets."""
        self.failing: dict[str, int] = {}
        """A status for each call whose method and path, `POST /api/…`, hold this text."""
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                with suppress(BrokenPipeError, ConnectionResetError):
                    Answer(hub, self).give()

            do_HEAD = do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815  # the names that http.server calls

            def log_message(self, *_: object) -> None:
                pass

        self.server = _Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    @property
    def large_files(self) -> str:
        """Another host, as the real Hub has one for large files: it must see no token."""
        return f"http://localhost:{self.server.server_port}"

    def commit(self, kind: str, name: str, files: dict[str, bytes], *refs: str) -> str:
        """A new state of a repository: these files and no others, on `main` and under further names, tags but for
        pull requests."""
        repository = self.repositories.setdefault((kind, name), Repository())
        repository.tags |= {ref for ref in refs if not ref.startswith("refs/")}
        return repository.add(files, name, "main", *refs)

    def create(self, kind: str, name: str, *, private: bool = False) -> Repository:
        """A repository as the Hub makes it: with one commit and hardly a file."""
        self.repositories[kind, name] = found = Repository(private=private)
        found.add(FIRST_FILES, "initial commit", "main")
        return found

    def files(self, kind: str, name: str, revision: str = "main") -> dict[str, bytes]:
        """The files of a repository."""
        repository = self.repositories[kind, name]
        return repository.commits[repository.refs.get(revision, revision)]

    def environment(self, cache: Path, token: str | None = None) -> dict[str, str]:
        """What a process of its own needs to talk to this Hub and no other."""
        return {
            "HF_ENDPOINT": self.endpoint,
            "HF_HUB_OFFLINE": "0",
            "HF_DATASETS_OFFLINE": "0",
            "HF_EVALUATE_OFFLINE": "0",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_CACHE": str(cache),
            "HF_HOME": str(cache),
            "HF_DATASETS_CACHE": str(cache / "datasets"),
            "NO_PROXY": "127.0.0.1,localhost",
            **({"HF_TOKEN": token} if token else {}),
        }

    def connect(self, monkeypatch, cache: Path, token: str | None = None) -> None:
        """Makes this process talk to this Hub, with caches of its own, and with this token or none."""
        import datasets.config
        import evaluate.config
        from huggingface_hub import constants

        home = self.endpoint
        for module, changes in {
            constants: {
                "ENDPOINT": home,
                "HUGGINGFACE_CO_URL_TEMPLATE": home + "/{repo_id}/resolve/{revision}/{filename}",
                "HF_HUB_OFFLINE": False,
                "HF_HUB_DISABLE_XET": True,
                "HF_HUB_CACHE": str(cache),
            },
            datasets.config: {
                "HF_ENDPOINT": home,
                "HUB_DATASETS_URL": home + "/datasets/{repo_id}/resolve/{revision}/{path}",
                "HF_HUB_OFFLINE": False,
                "HF_DATASETS_OFFLINE": False,
                "HF_DATASETS_CACHE": cache / "datasets",
            },
            evaluate.config: {
                "HF_ENDPOINT": home,
                "HUB_EVALUATE_URL": home + "/spaces/{path}/resolve/{revision}/{name}",
                "HF_EVALUATE_OFFLINE": False,
                "HF_EVALUATE_CACHE": cache / "evaluate",
                "HF_METRICS_CACHE": cache / "metrics",
            },
        }.items():
            for name, value in changes.items():
                monkeypatch.setattr(module, name, value)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
        if token:
            monkeypatch.setenv("HF_TOKEN", token)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def sha1(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()

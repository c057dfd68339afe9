"""A Hub on this machine: what `huggingface_hub` asks of the real one to bring a snapshot, over real HTTP.

Repositories of datasets and models with commits, branches and tags; private and gated ones; large files behind a
redirect, as in git LFS; connections that break in the middle; a log of what was asked.
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
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "hf_aTokenThatThisHubKnows"  # noqa: S105  # opens nothing but this
LARGE = 50_000
"""Files from this size on are served from another address."""
PAGE = 3
"""Entries of a tree on one page."""


@dataclass
class Repository:
    """Commits by their id, oldest first, each with all its files; branches and tags."""

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    private: bool = False
    gated: bool = False
    """Everybody sees the list of its files, nobody gets one."""

    def resolve(self, revision: str) -> str | None:
        """The commit of a branch, tag or commit."""
        commit = self.refs.get(revision, revision)
        return commit if commit in self.commits else None


class LoopbackHub:
    """Serves until closed."""

    def __init__(self) -> None:
        self.repositories: dict[tuple[str, str], Repository] = {}
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
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                with suppress(BrokenPipeError, ConnectionResetError):
                    _Answer(hub, self).give()

            do_HEAD = do_GET  # noqa: N815  # the name that http.server calls

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def commit(self, kind: str, name: str, files: dict[str, bytes], *refs: str) -> str:
        """A new state of a repository: these files and no others, on `main` and under further names."""
        repository = self.repositories.setdefault((kind, name), Repository())
        content = json.dumps([len(repository.commits), name, {path: _sha1(data) for path, data in files.items()}])
        commit = _sha1(content.encode())
        repository.commits[commit] = dict(files)
        repository.refs |= dict.fromkeys(("main", *refs), commit)
        return commit

    def environment(self, cache: Path) -> dict[str, str]:
        """What a process of its own needs to talk to this Hub and no other."""
        return {
            "HF_ENDPOINT": self.endpoint,
            "HF_HUB_OFFLINE": "0",
            "HF_HUB_CACHE": str(cache),
            "HF_HOME": str(cache),
            "NO_PROXY": "127.0.0.1",
        }

    def connect(self, monkeypatch, cache: Path) -> None:
        """Makes this process talk to this Hub, with a cache of its own and no token."""
        from huggingface_hub import constants

        for name, value in {
            "ENDPOINT": self.endpoint,
            "HUGGINGFACE_CO_URL_TEMPLATE": self.endpoint + "/{repo_id}/resolve/{revision}/{filename}",
            "HF_HUB_OFFLINE": False,
            "HF_HUB_CACHE": str(cache),
        }.items():
            monkeypatch.setattr(constants, name, value)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class _Answer:
    """One call and what it gets."""

    def __init__(self, hub: LoopbackHub, handler: BaseHTTPRequestHandler) -> None:
        self.hub, self.handler = hub, handler
        parts = urlsplit(handler.path)
        self.path, self.query = unquote(parts.path), parse_qs(parts.query)
        self.allowed = handler.headers.get("Authorization") == f"Bearer {TOKEN}"
        if shown := handler.headers.get("Authorization"):
            hub.tokens.add((self.path.split("/")[1], shown.removeprefix("Bearer ")))

    def give(self) -> None:
        self.hub.asked[f"{self.handler.command} {self.path}"] += 1
        if self.hub.broken is not None:
            self.send(self.hub.broken)
        elif self.path.startswith("/large/"):
            self.large(*self.path.split("/", 3)[2:])
        elif self.path.startswith("/api/"):
            kind, organisation, name, what, rest = self.path.removeprefix("/api/").split("/", 4)
            self.api(kind.removesuffix("s"), f"{organisation}/{name}", what, rest)
        else:
            kind = "dataset" if self.path.startswith("/datasets/") else "model"
            name, _, rest = self.path.removeprefix("/datasets").lstrip("/").partition("/resolve/")
            # a revision with a slash in it comes as %2F, which the raw path still shows
            raw = urlsplit(self.handler.path).path.partition("/resolve/")[2]
            revision = unquote(raw.partition("/")[0])
            self.file(kind, name, revision, rest[len(revision) + 1 :])

    def api(self, kind: str, name: str, what: str, rest: str) -> None:
        found = self.repository(kind, name)
        if found is None:
            return
        commit = found.resolve(rest)
        if commit is None:
            self.refuse(404, "RevisionNotFound", f"Invalid rev id: {rest}")
        elif what == "revision":
            siblings = [{"rfilename": path} for path in found.commits[commit]]
            self.json({"id": name, "sha": commit, "private": found.private, "siblings": siblings})
        elif what == "tree":
            self.tree(found.commits[commit])
        else:
            self.refuse(404, None, f"no {what} here")

    def tree(self, files: dict[str, bytes]) -> None:
        """The files on pages, as the Hub lists large repositories."""
        folders = {path.rpartition("/")[0] for path in files} - {""}
        entries = [{"type": "directory", "path": path, "oid": _sha1(path.encode()), "size": 0} for path in folders]
        entries += [_entry(path, data) for path, data in files.items()]
        entries.sort(key=lambda entry: entry["path"])
        start = int(self.query.get("cursor", ["0"])[0])
        more = start + PAGE < len(entries)
        link = f'<{self.hub.endpoint}{self.path}?recursive=True&cursor={start + PAGE}>; rel="next"'
        self.json(entries[start : start + PAGE], **({"Link": link} if more else {}))

    def file(self, kind: str, name: str, revision: str, path: str) -> None:
        found = self.repository(kind, name)
        if found is None:
            return
        if found.gated and not self.allowed:
            self.refuse(403, "GatedRepo", f"Access to {kind} {name} is restricted.")
            return
        commit = found.resolve(revision)
        data = found.commits[commit].get(path) if commit else None
        if commit is None or data is None:
            self.refuse(404, "EntryNotFound" if commit else "RevisionNotFound", "not here")
            return
        headers = {"X-Repo-Commit": commit, "ETag": f'"{_sha1(data)}"', "Accept-Ranges": "bytes"}
        if len(data) >= LARGE:
            digest = hashlib.sha256(data).hexdigest()
            linked = {"X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(data))}
            # another host, as the real Hub has one for large files: it must see no token
            location = f"http://localhost:{self.hub.server.server_port}/large/{digest}/{path}"
            self.send(302, **headers, **linked, Location=location)
        else:
            self.data(path, data, headers)

    def large(self, digest: str, path: str) -> None:
        for repository in self.hub.repositories.values():
            for files in repository.commits.values():
                data = files.get(path, b"")
                if hashlib.sha256(data).hexdigest() == digest:
                    self.data(path, data, {"ETag": f'"{digest}"', "Accept-Ranges": "bytes"})
                    return
        self.refuse(404, None, "not here")

    def data(self, path: str, data: bytes, headers: dict[str, str]) -> None:
        wanted, status = self.handler.headers.get("Range"), 200
        whole = len(data)
        if wanted:
            self.hub.ranges.append(wanted)
            start = int(wanted.removeprefix("bytes=").partition("-")[0])
            data, status = data[start:], 206
            headers = headers | {"Content-Range": f"bytes {start}-{whole - 1}/{whole}"}
        cut = self.hub.cut.pop(path, None) if self.handler.command == "GET" else None
        self.send(status, data, cut, **headers)

    def repository(self, kind: str, name: str) -> Repository | None:
        """The repository, if there is one and the caller may know of it; else the answer is given."""
        found = self.hub.repositories.get((kind, name))
        if found is None or (found.private and not self.allowed):
            self.refuse(404 if self.allowed else 401, "RepoNotFound", "Repository not found")
            return None
        return found

    def refuse(self, status: int, code: str | None, message: str) -> None:
        headers = {"X-Error-Message": message} | ({"X-Error-Code": code} if code else {})
        self.send(status, json.dumps({"error": message}).encode(), **headers)

    def json(self, content: object, **headers: str) -> None:
        self.send(200, json.dumps(content).encode(), **headers, **{"Content-Type": "application/json"})

    def send(self, status: int, body: bytes = b"", cut: int | None = None, **headers: str) -> None:
        handler = self.handler
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), "Connection": "close", **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(body[:cut])
        # A kept connection would outlive `close`.
        handler.close_connection = True


def _entry(path: str, data: bytes) -> dict[str, object]:
    entry: dict[str, object] = {"type": "file", "path": path, "oid": _sha1(data), "size": len(data)}
    if len(data) >= LARGE:
        entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
    return entry


def _sha1(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()

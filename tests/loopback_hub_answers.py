"""What the Hub on this machine answers: one call at a time."""

from __future__ import annotations

import base64
import hashlib
import json
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

if TYPE_CHECKING:
    from loopback_hub import LoopbackHub, Repository, User

LARGE = 50_000
"""Files from this size on are served from another address."""
PAGE = 3
"""Entries of a tree on one page."""
KINDS = {"models": "model", "datasets": "dataset", "spaces": "space"}
PREFIXES = {"model": "", "dataset": "datasets/", "space": "spaces/"}
DAY = "2026-01-01T00:00:00.000Z"


class Refusal(Exception):  # noqa: N818  # what the Hub says, not what went wrong here
    """An answer that is not 200: its status, the Hub's code for it, and a message."""

    def __init__(self, status: int, code: str | None, message: str, **fields: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.fields = status, code, message, fields


class Answer:
    """One call and what it gets."""

    def __init__(self, hub: LoopbackHub, handler: BaseHTTPRequestHandler) -> None:
        self.hub, self.handler, self.method = hub, handler, handler.command
        parts = urlsplit(handler.path)
        self.raw, self.path, self.query = parts.path, unquote(parts.path), parse_qs(parts.query)
        self.token = (handler.headers.get("Authorization") or "").removeprefix("Bearer ") or None
        self.user: User | None = hub.users.get(self.token) if self.token else None
        if self.token:
            hub.tokens.add((self.path.split("/")[1], self.token))

    def give(self) -> None:
        body = self.body()
        self.hub.asked[f"{self.method} {self.path}"] += 1
        if self.hub.broken is not None:
            self.send(self.hub.broken)
            return
        try:
            self.admit()
            self.route(body)
        except Refusal as refusal:
            headers = {"X-Error-Message": refusal.message} | ({"X-Error-Code": refusal.code} if refusal.code else {})
            self.send(refusal.status, json.dumps({"error": refusal.message, **refusal.fields}).encode(), **headers)

    def admit(self) -> None:
        """Refuses what is out of order, and an unknown token, whatever is asked."""
        for text, status in self.hub.failing.items():
            if text in f"{self.method} {self.path}":
                raise Refusal(status, None, "out of order")
        if self.token and not self.user:
            raise Refusal(401, None, "Invalid credentials in Authorization header")

    def body(self) -> bytes:
        stream, headers = self.handler.rfile, self.handler.headers
        if headers.get("Transfer-Encoding") != "chunked":
            return stream.read(int(headers.get("Content-Length") or 0))
        chunks = []
        while size := int(stream.readline(), 16):
            chunks.append(stream.read(size))
            stream.readline()
        stream.readline()
        return b"".join(chunks)

    def route(self, body: bytes) -> None:
        """The part of the Hub that a path belongs to."""
        if self.path.startswith("/large/"):
            self.large(*self.path.split("/", 3)[2:])
        elif self.path.startswith("/upload/"):
            self.upload(self.path.removeprefix("/upload/"), body)
        elif self.path.endswith(".git/info/lfs/objects/batch"):
            self.batch(json.loads(body))
        elif self.path.startswith("/api/"):
            self.api(body)
        else:
            kind = next((kind for many, kind in KINDS.items() if self.path.startswith(f"/{many}/")), "model")
            name, _, rest = self.path[1:].removeprefix(PREFIXES[kind]).partition("/resolve/")
            # a revision with a slash in it comes as %2F, which the raw path still shows
            revision = unquote(self.raw.partition("/resolve/")[2].partition("/")[0])
            self.file(kind, name, revision, rest[len(revision) + 1 :])

    def api(self, body: bytes) -> None:
        content = json.loads(body) if body.startswith((b"{", b"[")) and b"\n" not in body.strip() else {}
        match self.path.removeprefix("/api/"):
            case "whoami-v2":
                self.who()
            case "validate-yaml":
                self.validate(content["content"])
            case "repos/create":
                self.create(content)
            case "repos/delete":
                kind, name = content.get("type", "model"), f"{content['organization']}/{content['name']}"
                self.writable(kind, name)
                del self.hub.repositories[kind, name]
                self.send(200)
            case _:
                # the raw path: a revision with a slash in it is one part
                parts = [unquote(part) for part in self.raw.split("/")[2:]]
                if len(parts) < 3 or parts[0] not in KINDS:
                    raise Refusal(404, None, f"no {self.path} here")
                self.of_repository(KINDS[parts[0]], "/".join(parts[1:3]), parts[3:], body, content)

    def of_repository(self, kind: str, name: str, rest: list[str], body: bytes, content: dict) -> None:
        """What is asked of one repository."""
        found = self.repository(kind, name)
        what, argument = (rest[0] if rest else "revision"), (rest[1] if len(rest) > 1 else "main")
        if self.method == "GET":
            self.read(found, name, what, argument, "/".join(rest[2:]))
        elif what == "paths-info":
            entries = _entries(found.commits[self.commit_of(found, argument)])
            wanted = parse_qs(body.decode()).get("paths", [])
            self.json([entry for entry in entries if entry["path"] in wanted])
        elif what == "preupload":
            self.may_commit(kind, name)
            self.preupload(found.commits[self.commit_of(found, argument)], content)
        elif what in {"commit", "tag", "branch"}:
            self.write(found, kind, name, what, argument, body)
        else:
            raise Refusal(404, None, f"no {self.method} {what} here")

    def read(self, found: Repository, name: str, what: str, revision: str, folder: str) -> None:
        match what:
            case "revision":
                self.info(found, name, revision)
            case "tree":
                self.tree(found.commits[self.commit_of(found, revision)], folder)
            case "refs":
                self.refs(found)
            case "commits":
                self.commits(found, self.commit_of(found, revision))
            case "discussions":
                self.pull_requests(found, name)
            case "auth-check":
                if revision == "write":
                    self.may_write(name)
                self.json({})
            case _:
                raise Refusal(404, None, f"no {what} here")

    def write(self, found: Repository, kind: str, name: str, what: str, argument: str, body: bytes) -> None:
        if what == "commit":
            self.may_commit(kind, name)
        else:
            self.may_write(name)
        with self.hub.lock:
            if what == "commit":
                self.commit(found, kind, name, argument, body)
            else:
                self.name(found, what, argument, json.loads(body or b"{}"))

    # Who asks, and what for.

    def repository(self, kind: str, name: str) -> Repository:
        """The repository, if there is one and the caller may know of it."""
        found = self.hub.repositories.get((kind, name))
        if found is None or (found.private and not self.member(name)):
            raise Refusal(404 if self.user else 401, "RepoNotFound", "Repository not found")
        return found

    def member(self, name: str) -> bool:
        return self.user is not None and self.user.belongs_to(name.partition("/")[0])

    def writable(self, kind: str, name: str) -> Repository:
        found = self.repository(kind, name)
        self.may_write(name)
        return found

    def may_write(self, name: str) -> None:
        if self.user is None:
            raise Refusal(401, None, "Invalid username or password.")
        if not (self.member(name) and self.user.writes):
            namespace = name.partition("/")[0]
            raise Refusal(403, None, f'You don\'t have the rights to write under the namespace "{namespace}"')

    def may_commit(self, kind: str, name: str) -> None:
        """Everybody who is known may open a pull request."""
        if "create_pr" in self.query and self.user is not None and self.user.writes:
            self.repository(kind, name)
        else:
            self.writable(kind, name)

    def who(self) -> None:
        if self.user is None:
            raise Refusal(401, None, "Invalid username or password.")
        role = "write" if self.user.writes else "read"
        orgs = [{"name": each, "type": "org"} for each in self.user.organizations or ()]
        auth = {"type": "access_token", "accessToken": {"displayName": "test", "role": role}}
        named = {"id": self.user.name, "name": self.user.name, "fullname": self.user.name, "avatarUrl": ""}
        self.json({"type": "user", **named, "orgs": orgs, "auth": auth})

    def validate(self, card: str) -> None:
        """Whether the front matter of a card is YAML."""
        try:
            yaml.safe_load(card.split("---")[1] if card.startswith("---") else "")
        except yaml.YAMLError as error:
            body = {"errors": [{"message": str(error)}], "warnings": []}
            self.send(400, json.dumps(body).encode())
        else:
            self.json({"errors": [], "warnings": []})

    def create(self, content: dict) -> None:
        kind = content.get("type", "model")
        namespace = content["organization"] or (self.user.name if self.user else "")
        name = f"{namespace}/{content['name']}"
        self.may_write(name)
        url = f"{self.hub.endpoint}/{PREFIXES[kind]}{name}"
        with self.hub.lock:
            if (kind, name) in self.hub.repositories:
                raise Refusal(409, None, f"You already created this {kind} repo", url=url)
            self.hub.create(kind, name, private=content.get("visibility") == "private")
        self.json({"url": url, "name": name, "id": name})

    # What is there.

    def commit_of(self, found: Repository, revision: str) -> str:
        commit = found.resolve(revision)
        if commit is None:
            raise Refusal(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return commit

    def info(self, found: Repository, name: str, revision: str) -> None:
        commit = self.commit_of(found, revision)
        files = found.commits[commit]
        siblings = [_sibling(path, data, blobs="blobs" in self.query) for path, data in files.items()]
        card = files.get("README.md", b"").decode(errors="replace")
        metadata = yaml.safe_load(card.split("---")[1]) if card.startswith("---") else None
        facts = {"id": name, "sha": commit, "private": found.private, "gated": "auto" if found.gated else False}
        facts |= {"author": name.partition("/")[0], "lastModified": DAY, "createdAt": DAY, "tags": []}
        self.json({**facts, "siblings": siblings, **({"cardData": metadata} if metadata else {}), **found.info})

    def tree(self, files: dict[str, bytes], folder: str) -> None:
        """The files of a folder on pages, as the Hub lists large repositories."""
        entries = _entries(files)
        if folder:
            if not any(entry["path"] == folder and entry["type"] == "directory" for entry in entries):
                raise Refusal(404, "EntryNotFound", f"{folder} does not exist")
            entries = [entry for entry in entries if str(entry["path"]).startswith(folder + "/")]
        if self.query.get("recursive", ["False"])[0].lower() not in {"true", "1"}:
            depth = folder.count("/") + 1 if folder else 0
            entries = [entry for entry in entries if str(entry["path"]).count("/") == depth]
        start = int(self.query.get("cursor", ["0"])[0])
        more = start + PAGE < len(entries)
        again = "".join(f"{name}={self.query[name][0]}&" for name in ("recursive", "expand") if name in self.query)
        link = f'<{self.hub.endpoint}{self.raw}?{again}cursor={start + PAGE}>; rel="next"'
        self.json(entries[start : start + PAGE], **({"Link": link} if more else {}))

    def refs(self, found: Repository) -> None:
        kinds: dict[str, list[dict[str, str]]] = {"branches": [], "tags": [], "converts": [], "pullRequests": []}
        for name, commit in list(found.refs.items()):
            kind, ref = "branches", f"refs/heads/{name}"
            if name in found.tags:
                kind, ref = "tags", f"refs/tags/{name}"
            elif name.startswith("refs/"):
                kind, ref = "pullRequests", name
            kinds[kind].append({"name": name, "ref": ref, "targetCommit": commit})
        self.json(kinds)

    def commits(self, found: Repository, newest: str) -> None:
        ids = list(found.commits)
        ids = ids[: ids.index(newest) + 1][::-1]
        author = {"user": "owner"}
        self.json([
            {"id": each, "title": found.titles[each], "message": "", "date": DAY, "authors": [author]} for each in ids
        ])  # fmt: skip

    def pull_requests(self, found: Repository, name: str) -> None:
        """All of them, or those of one author, on one page."""
        shared = {"isPullRequest": True, "createdAt": DAY}
        shared["repo"] = {"name": name, "type": KINDS[self.path.split("/")[2]]}
        made = enumerate(zip(found.pull_requests, found.authors, strict=True), 1)
        listed = [
            {"title": title, "num": n, "author": {"name": author}, "status": found.closed.get(n, "open"), **shared}
            for n, (title, author) in made
            if author in self.query.get("author", [author])
        ]
        self.json({"count": len(listed), "start": 0, "discussions": listed})

    # Files that go out.

    def file(self, kind: str, name: str, revision: str, path: str) -> None:
        found = self.repository(kind, name)
        if found.gated and not self.member(name):
            raise Refusal(403, "GatedRepo", f"Access to {kind} {name} is restricted.")
        commit = self.commit_of(found, revision)
        data = found.commits[commit].get(path)
        if data is None:
            raise Refusal(404, "EntryNotFound", "not here")
        headers = {"X-Repo-Commit": commit, "ETag": f'"{git_id(data)}"', "Accept-Ranges": "bytes"}
        if len(data) >= LARGE:
            digest = sha256(data)
            linked = {"X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(data))}
            self.send(302, **headers, **linked, Location=f"{self.hub.large_files}/large/{digest}/{path}")
        else:
            self.data(path, data, headers)

    def large(self, digest: str, path: str) -> None:
        for repository in list(self.hub.repositories.values()):
            for files in list(repository.commits.values()):
                data = files.get(path, b"")
                if sha256(data) == digest:
                    self.data(path, data, {"ETag": f'"{digest}"', "Accept-Ranges": "bytes"})
                    return
        raise Refusal(404, None, "not here")

    def data(self, path: str, data: bytes, headers: dict[str, str]) -> None:
        wanted, status = self.handler.headers.get("Range"), 200
        whole = len(data)
        if wanted:
            self.hub.ranges.append(wanted)
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            start, end = int(first), min(int(last) + 1 if last else whole, whole)
            if start >= whole:
                self.send(416, **{"Content-Range": f"bytes */{whole}"})
                return
            data, status = data[start:end], 206
            headers = headers | {"Content-Range": f"bytes {start}-{end - 1}/{whole}"}
        cut = self.hub.cut.pop(path, None) if self.method == "GET" else None
        self.send(status, data, cut, **headers)

    # Files that come in.

    def preupload(self, files: dict[str, bytes], content: dict) -> None:
        """How each file is to be sent, and what is there under its name."""
        answers = []
        for each in content["files"]:
            sample, held = base64.b64decode(each["sample"]), files.get(each["path"])
            large = each["size"] >= LARGE or b"\0" in sample
            answer = {"path": each["path"], "uploadMode": "lfs" if large else "regular", "shouldIgnore": False}
            if held is not None:
                answer["oid"] = sha256(held) if large else git_id(held)
            answers.append(answer)
        self.json({"files": answers})

    def batch(self, content: dict) -> None:
        """Where to send large files to; nowhere, if they are here."""
        many = self.path[1:].partition("/")[0]
        kind = KINDS.get(many, "model")
        if self.user is None or not self.user.writes:
            self.writable(kind, self.path[1:].removeprefix(PREFIXES[kind]).partition(".git/")[0])
        objects = []
        for each in content["objects"]:
            place = {"upload": {"href": f"{self.hub.large_files}/upload/{each['oid']}"}}
            known = each["oid"] in self.hub.uploaded
            objects.append({"oid": each["oid"], "size": each["size"], **({} if known else {"actions": place})})
        self.json({"transfer": "basic", "objects": objects})

    def upload(self, digest: str, body: bytes) -> None:
        if sha256(body) != digest:
            raise Refusal(400, None, "the content is not what was announced")
        self.hub.uploaded[digest] = body
        self.send(200)

    def commit(self, found: Repository, kind: str, name: str, revision: str, body: bytes) -> None:
        """One commit, whole or not at all; refused where the branch is not at the parent that the caller knows."""
        lines = [json.loads(line) for line in body.splitlines()]
        header, opens = lines[0]["value"], "create_pr" in self.query
        head = self.commit_of(found, revision)
        if revision in found.tags or revision not in found.refs:
            raise Refusal(404, "RevisionNotFound", f"{revision} is no branch")
        parent = header.get("parentCommit", head)
        if not opens and not head.startswith(parent):
            raise Refusal(412, None, "A commit has happened since. Please refresh and try again.")
        base = next((commit for commit in found.commits if commit.startswith(parent)), None)
        if base is None:
            raise Refusal(404, "RevisionNotFound", f"Invalid rev id: {parent}")
        files = dict(found.commits[base])
        for line in lines[1:]:
            self.change(files, line["key"], line["value"])
        if opens:
            found.pull_requests.append(header["summary"])
            found.authors.append(self.user.name if self.user else "")
            revision = f"refs/pr/{len(found.pull_requests)}"
        commit = found.add(files, header["summary"], revision)
        url = f"{self.hub.endpoint}/{PREFIXES[kind]}{name}"
        answer = {"success": True, "commitOid": commit, "commitUrl": f"{url}/commit/{commit}"}
        self.json(answer | ({"pullRequestUrl": f"{url}/discussions/{len(found.pull_requests)}"} if opens else {}))

    def change(self, files: dict[str, bytes], operation: str, value: dict) -> None:
        """One operation of a commit, done to its files."""
        path = value["path"]
        match operation:
            case "file":
                files[path] = base64.b64decode(value["content"])
            case "lfsFile" if value["oid"] in self.hub.uploaded:
                files[path] = self.hub.uploaded[value["oid"]]
            case "lfsFile":
                raise Refusal(400, None, f"the content of {path} was not uploaded")
            case "deletedFile" if path in files:
                del files[path]
            case "deletedFolder" if any(each.startswith(path.rstrip("/") + "/") for each in files):
                for each in [each for each in files if each.startswith(path.rstrip("/") + "/")]:
                    del files[each]
            case _:
                raise Refusal(404, "EntryNotFound", "A file with this name doesn't exist")

    def name(self, found: Repository, what: str, argument: str, content: dict) -> None:
        """Makes or removes a branch or a tag; one that is there is not moved."""
        if self.method == "DELETE":
            if argument not in found.refs or (argument in found.tags) != (what == "tag"):
                raise Refusal(404, "RevisionNotFound", f"Invalid rev id: {argument}")
            del found.refs[argument]
            found.tags.discard(argument)
        else:
            name, start = (content["tag"], argument) if what == "tag" else (argument, content.get("startingPoint"))
            if name in found.refs:
                raise Refusal(409, None, f"{what.title()} reference exists already")
            found.refs[name] = self.commit_of(found, start or "main")
            if what == "tag":
                found.tags.add(name)
        self.send(200)

    # The answer itself.

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


def _entries(files: dict[str, bytes]) -> list[dict[str, object]]:
    """Files and all folders above them, by path."""
    folders = {path.rsplit("/", depth)[0] for path in files for depth in range(1, path.count("/") + 1)}
    entries: list[dict[str, object]] = [
        {"type": "directory", "path": path, "oid": git_id(path.encode()), "size": 0} for path in folders
    ]
    for path, data in files.items():
        entries.append({"type": "file", "path": path, "oid": git_id(data), "size": len(data)})
        if len(data) >= LARGE:
            entries[-1]["lfs"] = {"oid": sha256(data), "size": len(data), "pointerSize": 130}
    return sorted(entries, key=lambda entry: str(entry["path"]))


def _sibling(path: str, data: bytes, *, blobs: bool) -> dict[str, object]:
    if not blobs:
        return {"rfilename": path}
    lfs = {"sha256": sha256(data), "size": len(data), "pointerSize": 130}
    further = {"lfs": lfs} if len(data) >= LARGE else {}
    return {"rfilename": path, "size": len(data), "blobId": git_id(data), **further}


def git_id(data: bytes) -> str:
    """What git calls a file with this content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

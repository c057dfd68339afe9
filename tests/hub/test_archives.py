"""Archives on the Hub: brought once for every commit, unpacked, and nothing else."""

from __future__ import annotations

import io
import os
import tarfile
from contextlib import nullcontext

import pytest

from loopback_hub import LoopbackHub
from truegap.errors import UserError
from truegap.hub.archives import bring, unpack


def silent(title: str, total: int):
    return nullcontext(lambda _: None)


def packed(members: dict[str, bytes | None], mode: str = "w:gz", **changes: object) -> bytes:
    """A tar with these files, and folders where there is no content; `changes` are made to every member."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content or b"")
            member.type = tarfile.REGTYPE if content is not None else tarfile.DIRTYPE
            for key, value in changes.items():
                setattr(member, key, value)
            tar.addfile(member, io.BytesIO(content or b""))
    return stream.getvalue()


@pytest.fixture
def hub(monkeypatch, tmp_path):
    hub = LoopbackHub()
    hub.connect(monkeypatch, tmp_path / "hub-cache")
    yield hub
    hub.close()


def test_an_archive_is_unpacked_once_for_every_commit(hub, tmp_path):
    photos = packed({"photos/": None, "photos/a.png": b"old", "./photos/b.png": b"b"})
    old = hub.commit("dataset", "org/set", {"photos.tar.gz": photos, "meta/q.json": b"[1]", "run.py": b"evil"}, "v1")
    found = bring("org/set@v1", tmp_path / "archives", silent)
    assert found.commit == old
    files = sorted(path.relative_to(found.folder).as_posix() for path in found.folder.rglob("*") if path.is_file())
    assert files == [".lock", "meta/q.json", "photos/photos/a.png", "photos/photos/b.png"]
    assert (found.folder / "photos/photos/a.png").read_bytes() == b"old"
    # the same again touches nothing
    (found.folder / "photos/photos/a.png").write_bytes(b"marked")
    assert bring(f"org/set@{old}", tmp_path / "archives", silent) == found
    assert (found.folder / "photos/photos/a.png").read_bytes() == b"marked"
    # and another commit is another folder
    hub.commit("dataset", "org/set", {"photos.tar.gz": packed({"photos/a.png": b"new"}), "meta/q.json": b"[2]"})
    newer = bring("org/set", tmp_path / "archives", silent)
    assert (newer.folder / "photos/photos/a.png").read_bytes() == b"new"
    assert (newer.folder / "meta/q.json").read_bytes() == b"[2]"


def test_an_interrupted_unpacking_goes_on(hub, tmp_path):
    hub.commit("dataset", "org/set", {"a.tar": packed({"1.png": b"1"}, "w"), "b.tar": packed({"2.png": b"2"}, "w")})
    steps = []

    def interrupt(title, total):
        def advance(step):
            steps.append(step)
            raise KeyboardInterrupt

        return nullcontext(advance)

    with pytest.raises(KeyboardInterrupt):
        bring("org/set", tmp_path / "archives", interrupt)
    [folder] = (tmp_path / "archives/org--set").iterdir()
    # what was begun and not ended is done anew
    (folder / ".b.part").mkdir()
    (folder / ".b.part/half.png").write_bytes(b"")
    found = bring("org/set", tmp_path / "archives", silent)
    assert sorted(path.relative_to(folder).as_posix() for path in found.folder.rglob("*.png")) == ["a/1.png", "b/2.png"]


def test_a_folder_is_taken_as_it_is(hub, tmp_path):
    assert bring(str(tmp_path), tmp_path / "archives", silent).folder == tmp_path
    assert not (tmp_path / "archives").exists()


def test_two_files_for_one_place_are_refused(hub, tmp_path):
    hub.commit("dataset", "org/set", {"a.tar": packed({"1.png": b"1"}, "w"), "a/2.png": b"2"})
    with pytest.raises(UserError, match=r"holds both a\.tar and another a"):
        bring("org/set", tmp_path / "archives", silent)


@pytest.mark.parametrize(
    "name", ["../out.png", "/out.png", "a/../../out.png", "./../out.png", "a\\..\\out.png", "C:out.png"]
)
def test_a_member_that_leads_out_is_refused(tmp_path, name):
    path = tmp_path / "hostile.tar.gz"
    path.write_bytes(packed({"fine.png": b"1", name: b"2"}))
    with pytest.raises(UserError, match=r"hostile\.tar\.gz: the member .* leads out of its folder"):
        unpack(path, tmp_path / "deep/er/out")
    assert not list(tmp_path.rglob("*out.png"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_a_member_that_is_no_file_is_refused(tmp_path, kind):
    path = tmp_path / "hostile.tar"
    path.write_bytes(packed({"a.png": b""}, "w", type=kind, linkname=str(tmp_path)))
    with pytest.raises(UserError, match=r"the member 'a\.png' is no file"):
        unpack(path, tmp_path / "out")
    assert not os.path.lexists(tmp_path / "out/a.png")


def test_what_unpacks_to_far_more_than_its_size_is_refused(tmp_path):
    path = tmp_path / "bomb.tar.gz"
    path.write_bytes(packed({f"{number}.png": bytes(5_000_000) for number in range(6)}))
    assert path.stat().st_size < 50_000
    with pytest.raises(UserError, match="unpacks to more than 100 times its size"):
        unpack(path, tmp_path / "out")


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda _: b"no tar at all", lambda _: b""])
def test_a_damaged_archive_is_one_line(tmp_path, damage):
    path = tmp_path / "a.tar.gz"
    path.write_bytes(damage(packed({f"{number}.png": os.urandom(50_000) for number in range(3)})))
    with pytest.raises(UserError, match=r"a\.tar\.gz: cannot be unpacked \(.*\): remove .*a\.tar\.gz") as caught:
        unpack(path, tmp_path / "out")
    assert "\n" not in str(caught.value)

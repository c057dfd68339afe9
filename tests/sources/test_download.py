from __future__ import annotations

import hashlib
import json
import socket
import subprocess
import sys
import threading
import time

import pytest
from pydantic import ValidationError

from image_host import IMAGE, ImageHost
from truegap.sources._fetch import Fetcher, Refused, _is_public
from truegap.sources.download import download
from truegap.sources.download_options import DownloadOptions
from truegap.sources.download_record import MANIFEST, read_manifest, verified
from truegap.sources.visogender import fetch

QUICK = {"private_hosts": ("127.0.0.1",), "backoff": 0.01, "timeout": 60.0, "max_bytes": 100_000}


@pytest.fixture
def host():
    host = ImageHost()
    yield host
    host.close()


def one(host, folder, path, **options):
    """The outcome of one address."""
    report = download({"a": host.url(path)}, folder, DownloadOptions(**QUICK | options))
    return report.outcomes["a"]


def test_an_image_is_stored_under_its_id_and_recorded(host, tmp_path):
    report = download({"OO_1": host.url("/image?x=1&y=2")}, tmp_path / "images", DownloadOptions(**QUICK))
    [outcome] = report.outcomes.values()
    assert (tmp_path / "images/OO_1.jpg").read_bytes() == IMAGE
    assert (outcome.file, outcome.n_bytes, outcome.width, outcome.height) == ("OO_1.jpg", len(IMAGE), 60, 40)
    assert outcome.sha256 == hashlib.sha256(IMAGE).hexdigest()
    assert report.summary() == "1 images fetched, 0 were there already, 0 missing"
    assert host.headers["User-Agent"].startswith("truegap")
    assert host.headers["Host"] == host.url("/").split("/")[2]
    assert sorted(path.name for path in (tmp_path / "images").iterdir()) == ["OO_1.jpg", MANIFEST]


def test_the_extension_is_that_of_the_content(host, tmp_path):
    assert one(host, tmp_path, "/png/photo.jpg").file == "a.png"


@pytest.mark.parametrize(
    ("path", "reason", "lasting"),
    [
        ("/gone", "status 404", True),
        ("/html", "a web page, no image", True),
        ("/text", "not a JPEG, PNG or WebP image", True),
        ("/huge", "image file is too large", True),
        ("/huge-unsaid", "image file is too large", True),
        ("/gzip", "answer is compressed", True),
        ("/half", "image is damaged or cut off", False),
        ("/cut-off", "answer was cut off (2 tries)", False),
        ("/broken", "status 503 (2 tries)", False),
        ("/loop", "more than 5 redirects", True),
        ("/to-private", "host is in a private network", True),
        ("/to-this-machine", "host is in a private network", True),
        ("/to-file", "address is not http or https", True),
    ],
)
def test_what_is_no_image_is_reported_and_leaves_no_file(host, tmp_path, path, reason, lasting):
    outcome = one(host, tmp_path, path, attempts=2)
    assert (outcome.reason, outcome.lasting, outcome.file) == (reason, lasting, "")
    assert [each.name for each in tmp_path.iterdir()] == [MANIFEST]


def test_an_image_of_too_many_pixels_is_refused(host, tmp_path):
    outcome = one(host, tmp_path, "/bomb", max_pixels=1_000_000, max_bytes=10_000_000)
    assert outcome.reason == "image has too many pixels"


@pytest.mark.parametrize("path", ["/broken-once", "/to/to/image/1"])
def test_an_image_that_comes_in_the_end_is_stored(host, tmp_path, path):
    assert one(host, tmp_path, path).file == "a.jpg"


def test_a_host_that_asks_for_a_pause_gets_it(host, tmp_path):
    outcome = one(host, tmp_path, "/busy-once")
    first, second = host.times["/busy-once"]
    assert outcome.file == "a.jpg"
    assert second - first >= 1


def test_a_pause_holds_for_every_address_of_the_host(host):
    with Fetcher(DownloadOptions(**QUICK), threading.Event()) as fetcher:
        other = threading.Thread(target=fetcher.fetch, args=(host.url("/busy-once"),))
        other.start()
        while not fetcher._free_at:
            time.sleep(0.01)
        fetcher.fetch(host.url("/image"))
        other.join()
    assert host.times["/image"][0] - host.times["/busy-once"][0] >= 1


class Waits(threading.Event):
    """Notes how long each pause is to be, and ends it at once."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def wait(self, timeout=None):
        self.asked.append(timeout)
        return False


def test_a_pause_is_no_longer_than_the_limit(host):
    # given a host that asks for an hour; then both the next try and the host's next caller wait for the limit only
    waits = Waits()
    options = DownloadOptions(**QUICK | {"attempts": 2, "longest_wait": 7.0})
    with Fetcher(options, waits) as fetcher, pytest.raises(Refused, match=r"^status 429 \(2 tries\)$"):
        fetcher.fetch(host.url("/busy"))
    assert host.calls["/busy"] == 2
    assert [wait for wait in waits.asked if wait] == [7.0, 7.0]


def test_an_answer_that_does_not_come_is_given_up(host, tmp_path):
    outcome = one(host, tmp_path, "/silent", attempts=1, timeout=0.2)
    assert outcome.reason == "no answer in time (1 tries)"


def test_an_answer_that_trickles_is_given_up(host, tmp_path):
    outcome = one(host, tmp_path, "/drip", attempts=1, deadline=0.3)
    assert outcome.reason == "answer took too long (1 tries)"


def test_a_host_that_nobody_answers_at_is_tried_again_next_time(tmp_path):
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))  # and does not listen; nobody else gets the port meanwhile
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/"
        report = download({"a": url}, tmp_path, DownloadOptions(**QUICK | {"attempts": 1}))
    assert report.outcomes["a"].reason == "no connection (1 tries)"
    assert not report.outcomes["a"].lasting


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.1:1/x.jpg", "host is in a private network"),
        ("http://localhost/x.jpg", "host is in a private network"),
        ("http://[::1]/x.jpg", "host is in a private network"),
        ("http://10.0.0.1/x.jpg", "host is in a private network"),
        ("http://0.0.0.0/x.jpg", "host is in a private network"),
        ("http://2130706433/x.jpg", "host is in a private network"),
        ("http://[::ffff:127.0.0.1]/x.jpg", "host is in a private network"),
        ("http://user:pass@example.org/x.jpg", "address holds a user name or password"),
        ("ftp://example.org/x.jpg", "address is not http or https"),
        ("file:///etc/passwd", "address is not http or https"),
        ("http:///x.jpg", "address is malformed"),
        ("http://example.org:99999/", "address is malformed"),
        ("http://[::1/x.jpg", "address is malformed"),
        ("http://exa\nmple.org/", "address is malformed"),
        ("", "address is not http or https"),
    ],
)
def test_an_address_that_may_not_be_asked_is_refused(tmp_path, url, reason):
    report = download({"a": url}, tmp_path, DownloadOptions(attempts=1, backoff=0))
    assert report.outcomes["a"].reason == reason
    assert report.outcomes["a"].lasting


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.215.14", True),
        ("2606:2800:21f:cb07::1", True),
        ("192.168.0.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("224.0.0.1", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::10.0.0.1", False),
        ("2002:7f00:1::", False),
    ],
)
def test_private_addresses_are_known_in_every_form(address, public):
    assert _is_public(address) is public


@pytest.mark.parametrize("image", ["../a", "a/b", "", "a\x00"])
def test_an_id_that_is_no_file_name_is_refused(host, tmp_path, image):
    report = download({image: host.url("/image")}, tmp_path / "images", DownloadOptions(**QUICK))
    assert report.outcomes[image].reason == "id cannot be the name of a file"
    assert not host.calls
    assert [path.name for path in tmp_path.iterdir()] == ["images"]


def test_a_second_run_fetches_what_failed_for_now_and_nothing_else(host, tmp_path):
    urls = {"a": host.url("/image/a"), "b": host.url("/gone"), "c": host.url("/broken-once")}
    options = DownloadOptions(**QUICK | {"attempts": 1})
    first = download(urls, tmp_path, options)
    assert first.summary().splitlines() == [
        "1 images fetched, 0 were there already, 2 missing",
        "missing: 1 (status 404)",
        "missing: 1 (status 500 (1 tries))",
    ]
    second = download(urls, tmp_path, options)
    assert (second.fetched, second.kept, [each.id for each in second.missing]) == (1, 1, ["b"])
    assert host.calls == {"/image/a": 1, "/gone": 1, "/broken-once": 2}
    # dead addresses are asked again on request
    download(urls, tmp_path, DownloadOptions(**QUICK, retry_dead=True))
    assert host.calls["/gone"] == 2


def test_an_altered_file_or_another_address_is_fetched_again(host, tmp_path):
    options = DownloadOptions(**QUICK)
    download({"a": host.url("/image/1")}, tmp_path, options)
    (tmp_path / "a.jpg").write_bytes(b"altered")
    assert verified(tmp_path) == {"a": "image file differs from what was downloaded"}
    download({"a": host.url("/image/1")}, tmp_path, options)
    assert (tmp_path / "a.jpg").read_bytes() == IMAGE
    assert verified(tmp_path) == {}
    download({"a": host.url("/png")}, tmp_path, options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", MANIFEST]


def test_a_torn_or_hostile_line_of_the_manifest_counts_for_nothing(host, tmp_path):
    lines = [
        '{"id": "x", "url": "u", "file": "../../etc/passwd"}',
        '{"id": "y"}',
        '{"id": "z", "url": "u", "surprise": 1}',
        "[" * 5000,
        "nonsense",
        '{"id": "a", "url": "torn',
    ]
    (tmp_path / MANIFEST).write_text("\n".join(lines))
    assert read_manifest(tmp_path) == {}
    assert download({"a": host.url("/image")}, tmp_path, DownloadOptions(**QUICK)).fetched == 1
    assert list(read_manifest(tmp_path)) == ["a"]


def test_a_host_gets_no_more_calls_at_once_than_allowed(host, tmp_path):
    urls = {f"{n}": host.url(f"/slow-image/{n}") for n in range(12)}
    done = []
    report = download(urls, tmp_path, DownloadOptions(**QUICK, per_host=3), done.append)
    assert report.fetched == 12
    assert 1 < host.most_at_once <= 3
    assert sum(done) == 12


def test_a_killed_run_goes_on_where_it_stopped(host, tmp_path):
    # given a run in a process of its own, killed after some images, while the host holds the others back
    urls = {f"{n:02d}": host.url(f"/image/{n}" if n < 6 else f"/held/{n}") for n in range(30)}
    code = (
        "import json, sys; from pathlib import Path\n"
        "from truegap.sources.download import download\n"
        "from truegap.sources.download_options import DownloadOptions\n"
        "options = DownloadOptions(private_hosts=('127.0.0.1',), workers=2)\n"
        "download(json.loads(sys.argv[1]), Path(sys.argv[2]), options)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, json.dumps(urls), str(tmp_path)])
    while len(list(tmp_path.glob("*.jpg"))) < 4:
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    before = len(read_manifest(tmp_path))
    assert 3 <= before <= 6
    # then the same call fetches the rest
    host.released.set()
    report = download(urls, tmp_path, DownloadOptions(**QUICK))
    assert (report.kept, report.fetched, report.missing) == (before, 30 - before, [])
    assert not list(tmp_path.glob(".*.part"))


def test_an_interrupted_run_stops_soon_and_keeps_what_it_has(host, tmp_path):
    # given three images and a host that holds back 197 others, for each of which the run would wait two seconds
    urls = {f"{n:03d}": host.url(f"/image/{n}" if n < 3 else f"/held/{n}") for n in range(200)}

    def interrupt(_):
        if len(read_manifest(tmp_path)) >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(urls, tmp_path, DownloadOptions(**QUICK | {"timeout": 2.0}), interrupt)
    # then it gave up on what was under way and began nothing more
    assert len(host.calls) < 100
    assert 2 <= sum(bool(each.file) for each in read_manifest(tmp_path).values()) <= 3


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"timeout": 0}, {"max_bytes": 0}, {"speed": 1}])
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(ValidationError):
        DownloadOptions(**wrong)


def test_a_refusal_says_whether_it_lasts():
    assert Refused("x").lasting
    assert not Refused("x", lasting=False).lasting


def test_visogender_fetches_its_tables_addresses(host, archive):
    row = {
        "IDX": "OO_1",
        "Sector": "s",
        "Specialisation": "p",
        "Occupation": "nurse",
        "Object": "desk",
        "URL type": host.url("/image"),
        "Occupation_perceived_gender": "feminine",
    }
    archive.table("OO_Visogender_1.tsv", [row, row | {"IDX": "OO_2", "URL type": "NA"}], delimiter="\t")
    report = fetch(archive.top, DownloadOptions(**QUICK))
    assert [each.reason for each in report.missing] == ["address is not http or https"]
    from truegap import sources

    [example] = sources.read("visogender", archive.top).examples
    assert example.image.read() == IMAGE

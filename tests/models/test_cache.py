"""Embeddings are computed once, whatever happens in between."""

from __future__ import annotations

import hashlib
import io
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from truegap.errors import UserError
from truegap.models import EmbeddingCache, load_model
from truegap.resources import cache_folder

COLOURS = """
import time
import numpy as np
from truegap.models import DualEncoder
from truegap.results.records import ModelRecord

class Colours(DualEncoder):
    def __init__(self, name="colours", fits=10**9, pause=0.0, hangs=10**9):
        self.name, self.fits, self.pause, self.hangs, self.batches = name, fits, pause, hangs, []

    def record(self):
        return ModelRecord(spec=self.name, name=self.name, adapter="test", kind="dual-encoder",
                           content=self.name, parameters=0)

    def preprocess(self, image):
        return np.asarray(image, np.float32).mean(axis=(0, 1)) + 1

    def image_features(self, inputs):
        if len(inputs) > self.fits:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
        time.sleep(self.pause if len(self.batches) < self.hangs else 600)
        self.batches.append(len(inputs))
        return np.stack(inputs)

    def text_features(self, texts):
        self.batches.append(len(texts))
        return np.array([[len(text), 1, 2] for text in texts], np.float32)
"""
space: dict = {}
exec(COLOURS, space)  # noqa: S102 (the same class runs in a child process)
Colours = space["Colours"]


def png(number: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 6), (number % 251, number // 251, 40)).save(buffer, "PNG")
    return buffer.getvalue()


def item(number: int) -> tuple[str, bytes]:
    data = png(number)
    return hashlib.sha256(data).hexdigest(), data


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "deep" / "embeddings.sqlite"


def test_features_come_in_the_items_order_each_distinct_image_once(path):
    encoder = Colours()
    items = [item(n) for n in (3, 1, 3, 2, 1, 3)]
    steps: list[int] = []

    with EmbeddingCache(path) as cache:
        result = cache.embed_images(encoder, iter(items), batch_size=2, progress=steps.append)

    expected = encoder.encode_images([Image.open(io.BytesIO(data)) for _, data in items])
    np.testing.assert_array_equal(result.features, expected)
    assert (result.cached, result.computed, sum(steps)) == (0, 3, 3)
    assert encoder.batches[:2] == [2, 1]


def test_a_second_run_reads_the_same_bytes_and_computes_nothing(path, tiny, pictures):
    # Given a real encoder, and what a first run left
    def source(picture):
        buffer = io.BytesIO()
        picture.save(buffer, "PNG")
        return hashlib.sha256(buffer.getvalue()).hexdigest(), buffer.getvalue

    items = [source(p) for p in pictures]
    with EmbeddingCache(path) as cache:
        first = cache.embed_images(load_model(str(tiny("clip")), device="cpu"), items, batch_size=3)

    with EmbeddingCache(path) as cache:
        encoder = load_model(str(tiny("clip")), device="cpu")
        second = cache.embed_images(encoder, items[::-1] + items)

    assert second.features.tobytes() == np.concatenate([first.features[::-1], first.features]).tobytes()
    assert (first.cached, first.computed, second.cached, second.computed) == (0, 7, 7, 0)
    np.testing.assert_allclose(first.features, encoder.encode_images(pictures), atol=1e-5)


def test_texts_are_computed_once_too_each_distinct_one(path):
    # Given what a first run left of texts and of an image
    encoder, texts = Colours(), ["a man", "a woman", "a man", "\ud800"]
    with EmbeddingCache(path) as cache:
        first = cache.embed_texts(encoder, texts)
        cache.embed_images(encoder, [item(1)])
    assert encoder.batches == [3, 1]

    # when a second run asks for them in another order, and for one more
    with EmbeddingCache(path) as cache:
        again = cache.embed_texts(encoder, ["a child", *texts[::-1]])

    # then that one alone is computed, and all are what the model says
    assert encoder.batches == [3, 1, 1]
    assert again[1:].tobytes() == first[::-1].tobytes()
    np.testing.assert_array_equal(again, Colours().encode_texts(["a child", *texts[::-1]]))
    with EmbeddingCache(path) as cache, pytest.raises(ValueError, match="nothing"):
        cache.embed_texts(encoder, [])


def test_texts_of_two_models_do_not_mix(path):
    one, two = Colours("one"), Colours("two")
    with EmbeddingCache(path) as cache:
        cache.embed_texts(one, ["a man"])
        cache.embed_texts(two, ["a man"])
    assert (one.batches, two.batches) == ([1], [1])


def test_models_and_configurations_do_not_mix(path):
    with EmbeddingCache(path) as cache:
        cache.embed_images(Colours("one"), [item(1)])
        other = cache.embed_images(Colours("two"), [item(1)])
        new = cache.embed_images(Colours("one"), [item(1), item(2)])

    assert (other.cached, other.computed) == (0, 1)
    assert (new.cached, new.computed) == (1, 1)


def test_no_items_and_images_instead_of_bytes(path):
    with EmbeddingCache(path) as cache:
        assert cache.embed_images(Colours(), []).features.shape == (0, 0)
        given = cache.embed_images(Colours(), [("ab" * 32, lambda: Image.new("RGB", (2, 2)))])
    assert given.computed == 1


def test_memory_that_runs_out_halves_the_batch(path):
    encoder = Colours(fits=3)

    with EmbeddingCache(path) as cache:
        result = cache.embed_images(encoder, [item(n) for n in range(20)], batch_size=16)
        assert result.computed == 20
        # 16 and 8 and 4 did not fit; from then on 2 is the size, without further failures
        assert encoder.batches == [2] * 10
        with pytest.raises(UserError, match="colours: a single input does not fit"):
            cache.embed_images(Colours(fits=0), [item(n) for n in range(30)])


def test_other_errors_of_a_model_pass(path):
    class Broken(Colours):
        def image_features(self, _inputs):
            raise RuntimeError("index out of range")

    with EmbeddingCache(path) as cache, pytest.raises(RuntimeError, match="index out of range"):
        cache.embed_images(Broken(), [item(1)])


CHILD = COLOURS + textwrap.dedent("""
    import hashlib, io, sys
    from pathlib import Path
    from PIL import Image
    from truegap.models import EmbeddingCache

    def png(number):
        buffer = io.BytesIO()
        Image.new("RGB", (8, 6), (number % 251, number // 251, 40)).save(buffer, "PNG")
        return buffer.getvalue()

    items = [(hashlib.sha256(data).hexdigest(), data) for data in map(png, range(int(sys.argv[2])))]
    encoder = Colours(pause=float(sys.argv[3]), hangs=int(sys.argv[4]))
    done = 0
    def show(n):
        global done
        done += n
        print(done, flush=True)
    with EmbeddingCache(Path(sys.argv[1])) as cache:
        result = cache.embed_images(encoder, items, batch_size=4, progress=show)
    print("end", result.cached, result.computed, len(items), flush=True)
""")


def child(path: Path, n: int, pause: float, hangs: int = 10**9) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, str(path), str(n), str(pause), str(hangs)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_killed_run_costs_at_most_its_batch(path):
    # Given a process that is killed in its seventh batch
    process = child(path, 60, 0.01, hangs=6)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 20:
            break
    process.send_signal(signal.SIGKILL)
    rest = [int(line) for line in process.stdout.read().split()]
    process.wait()
    finished = max([20, *rest])
    assert finished in (20, 24)

    # When the same is asked again
    with EmbeddingCache(path) as cache:
        result = cache.embed_images(Colours(), [item(n) for n in range(60)], batch_size=4)

    # Then only the rest is computed, and all is right
    assert finished <= result.cached <= finished + 4
    assert result.cached + result.computed == 60
    expected = Colours().encode_images([Image.open(io.BytesIO(png(n))) for n in range(60)])
    np.testing.assert_array_equal(result.features, expected)


def test_processes_share_a_new_cache(path):
    # Given three processes that create and fill the same file at once
    processes = [child(path, 40, 0.01) for _ in range(3)]

    ends = [process.communicate(timeout=600)[0].splitlines()[-1].split() for process in processes]

    assert [process.returncode for process in processes] == [0, 0, 0]
    assert all(int(cached) + int(computed) == 40 for _, cached, computed, _ in ends)
    rows = sqlite3.connect(path).execute("SELECT count(*), count(DISTINCT image) FROM embeddings").fetchone()
    assert rows == (40, 40)


def test_rows_of_a_faster_process_stand(path):
    # Given another process that stores a row between this one's look-up and its commit
    class Slow(Colours):
        def image_features(self, inputs):
            with EmbeddingCache(path) as other:
                other._store(hashlib.sha256(b"colours").digest(), {item(1)[0]: np.array([0, 0, 1], np.float32)})
            return super().image_features(inputs)

    with EmbeddingCache(path) as cache:
        found = cache.embed_images(Slow(), [item(1), item(2)]).features

    np.testing.assert_array_equal(found[0], [0, 0, 1])
    assert not np.array_equal(found[1], [0, 0, 1])


def test_decoding_runs_ahead_of_the_forward_pass(path):
    # Given images whose reading is noted, and forward passes that wait for reading of the next batch
    read: list[int] = []
    lock = threading.Lock()

    def source(number):
        def give() -> bytes:
            with lock:
                read.append(number)
            return png(number)

        return item(number)[0], give

    class Waiting(Colours):
        def image_features(self, inputs):
            limit = time.monotonic() + 600
            while len(read) < min(40, 4 * (len(self.batches) + 2)) and time.monotonic() < limit:
                time.sleep(0.001)
            self.ahead = [*getattr(self, "ahead", []), len(read)]
            return super().image_features(inputs)

    encoder = Waiting()
    with EmbeddingCache(path) as cache:
        cache.embed_images(encoder, [source(n) for n in range(40)], batch_size=4, workers=2)

    batches = np.arange(1, 11)
    assert (np.array(encoder.ahead) >= np.minimum(40, 4 * (batches + 1))).all()  # the next batch was read meanwhile
    assert (np.array(encoder.ahead) <= 4 * batches + 2 * 4 + 2).all()  # and memory stays bounded


def test_what_is_done_meanwhile_has_images_decoded_beside_it(path):
    decoding = threading.Event()
    encoder, told = Colours(), []

    def source() -> bytes:
        decoding.set()
        return png(1)

    def meanwhile():
        told.append((decoding.wait(60), list(encoder.batches)))

    with EmbeddingCache(path) as cache:
        first = cache.embed_images(encoder, [(item(1)[0], source), item(2)], meanwhile=meanwhile)
        again = cache.embed_images(encoder, [item(1)], meanwhile=meanwhile)
    assert (first.computed, again.computed) == (2, 0)
    assert told == [(True, []), (True, [2])]


@pytest.mark.parametrize(("device", "threads"), [("cpu", 3), ("cuda:0", 4), (None, 4)])
def test_forward_passes_on_the_processor_keep_a_core(device, threads, monkeypatch):
    import truegap.models.cache as module
    from truegap.results.records import Compute

    encoder = Colours()
    encoder.compute = device and Compute(device=device, device_name="", dtype="float32")
    counts = []
    for found in (4, 1, 64):
        monkeypatch.setattr(module, "cores", lambda found=found: found)
        counts.append(module._decoders(encoder))
    assert counts == [threads, 1, module.MOST_DECODERS]


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"junk", "cannot be decoded"), (png(5)[:-30], "cannot be decoded"), (None, "do not have this SHA-256")],
)
def test_a_bad_image_is_named(path, data, message):
    sha, good = item(1)
    bad = (hashlib.sha256(data).hexdigest(), data) if data else (sha, png(2))

    with EmbeddingCache(path) as cache, pytest.raises(UserError, match=f"image {bad[0][:12]}: .*{message}"):
        cache.embed_images(Colours(), [item(9), bad])
    assert good


def test_a_source_may_say_what_is_wrong_itself(path):
    def absent() -> bytes:
        raise UserError("row 17 of original has no image")

    with EmbeddingCache(path) as cache, pytest.raises(UserError, match="row 17"):
        cache.embed_images(Colours(), [("00" * 32, absent)])


def test_a_damaged_file_gives_one_line(path):
    # Given a file that is no database, and a database with rows that are cut off
    path.parent.mkdir()
    path.write_bytes(b"this is not a database, " * 100)
    with pytest.raises(UserError, match=r"embedding cache .*damaged.*delete it") as error:
        EmbeddingCache(path)
    assert "\n" not in str(error.value)

    path.unlink()
    with EmbeddingCache(path) as cache:
        cache.embed_images(Colours(), [item(1), item(2)])
        cache._db.execute("UPDATE embeddings SET vector = x'0102'")
        with pytest.raises(UserError, match="a row is cut off"):
            cache.embed_images(Colours(), [item(1)])
        cache._db.execute("UPDATE embeddings SET vector = x'01020304'")
        with pytest.raises(UserError, match="rows of different lengths"):
            cache.embed_images(Colours(), [item(1), item(3)])


def test_damaged_pages_give_one_line(path):
    with EmbeddingCache(path) as cache:
        cache.embed_images(Colours(), [item(n) for n in range(400)])
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(bytes(data))

    with EmbeddingCache(path) as cache, pytest.raises(UserError, match=r"damaged.*delete it"):
        cache.embed_images(Colours(), [item(n) for n in range(400)])


def test_a_cache_that_cannot_be_used_says_so(path, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="set TRUEGAP_CACHE"):
        EmbeddingCache(tmp_path / "file" / "embeddings.sqlite")
    with pytest.raises(UserError, match="unable to open database file; set TRUEGAP_CACHE"):
        EmbeddingCache(tmp_path)
    with EmbeddingCache(path) as cache:
        cache._db.execute("PRAGMA user_version = 99")
    with pytest.raises(UserError, match="version 99 is not 1"):
        EmbeddingCache(path)


def test_the_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("TRUEGAP_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("TRUEGAP_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "truegap"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "truegap"

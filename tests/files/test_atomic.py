import multiprocessing

import pytest

from truegap.files.atomic import write_bytes, written_aside


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "file"
    write_bytes(path, b"old")
    # given a reader that holds the old file open by another name
    (tmp_path / "reader").hardlink_to(path)
    write_bytes(path, b"new")
    assert (path.read_bytes(), (tmp_path / "reader").read_bytes()) == (b"new", b"old")
    (tmp_path / "reader").unlink()

    def fail():
        with written_aside(path) as aside:
            aside.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_bytes() == b"new"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_writer_that_writes_nothing_is_an_error_and_leaves_the_old_file(tmp_path):
    write_bytes(tmp_path / "file", b"old")
    with pytest.raises(FileNotFoundError), written_aside(tmp_path / "file"):
        pass
    assert (tmp_path / "file").read_bytes() == b"old"


def _write(path, number, together):
    together.wait()
    for _ in range(20):
        write_bytes(path, bytes([number]) * 100_000)


def test_writers_at_once_leave_one_whole_file(tmp_path):
    fork = multiprocessing.get_context("fork")
    together = fork.Barrier(4)
    writers = [fork.Process(target=_write, args=(tmp_path / "file", number, together)) for number in range(4)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    assert [each.exitcode for each in writers] == [0] * 4
    left = (tmp_path / "file").read_bytes()
    assert (len(left), len(set(left))) == (100_000, 1)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]

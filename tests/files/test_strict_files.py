from __future__ import annotations

import pytest

from truegap.errors import UserError
from truegap.files.json_arrays import parse, read_list, read_members
from truegap.files.tables import rows, words
from truegap.files.values import is_plain_path, number, shown


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1.5", 1.5),
        (2, 2.0),
        ("nan", None),
        ("inf", None),
        ("1e12", None),
        ("", None),
        ("x", None),
        (True, None),
        (None, None),
    ],
)
def test_numbers_are_finite_and_believable(value, expected):
    assert number(value) == expected


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("a.jpg", True),
        ("a/b c.jpg", True),
        ("a/../b", False),
        ("/a", False),
        ("a//b", False),
        ("a\\b", False),
        (None, False),
    ],
)
def test_paths_stay_in_their_folder(path, plain):
    assert is_plain_path(path) is plain


def test_words_of_the_archive_are_short_and_printable_in_reasons():
    assert shown("\x1b[31m" + "x" * 100) == "[31m" + "x" * 36
    assert shown(" ") == shown(None) == "empty"


@pytest.mark.parametrize("text", ['{"x": 1}', "{'x': 1}", ' {"x": 1} '])
def test_cells_of_json_and_of_python_are_read(text):
    assert parse(text) == {"x": 1}


@pytest.mark.parametrize("text", ["", "nan", "{", '{"x": 1} y', "__import__('os')", "[" * 100_000])
def test_cells_that_are_neither_are_an_error(text):
    with pytest.raises(ValueError, match="not JSON"):
        parse(text)


@pytest.mark.parametrize(("reader", "other"), [(read_list, b"{}"), (read_members, b"[]")])
def test_lists_and_objects_are_not_taken_for_each_other(tmp_path, reader, other):
    path = tmp_path / "x.json"
    path.write_bytes(other)
    with pytest.raises(UserError, match=r"x\.json: holds no JSON (list|object) at its top level"):
        reader(path, lambda *_: None)


def test_members_and_elements_come_in_the_files_order_doubles_too(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"b": [1], "a": {"x": NaN}, "b": 2}')
    seen = []
    read_members(path, lambda key, value: seen.append((key, repr(value))))
    assert seen == [("b", "[1]"), ("a", "{'x': nan}"), ("b", "2")]
    path.write_text("[1, [2], {}]")
    seen.clear()
    read_list(path, seen.append)
    assert seen == [1, [2], {}]
    path.write_text("[ ]")
    read_list(path, seen.append)
    path.write_text("{ }")
    read_members(path, lambda *_: seen.append(1))
    assert len(seen) == 3


def test_rows_say_where_they_stand_and_short_ones_have_empty_cells(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbfa, b ,c\r\n1,"x\ny"\r\n\r\n2,3,4,5\r\n')
    first, second = rows(path, ["a", "b"])
    assert (first, first.where) == ({"a": "1", "b": "x\ny", "c": ""}, "t.csv line 3")
    assert (second, second.where) == ({"a": "2", "b": "3", "c": "4"}, "t.csv line 5")
    assert next(rows(path, ["p"], header=["p", "q"])) == {"p": "a", "q": "b"}


def test_words_skip_blank_lines(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("a  b\n\n c\t1\n")
    assert list(words(path)) == [(1, ["a", "b"]), (3, ["c", "1"])]

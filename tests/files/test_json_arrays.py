from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from truegap.errors import UserError
from truegap.files import json_arrays as _json
from truegap.files.json_arrays import read_arrays, read_object

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def elements(path, *names):
    found = {name: [] for name in names}
    read_arrays(path, {name: found[name].append for name in names})
    return found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.dictionaries(st.sampled_from(["a", "b", "c"]), st.lists(VALUES, max_size=6) | st.none()),
    st.integers(1, 9),
    st.sampled_from([None, 1, "\t"]),
)
def test_elements_are_those_of_the_whole_file_at_any_window(tmp_path, monkeypatch, tables, chunk, indent):
    # given a window of a few characters, so that every value is cut somewhere
    monkeypatch.setattr(_json, "_CHUNK", chunk)
    path = tmp_path / "tables.json"
    path.write_text(json.dumps(tables, indent=indent, ensure_ascii=False), encoding="utf-8")
    lists = [name for name, value in tables.items() if value is not None]
    assert elements(path, *lists) == {name: tables[name] for name in lists}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("[]", "no JSON object"),
        ("[1, 2]", "no JSON object"),
        ('"images"', "no JSON object"),
        ("{}", "has no 'a'"),
        ('{"b": []}', "has no 'a'"),
        ('{"a": {}}', "'a' is not a list"),
        ('{"a": [1, 2', "not valid JSON near a\\[1\\]: the end of the file"),
        ('{"a": [1, 2,]}', "not valid JSON near a\\[2\\]"),
        ('{"a": [1 2]}', "not valid JSON near a\\[0\\]: '2'"),
        ('{"a": [{"x": 1,}]}', "not valid JSON near a\\[0\\]"),
        ('{"a": ["open]}', "not valid JSON near a\\[0\\]"),
        ('{"a": []} trailing', "after the end"),
        ('{"a": []', "the end of the file"),
        ("{1: []}", "not valid JSON"),
        ('{"a": [' + "[" * 100_000, "not usable near a\\[0\\]"),
        ('{"a": [' + "1" * 10_000 + "]}", "not usable near a\\[0\\]"),
        ("<html>", "no JSON object"),
    ],
)
def test_a_malformed_file_is_one_line_with_its_name(tmp_path, text, message):
    path = tmp_path / "tables.json"
    path.write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        elements(path, "a")
    assert "tables.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_encodings_are_one_line(tmp_path):
    path = tmp_path / "tables.json"
    path.write_bytes('{"a": ["é"]}'.encode("latin-1"))
    with pytest.raises(UserError, match=r"tables\.json: .*UTF-8"):
        elements(path, "a")
    path.write_bytes(b"\xef\xbb\xbf" + '{"a": ["é"]}'.encode())
    assert elements(path, "a") == {"a": ["é"]}


def test_an_absent_file_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"absent\.json: cannot be read"):
        elements(tmp_path / "absent.json", "a")


def test_an_endless_value_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(_json, "_CHUNK", 10)
    monkeypatch.setattr(_json, "_LARGEST", 100)
    path = tmp_path / "tables.json"
    path.write_text('{"a": ["' + "x" * 10_000 + '"]}')
    with pytest.raises(UserError, match="million characters"):
        elements(path, "a")


def test_an_object_is_made_smaller_as_it_is_read(tmp_path, monkeypatch):
    # given a value twice as long as the window, and a key that comes again
    monkeypatch.setattr(_json, "_CHUNK", 16)
    path = tmp_path / "rows.json"
    path.write_text(
        '{"n": 1, "rows": 5, "rows": {"ids": ["a"], "none": {}, "of": {"x": [1, 2], "y": [3]}}, "of": {"x": 4}}'
    )
    seen = []

    def shrink(where, value):
        seen.append(where)
        return len(value) if where[:-1] == ("rows", "of") else value

    # when the members of two objects are read one at a time
    found = read_object(path, shrink, {("rows",), ("rows", "of")})
    # then each is given once, with its place
    assert found == {"n": 1, "rows": {"ids": ["a"], "none": {}, "of": {"x": 2, "y": 1}}, "of": {"x": 4}}
    assert seen[2:] == [("rows", "ids"), ("rows", "none"), ("rows", "of", "x"), ("rows", "of", "y"), ("of",)]
    path.write_text('{"rows": {"of": {"x": [1]')
    with pytest.raises(UserError, match=r"rows.json: not valid JSON near .*the end of the file"):
        read_object(path, shrink, {("rows",), ("rows", "of")})

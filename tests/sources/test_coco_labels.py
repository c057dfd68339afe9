from __future__ import annotations

import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truegap.errors import UserError
from truegap.sources._labels import from_annotators, from_captions, parse_list

NAN = float("nan")


@settings(deadline=None)
@given(st.lists(st.sampled_from(["Light", "Dark", "Unsure", NAN])))
def test_a_list_as_python_prints_it_is_read(items):
    assert parse_list(repr(items)) == [None if item is NAN else item for item in items]


@settings(deadline=None)
@given(st.lists(st.floats(0, 1)))
def test_numbers_come_back_as_they_were_printed(numbers):
    assert [float(item or "nan") for item in parse_list(repr(numbers))] == numbers


@settings(deadline=None)
@given(st.text(alphabet="['\",nan Light]0.5\\()", max_size=20))
def test_any_text_is_a_list_or_none(text):
    items = parse_list(text)
    assert items is None or text.strip()[0] + text.strip()[-1] == "[]"


@pytest.mark.parametrize(
    "text", ["", "nan", "[", "['Light'", "['Light' 'Dark']", "['Light',]", "[__import__('os')]", "[[1], [2]]", "{'a'}"]
)
def test_what_is_no_list_is_none(text):
    assert parse_list(text) is None


def captions(tmp_path, *texts):
    path = tmp_path / "captions_val2017.json"
    path.write_text(json.dumps({"annotations": [{"image_id": 1, "id": n, "caption": t} for n, t in enumerate(texts)]}))
    return from_captions([path], ["woman", "she"], ["man", "he"]).of(1)


@pytest.mark.parametrize(
    ("texts", "gender", "reason"),
    [
        (["A dog.", "The WOMAN'S dog."], "woman", ""),
        (["A man rides."], "man", ""),
        (["A woman.", "A man."], None, "a woman and a man"),
        (["A snowman in Manhattan there."], None, "neither"),
        (["A man-made lake."], None, "neither"),
        (["Woman, riding"], "woman", ""),
        ([""], None, "neither"),
        ([], None, "no caption"),
    ],
)
def test_words_of_any_caption_name_the_gender(tmp_path, texts, gender, reason):
    label = captions(tmp_path, *texts)
    assert label.gender == gender
    assert reason in label.reason
    assert bool(label.reason) == (gender is None)


def test_captions_that_cannot_be_used_are_counted(tmp_path):
    path = tmp_path / "captions_val2017.json"
    broken = [
        {"image_id": 1},
        {"caption": "a man"},
        "a man",
        {"image_id": 1, "caption": 5},
        {"image_id": "x", "caption": ""},
    ]
    path.write_text(json.dumps({"annotations": [*broken, {"image_id": "1", "caption": "a man"}]}))
    labels = from_captions([path], ["woman"], ["man"])
    assert labels.of(1).gender == "man"
    assert labels.repairs == {"caption without text or image id left out": 5}


TABLE = """id,skin,ratio,bb_skin,bb_gender,split
101,['Light'],[0.23647540983606558],Light,Female,train
102,"['Light', nan]","[0.046, 0.045]",Light,Both,train
103,"['Light', 'Unsure', 'Light']","[0.10, 0.12, 0.16]",Light,Male,val
104,[nan],[0.02],,Unsure,train
105,['Dark'],[0.31],Dark,Male,train
106,"['Unsure', 'Unsure']","[0.05, 0.04]",Unsure,,train
107,broken,[0.1],Light,Male,train
108,['Light'],[0.1],Light,Male,train
108,['Light'],[0.1],Light,Female,train
109,['Light'],[0.1],Light,Robot,train
x,['Light'],[0.1],Light,Male,train
110
"""


def test_the_annotators_table_is_read_by_its_columns(tmp_path):
    (tmp_path / "a.csv").write_text("image,gender\n1,Male\n")
    (tmp_path / "any_name.csv").write_text(TABLE)
    labels = from_annotators(tmp_path)
    found = {image: (label.gender, label.persons, label.reason) for image, label in labels.by_image.items()}
    assert found == {
        101: ("woman", 1, ""),
        102: (None, None, "annotators: Both"),
        103: ("man", 3, ""),
        104: (None, None, "annotators: Unsure"),
        105: ("man", 1, ""),
        106: (None, None, "annotators: no label"),
        107: ("man", None, ""),
        108: (None, None, "annotators: two rows for one image"),
        109: (None, None, "annotators: a label that is not known"),
        110: (None, None, "annotators: no label"),
    }
    assert labels.of(111).reason == "not in the annotators' table"
    assert labels.repairs == {"row of the annotators' table without an image id left out": 1}
    assert labels.origin["labels_file"] == "any_name.csv"
    assert len(labels.origin["labels_sha256"]) == 64


def test_other_orders_and_missing_columns_are_accepted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('\ufeffbb_gender, id,ratio\nMale,7,"[0.1, nan]"\n', encoding="utf-8")
    assert from_annotators(path).of(7).persons == 2
    path.write_text("bb_gender,id\nMale,7\n")
    assert not from_annotators(path).counts_persons


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no table with the columns id and bb_gender"),
        (b"gender,skin,worker_id\nMale,1,3\n", "no table with the columns id and bb_gender"),
        (pickle.dumps([{"image_id": 1, "gender": [1, 0]}], protocol=0), "no table with the columns"),
        (pickle.dumps([{"image_id": 1, "gender": [1, 0]}], protocol=5), "not a table"),
        ("id,bb_gender\n1,é\n".encode("latin-1"), "not UTF-8"),
        (b"id,bb_gender\n", "no row with an image id"),
        (b'id,bb_gender\n1,"' + b"x" * 200_000, "not a table"),
    ],
)
def test_what_is_no_table_is_one_line(tmp_path, content, message):
    path = tmp_path / "labels.csv"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        from_annotators(path)
    assert "labels.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_without_the_table_is_one_line(tmp_path):
    with pytest.raises(UserError, match="no CSV file"):
        from_annotators(tmp_path)
    with pytest.raises(UserError, match="cannot be read"):
        from_annotators(tmp_path / "absent.csv")

from __future__ import annotations

import json

import pytest

from truegap.errors import UserError
from truegap.regions._phrases import chunks, name_of, prompt
from truegap.regions.vocabulary import read_vocabulary


def test_coco_has_its_eighty_classes_under_cocos_numbers():
    coco = read_vocabulary("coco")
    assert len(coco.names) == 80
    assert [coco.by_number[number] for number in (1, 13, 62, 90)] == ["person", "stop sign", "chair", "toothbrush"]
    assert 12 not in coco.by_number


def test_everyday_names_are_distinct_and_begin_with_a_person():
    everyday = read_vocabulary("everyday")
    assert len(everyday.names) == len(everyday.by_number) > 300
    assert everyday.names[0] == "person"


def test_text_json_list_and_annotation_file_mean_the_same(tmp_path):
    (tmp_path / "a.txt").write_text("person\n\nbottle_cap\n")
    entries = [{"id": 1, "name": "person"}, {"id": 3, "name": "bottle_cap", "frequency": "r"}]
    (tmp_path / "b.json").write_text(json.dumps(entries))
    (tmp_path / "c.json").write_text(json.dumps({"images": [], "categories": entries}))
    read = [read_vocabulary(tmp_path / name) for name in ("a.txt", "b.json", "c.json")]
    assert [each.by_number for each in read] == [{1: "person", 3: "bottle cap"}] * 3
    assert len({each.record()["sha256"] for each in read}) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no name"),
        (b"\n \n", "holds no name"),
        (b"caf\xe9", "not UTF-8"),
        (b"x" * 61, "entry 1 is not a name of at most 60 characters"),
        (b"cup\nbe\x07ll", "entry 2 is not a name"),
        (b"{", "begins like JSON and is none"),
        (b'{"names": []}', "has no list 'categories'"),
        (b'[{"id": "1", "name": "cup"}]', "category 0 lacks a whole-number 'id'"),
        (b'[{"id": true, "name": "cup"}]', "category 0 lacks a whole-number 'id'"),
        (b'[{"id": 1, "name": "cup"}, {"id": 1, "name": "mug"}]', "number 1 stands for two names"),
        (b"cup\n" * 5001, "more than 5000 names"),
        (b"[" * 100_000, "begins like JSON and is none"),
    ],
)
def test_a_file_that_is_no_vocabulary_is_refused(tmp_path, content, message):
    path = tmp_path / "words"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message) as refused:
        read_vocabulary(path)
    assert "\n" not in str(refused.value)


def test_a_missing_file_names_what_there_is():
    with pytest.raises(UserError, match="vocabulary lvis: no such file, and not one of everyday, coco"):
        read_vocabulary("lvis")


def test_prompts_hold_no_dots_and_no_asides():
    assert [prompt(name) for name in ("T.V.", "ice_cream (food)", "Wine Glass", "(a)")] == [
        "tv",
        "ice cream",
        "wine glass",
        "(a)",
    ]


def test_chunks_hold_every_name_and_lead_with_the_first():
    names = ["person", *(f"thing {i}" for i in range(10))]
    groups = list(chunks(names, lambda part: len(part) <= 4))
    assert all(group[0] == "person" and len(group) <= 4 for group in groups)
    assert [name for group in groups for name in group[1:]] == names[1:]
    assert list(chunks(["person"], lambda _part: False)) == [["person"]]


@pytest.mark.parametrize(
    ("phrase", "name"),
    [
        ("wine glass", "wine glass"),
        ("ball", "sports ball"),
        ("sports . ball", "sports ball"),
        ("glass", "wine glass"),
        ("dog cat", "dog"),
        ("zebra", ""),
        ("", ""),
    ],
)
def test_phrases_become_names_again(phrase, name):
    assert name_of(phrase, ["person", "dog", "cat", "wine glass", "sports ball"]) == name

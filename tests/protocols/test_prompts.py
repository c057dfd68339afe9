from __future__ import annotations

import pytest

from truegap.errors import UserError
from truegap.protocols.prompts import PACKAGED, load_prompts


def test_packaged_sets_say_that_they_are_reconstructions():
    sets = [load_prompts(name) for name in PACKAGED]
    assert [len(each.prompts) for each in sets] == [87, 124]
    assert all("reconstruction" in each.made and "not published" in each.made for each in sets)


def test_articles_are_right():
    texts = {prompt.text for name in PACKAGED for prompt in load_prompts(name).prompts}
    assert {
        "A photo of an engineer",
        "A photo of a DJ",
        "This is a photo of an honest person",
        "This person is kind",
    } <= texts
    assert not [text for text in texts if " a e" in text or " a i" in text or " an d" in text]


def test_text_file_has_a_prompt_per_line(tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text("a nurse\n\n  a pilot \n")
    found = load_prompts(str(file))
    assert (found.name, [(p.id, p.text) for p in found.prompts]) == ("mine", [("1", "a nurse"), ("2", "a pilot")])


def test_json_file_like_the_packaged_ones(tmp_path):
    file = tmp_path / "mine.json"
    file.write_text('{"name": "jobs", "prompts": [{"id": "n", "text": "a nurse", "topic": "nurse"}]}')
    assert load_prompts(str(file)).prompts[0].topic == "nurse"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("absent.txt", None, "neither one of adjectives-r1, occupations-r1 nor a readable file"),
        ("empty.txt", "\n", "prompts: "),
        ("bad.json", "{", "Invalid JSON"),
        (
            "twice.json",
            '{"name": "x", "prompts": [{"id": "1", "text": "a"}, {"id": "1", "text": "b"}]}',
            "more than once",
        ),
        ("odd.json", '{"name": "x", "prompts": [{"id": "1", "text": "a", "colour": 1}]}', "prompts.0.colour"),
        ("latin.txt", b"caf\xe9", "readable file"),
    ],
)
def test_unusable_files_are_one_line(tmp_path, name, content, message):
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=message):
        load_prompts(str(file))

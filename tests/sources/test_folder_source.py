from __future__ import annotations

import json

import pytest

from truegap import sources
from truegap.errors import UserError
from truegap.schema import FilterStep


def write(archive, *rows, photos=True):
    columns = dict.fromkeys(name for row in rows for name in row)
    archive.table("metadata.csv", [{name: row.get(name, "") for name in columns} for row in rows])
    if photos:
        for row in rows:
            if ".." not in row["file_name"] and not row["file_name"].startswith("/"):
                archive.photo(row["file_name"])
    return archive.top


def test_a_row_becomes_an_example_with_boxes_groups_and_terms(archive, outcome):
    row = {
        "file_name": "a/b.jpg",
        "gender": "Female",
        "person_boxes": "[[10, 5, 20, 30], [0, 0, 5, 5]]",
        "objects": json.dumps([{"label": "cup", "box": [40, 5, 10, 10]}]),
        "license": "CC BY 4.0",
        "attribution": "me",
        "split": "train",
        "skin_tone": "dark",
        "age": "",
    }
    selection = outcome("folder", write(archive, row))[0]
    [example] = selection.examples
    assert (example.image_id, example.gender, example.split, example.size) == ("a/b.jpg", "woman", "train", (40, 60))
    assert [(each.id, each.label, each.box) for each in (*example.persons, *example.objects)] == [
        (1, "person", (10, 5, 20, 30)),
        (2, "person", (0, 0, 5, 5)),
        (3, "cup", (40, 5, 10, 10)),
    ]
    assert (example.source, example.license, example.attribution) == ("a/b.jpg", "CC BY 4.0", "me")
    assert example.extra == {"skin_tone": "dark", "age": ""}
    assert selection.options == {"metadata": "metadata.csv", "groups": ["skin_tone", "age"]}


def test_two_columns_are_enough(archive, outcome):
    folder = write(archive, {"file_name": "a.png", "gender": "man"}, {"file_name": "b.webp", "gender": "masculine"})
    archive.photo("a.png", fmt="PNG")
    archive.photo("b.webp", fmt="WEBP")
    first, second = outcome("folder", folder)[0].examples
    assert (first.persons, first.objects, first.license, first.extra, first.split) == ((), (), "unknown", {}, "test")
    assert second.gender == "man"


def test_groups_are_chosen_by_name(archive, outcome):
    folder = write(archive, {"file_name": "a.jpg", "gender": "man", "age": "1", "tone": "2"})
    assert outcome("folder", folder, groups="tone")[0].examples[0].extra == {"tone": "2"}
    assert outcome("folder", folder, groups="")[0].examples[0].extra == {}
    with pytest.raises(UserError, match="has no group size; there are: age, tone"):
        sources.read("folder", folder, groups="size")


@pytest.mark.parametrize("name", ["perturbation", "image", "a b", "x<y>", "9lives", "é"])
def test_a_group_cannot_have_the_name_of_a_column_or_none(archive, name):
    folder = write(archive, {"file_name": "a.jpg", "gender": "man", name: "1"})
    with pytest.raises(UserError, match=r"metadata\.csv: a column cannot be called .*; rename it, or choose by groups"):
        sources.read("folder", folder)


def test_every_row_that_is_not_used_has_its_reason(archive, outcome):
    rows = [
        {"file_name": "a.jpg", "gender": "woman"},
        {"file_name": "a.jpg", "gender": "man"},
        {"file_name": "b.jpg", "gender": "non-binary"},
        {"file_name": "c.jpg", "gender": ""},
        {"file_name": "../d.jpg", "gender": "man"},
        {"file_name": "/etc/passwd", "gender": "man"},
        {"file_name": "e.jpg", "gender": "man", "split": "dev"},
        {"file_name": "f.jpg", "gender": "man"},
        {"file_name": "", "gender": "man"},
        {"file_name": "g.jpg", "gender": "man", "image_id": "G"},
    ]
    folder = write(archive, *[row for row in rows if row["file_name"]])
    columns = ["file_name", "gender", "split", "image_id"]
    archive.table("metadata.csv", [{name: row.get(name, "") for name in columns} for row in rows])
    (folder / "f.jpg").unlink()
    selection, reasons, _ = outcome("folder", folder)
    assert [example.image_id for example in selection.examples] == ["G", "a.jpg"]
    assert reasons == {
        "a.jpg": "image id stands twice: metadata.csv line 3 left out",
        "b.jpg": "nobody labelled woman or man: gender non-binary",
        "c.jpg": "nobody labelled woman or man: gender empty",
        "../d.jpg": "file name is not that of a file in the folder of images",
        "/etc/passwd": "file name is not that of a file in the folder of images",
        "e.jpg": "split is not one of train, validation, test",
        "f.jpg": "image file is absent",
        "metadata.csv line 10": "image id is empty or cannot be shown",
    }
    assert selection.steps[0] == FilterStep("archive", 1, 5, 4)


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ({"person_boxes": "nan"}, "person_boxes is not a JSON list (metadata.csv line 3)"),
        ({"person_boxes": "[[1, 2"}, "person_boxes is not a JSON list (metadata.csv line 3)"),
        ({"person_boxes": '{"x": 1}'}, "person_boxes is not a JSON list (metadata.csv line 3)"),
        ({"person_boxes": "[" + "1," * 60_000 + "1]"}, "person_boxes is not a JSON list (metadata.csv line 3)"),
        ({"person_boxes": "[[NaN, 1, 2, 3]]"}, "person 1: box is not four finite numbers"),
        ({"person_boxes": "[1, 2, 3, 4]"}, "person 1: box is not four finite numbers"),
        ({"person_boxes": "[[1, 1, 5, 5], [1, 1, -5, 5]]"}, "person 2: box has no area"),
        ({"person_boxes": "[[100, 1, 5, 5]]"}, "person 1: box is outside of the image"),
        ({"objects": '["cup"]'}, "objects hold something without a label (metadata.csv line 3)"),
        ({"objects": '[{"label": "cup"}]'}, "object cup: box is not four finite numbers"),
        (
            {"objects": '[{"label": " ", "box": [1, 1, 1, 1]}]'},
            "objects hold something without a label (metadata.csv line 3)",
        ),
    ],
)
def test_boxes_that_are_wrong_drop_the_image(archive, outcome, cells, why):
    sound = {"file_name": "a.jpg", "gender": "woman"}
    folder = write(archive, sound, {"file_name": "b.jpg", "gender": "man"} | cells)
    assert outcome("folder", folder)[1] == {"b.jpg": f"a person or an object cannot be used: {why}"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "lacks the column file_name, gender"),
        (b"file,gender\n", "lacks the column file_name"),
        (b"file_name,gender,gender\n", "the column gender stands twice"),
        ("file_name,gender\né.jpg,man\n".encode("latin-1"), "not a table: the text is not UTF-8"),
        (b"file_name,gender\n", "no image is left"),
        (b"\x80\x05]\x94.", "Python pickle"),
        (b'file_name,gender\n"' + b"x" * 200_000, "not a table: field larger than field limit"),
    ],
)
def test_a_table_of_another_kind_is_one_line(archive, content, message):
    archive.text("metadata.csv", "").write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        sources.read("folder", archive.top)
    assert "\n" not in str(caught.value)


def test_the_table_is_a_file_of_the_folder(archive):
    with pytest.raises(UserError, match=r"metadata\.csv: cannot be read"):
        sources.read("folder", archive.top)
    with pytest.raises(UserError, match=r"metadata '\.\./x\.csv' is not the name of a file"):
        sources.read("folder", archive.top, metadata="../x.csv")

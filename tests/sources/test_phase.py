from __future__ import annotations

import pytest

from truegap import sources
from truegap.errors import UserError
from truegap.schema import FilterStep

TABLE = "phase_gcc_val_regions_20221101.json"


def someone(gender="female", region=(10, 5, 30, 35), **changes):
    traits = {"age": "adult", "skintone": "lighter", "ethnicity": "white", "emotion": "neutral", "activity": "other"}
    return {"region": list(region), "annotations": {"gender": gender, **traits}} | changes


def write(archive, entries, name=TABLE, split="val"):
    archive.json(name, entries)
    for key in entries:
        if "/" not in key:
            archive.photo(f"images/{split}/{key}")
    return archive.top


def test_an_entry_becomes_an_example(archive, outcome):
    folder = write(archive, {"489254": {"caption": "a person reads", "person3": someone()}})
    [example] = outcome("phase", folder)[0].examples
    assert (example.image_id, example.gender, example.size) == ("val/489254", "woman", (40, 60))
    assert example.source == "images/val/489254"
    [region] = example.persons
    assert (region.id, region.box, region.mask) == (3, (10, 5, 20, 30), None)
    assert example.extra == {
        "caption": "a person reads",
        "age": "adult",
        "skintone": "lighter",
        "ethnicity": "white",
        "emotion": "neutral",
        "activity": "other",
    }


def test_files_with_an_extension_and_both_splits_are_found(archive, outcome):
    write(archive, {"1": {"caption": "", "person0": someone()}})
    archive.json("phase_annotations/phase_gcc_train_regions_20221101.json", {"1": {"person0": someone("male")}})
    archive.photo("train/1.jpg")
    selection = outcome("phase", archive.top)[0]
    assert [(e.image_id, e.gender) for e in selection.examples] == [("train/1", "man"), ("val/1", "woman")]
    assert selection.examples[0].extra["caption"] == ""
    assert [e.image_id for e in outcome("phase", archive.top, split="val")[0].examples] == ["val/1"]


def test_every_step_is_counted(archive, outcome):
    entries = {
        "1": {"caption": "", "person0": someone()},
        "2": {"caption": "", "person0": someone("male"), "person2": someone("unsure")},
        "3": {"caption": "", "person0": someone("disagreement")},
        "4": {"caption": "nobody"},
        "5": {"caption": "", "person0": someone("male")},
        "6": {"caption": "", "person0": {"region": [1, 2, 3, 4]}},
    }
    folder = write(archive, entries)
    (folder / "images/val/5").unlink()
    selection, reasons, _ = outcome("phase", folder)
    assert reasons == {
        "val/2": "several annotated persons: 2",
        "val/3": "nobody labelled woman or man: gender disagreement",
        "val/4": "nobody labelled woman or man: nobody annotated",
        "val/5": "image file is absent",
        "val/6": "nobody labelled woman or man: gender empty",
    }
    assert selection.steps[0] == FilterStep("archive", 1, 2, 3)
    assert selection.steps[2] == FilterStep("annotated", 1, 1, 0)
    uniform = outcome("phase", folder, single_person="uniform_presentation")[0]
    assert [example.image_id for example in uniform.examples] == ["val/1", "val/2"]


def test_the_answers_of_all_annotators_are_brought_to_a_majority(archive, outcome):
    def answers(*genders):
        return [{"worker": f"w{n}", "gender": gender, "age": "adult"} for n, gender in enumerate(genders)]

    entries = {
        "1": {"person0": someone(annotations=answers("female", "female", "unsure"))},
        "2": {"person0": someone(annotations=answers("female", "male", "unsure"))},
        "3": {"person0": someone(annotations=answers("male"))},
        "4": {"person0": someone(annotations=[None, "x"])},
    }
    folder = write(archive, entries, name="phase_gcc_val_all_20221101.json")
    selection, reasons, _ = outcome("phase", folder, labels="all")
    assert [(e.image_id, e.gender) for e in selection.examples] == [("val/1", "woman"), ("val/3", "man")]
    assert selection.examples[0].extra["age"] == "adult"
    assert reasons == {
        "val/2": "nobody labelled woman or man: gender disagreement",
        "val/4": "nobody labelled woman or man: gender empty",
    }


@pytest.mark.parametrize(
    ("region", "why"),
    [
        (None, "box is not four finite numbers"),
        ([1, 2, 3], "box is not four finite numbers"),
        (["1", 2, 3, 4], "box is not four finite numbers"),
        ([float("nan"), 2, 3, 4], "box is not four finite numbers"),
        ([30, 5, 20, 35], "region is not x1, y1, x2, y2"),
        ([100, 5, 120, 35], "box is outside of the image"),
        ([-30, -30, -10, -10], "box is outside of the image"),
    ],
)
def test_a_person_whose_region_is_wrong_drops_the_image(archive, outcome, region, why):
    folder = write(archive, {"1": {"person0": someone()}, "2": {"person0": someone() | {"region": region}}})
    assert outcome("phase", folder)[1] == {"val/2": f"a person cannot be used: 0: {why}"}


def test_a_region_beyond_the_border_is_cut(archive, outcome):
    folder = write(archive, {"1": {"person0": someone(region=(-5, 5, 70, 35))}})
    selection = outcome("phase", folder)[0]
    assert selection.examples[0].persons[0].box == (0, 5, 60, 30)
    assert selection.repairs == {"box cut at the border of the image": 1}


def test_entries_that_cannot_be_used_are_counted(archive, outcome):
    folder = write(archive, {"1": {"person0": someone()}})
    entry = '{"person0": {"region": [1, 2, 3, 4], "annotations": {"gender": "male"}}}'
    whole = (folder / TABLE).read_text()
    archive.text(TABLE, whole[:-1] + f', "1": {entry}, "../2": {entry}, "3": [], "4": {{"personX": 1, "person0": 2}}}}')
    reasons = outcome("phase", folder)[1]
    assert reasons["phase_gcc_val_regions_20221101.json ../2"] == (
        "file name is not that of a file in the folder of images"
    )
    assert reasons["val/1"] == "image stands twice in phase_gcc_val_regions_20221101.json: the later entry left out"
    assert reasons["val/3"] == "entry is not an object"
    assert reasons["val/4"] == "nobody labelled woman or man: person is not an object"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"[]", "holds no JSON object"),
        (b'{"1": ', "not valid JSON near 1"),
        (b'{"1": nan}', "not valid JSON near 1"),
        ('{"1": "é"}'.encode("latin-1"), "not UTF-8"),
        (b"\x80\x05]\x94.", "a Python pickle, which is never opened"),
    ],
)
def test_a_file_of_another_kind_is_one_line(archive, content, message):
    archive.text(TABLE, "").write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        sources.read("phase", archive.top)
    assert TABLE in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_file_and_two_files_are_one_line(archive):
    with pytest.raises(UserError, match=r"holds no annotations; expected phase_gcc_train_regions_<date>\.json"):
        sources.read("phase", archive.top)
    archive.json(TABLE, {})
    archive.json("phase_gcc_val_regions_20230101.json", {})
    with pytest.raises(UserError, match=r"several files of the val split: .*; keep one"):
        sources.read("phase", archive.top)


def test_the_invented_samples_of_the_format_are_read(shared, archive, outcome):
    import shutil

    shutil.copytree(shared / "formats/fixtures/phase", archive.top, dirs_exist_ok=True)
    for key in ("489254", "948611"):
        archive.photo(f"val/{key}", (300, 200))
    assert outcome("phase", archive.top)[2]["annotated"] == (1, 0, 0)
    assert outcome("phase", archive.top, single_person="largest_box")[2]["person_box"] == (1, 1, 0)
    assert outcome("phase", archive.top, labels="all")[2]["person_box"] == (1, 0, 0)

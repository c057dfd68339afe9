"""The same mistakes in every source that holds tables of people: each is one line, or a reason that is counted."""

from __future__ import annotations

import json
import os
import pickle
import zlib

import pytest

from truegap import sources
from truegap.build import Plan, Workspace, build_shard
from truegap.errors import UserError

LEVELS = "classification_label/combined_annotation_hq.txt"
MALE = "classification_label/CelebAMask-HQ-attribute-anno.txt"
PHASE = "phase_gcc_val_regions_20221101.json"
NOT_PLAIN = "file name is not that of a file in the folder of images"


def facet(archive):
    row = {"class1": "nurse", "gender_presentation_masc": 0, "gender_presentation_fem": 1, "skin_tone_3": 2}
    box = json.dumps({"x": 1, "y": 1, "width": 9, "height": 9})
    people = [{"person_id": n, "filename": f"{n}.jpg", "bounding_box": box, **row} for n in (1, 2)]
    archive.table("annotations/annotations.csv", people)
    archive.json(
        "annotations/coco_masks.json", {"images": [], "annotations": [], "categories": [{"id": 1, "name": "person"}]}
    )
    return [archive.photo(f"imgs_1/{n}.jpg") for n in (1, 2)]


def miap(archive):
    corners = {"XMin": 0.1, "XMax": 0.5, "YMin": 0.2, "YMax": 0.9}
    flags = {"IsGroupOf": 0, "GenderPresentation": "Predominantly Feminine"}
    archive.table("open_images_extended_miap_boxes_val.csv", [{"ImageID": str(n), **corners, **flags} for n in (1, 2)])
    archive.text("open_images_extended_miap_images_val.lst", "validation/1\nvalidation/2\n")
    archive.table("validation-annotations-bbox.csv", [{"ImageID": "1", "LabelName": "/m/0342h", **corners}])
    drawn = {f"Box{corner}": value for corner, value in corners.items()}
    archive.table(
        "validation-annotations-object-segmentation.csv",
        [{"MaskPath": "a.png", "ImageID": "1", "LabelName": "/m/0342h", **drawn}],
    )
    archive.text("class-descriptions-boxable.csv", "/m/0342h,Guitar\n")
    archive.table("image_ids_and_rotation.csv", [{"ImageID": "1", "License": ""}])
    return [archive.photo(f"validation/{n}.jpg") for n in (1, 2)]


def phase(archive):
    person = {"region": [1, 1, 9, 9], "annotations": {"gender": "female"}}
    archive.json(PHASE, {str(n): {"caption": "a person", "person0": person} for n in (1, 2)})
    return [archive.photo(f"images/val/{n}") for n in (1, 2)]


def celeba(archive):
    archive.json("text/captions_hq.json", {f"{n}.jpg": {"overall_caption": "This lady smiles."} for n in (1, 2)})
    archive.text(LEVELS, "\tBangs\tEyeglasses\tNo_Beard\tSmiling\tYoung\n1.jpg 0 0 5 4 5\n2.jpg 0 0 5 4 5\n")
    archive.text(MALE, "2\nMale\n1.jpg -1\n2.jpg -1\n")
    archive.text("identity/identity_CelebA-HQ.txt", "1.jpg 7\n2.jpg 8\n")
    return [archive.photo(f"image/{n}.jpg") for n in (1, 2)]


def folder(archive):
    archive.table("metadata.csv", [{"file_name": f"{n}.jpg", "gender": "woman"} for n in (1, 2)])
    return [archive.photo(f"{n}.jpg") for n in (1, 2)]


WRITERS = {"facet": facet, "miap": miap, "phase": phase, "celeba-dialog": celeba, "folder": folder}
FILES = {
    "facet": ["annotations/annotations.csv", "annotations/coco_masks.json"],
    "miap": [
        "open_images_extended_miap_boxes_val.csv",
        "open_images_extended_miap_images_val.lst",
        "validation-annotations-bbox.csv",
        "validation-annotations-object-segmentation.csv",
        "class-descriptions-boxable.csv",
        "image_ids_and_rotation.csv",
    ],
    "phase": [PHASE],
    "celeba-dialog": ["text/captions_hq.json", LEVELS, MALE, "identity/identity_CelebA-HQ.txt"],
    "folder": ["metadata.csv"],
}
EVERY_FILE = [(name, file) for name, files in FILES.items() for file in files]


def options(name):
    return {"labels": "attributes"} if name == "celeba-dialog" else {}


def built(name, selection, out):
    """The rows of config `original`: what a selection holds can be written down."""
    from datasets import load_dataset

    workspace = Workspace(Plan(name, "1.0.0", selection, ("original",)), out)
    with workspace.opened():
        for task in workspace.tasks():
            build_shard(task)
        workspace.finish()
    return [row for split in load_dataset(str(out), "original").values() for row in split]


@pytest.mark.parametrize("name", WRITERS)
def test_a_sound_archive_gives_both_images(archive, outcome, name):
    WRITERS[name](archive)
    selection, reasons, _ = outcome(name, archive.top, **options(name))
    assert (len(selection.examples), reasons) == (2, {})


@pytest.mark.parametrize(("name", "file"), EVERY_FILE)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps({"a": "b"}), "but a Python pickle, which is never opened; export it as text"),
        ("a,é\n".encode("latin-1"), "the text is not UTF-8; save it again as UTF-8"),
        ("a,b\n".encode("utf-16"), "the text is not UTF-8; save it again as UTF-8"),
    ],
)
def test_a_pickle_and_another_encoding_are_one_line_with_the_file(archive, name, file, content, message):
    WRITERS[name](archive)
    (archive.top / file).write_bytes(content)
    with pytest.raises(UserError) as caught:
        sources.read(name, archive.top, **options(name))
    assert f"{archive.top / file}: " in str(caught.value)
    assert str(caught.value).endswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "file"), [each for each in EVERY_FILE if each[1].endswith(".csv") and "class-descriptions" not in each[1]]
)
def test_a_table_without_a_needed_column_is_one_line_with_the_file(archive, name, file):
    WRITERS[name](archive)
    header, *lines = (archive.top / file).read_text().splitlines()
    # the first column of these tables is always needed
    archive.text(file, "\n".join([f"other,{header.partition(',')[2]}", *lines]))
    with pytest.raises(UserError, match=r"lacks the column \w+ \(found: 'other") as caught:
        sources.read(name, archive.top, **options(name))
    assert f"{archive.top / file}: " in str(caught.value)


def png(width, height):
    chunks = (b"IHDR" + width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x02\x00\x00\x00", b"IDAT")
    parts = ((len(c) - 4).to_bytes(4, "big") + c + zlib.crc32(c).to_bytes(4, "big") for c in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (png(0, 5), "not a JPEG, PNG or WebP image"),
        (png(5, 0), "not a JPEG, PNG or WebP image"),
        (png(60_000, 60_000), "image is too large"),
        (b"", "not a JPEG, PNG or WebP image"),
        (pickle.dumps("image"), "not a JPEG, PNG or WebP image"),
    ],
)
def test_a_photograph_of_no_size_or_of_a_monstrous_one_is_counted(archive, outcome, name, content, why):
    _, second = WRITERS[name](archive)
    second.write_bytes(content)
    selection, reasons, _ = outcome(name, archive.top)
    assert len(selection.examples) == 1
    assert list(reasons.values()) == [why]


def test_ids_of_any_length_are_counted_not_used(archive, outcome):
    miap(archive)
    table = archive.top / "open_images_extended_miap_boxes_val.csv"
    table.write_text(table.read_text().replace("\n2,", f"\n{'2' * 300},"))
    archive.text("open_images_extended_miap_images_val.lst", f"validation/{'3' * 300}\n")
    assert outcome("miap", archive.top)[1] == {
        "open_images_extended_miap_boxes_val.csv line 3": "image id is not that of a file in the folder of images",
        "open_images_extended_miap_images_val.lst line 1": "image id is not that of a file in the folder of images",
    }


def test_an_image_id_of_ones_own_may_not_be_endless(archive, outcome):
    archive.table(
        "metadata.csv",
        [
            {"file_name": "1.jpg", "gender": "man", "image_id": "1"},
            {"file_name": "2.jpg", "gender": "man", "image_id": "2" * 1001},
        ],
    )
    archive.photo("1.jpg")
    assert outcome("folder", archive.top)[1] == {"metadata.csv line 3": "image id is empty or cannot be shown"}


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("person" + "9" * 30, {}, "a person cannot be used: 0: person has a number of too many digits"),
        ("person00", {}, "a person cannot be used: 0: person number stands twice"),
        ("person1", 5, "a person cannot be used: 1: person is not an object"),
    ],
)
def test_nobody_in_a_photograph_is_passed_over(archive, outcome, key, value, why):
    phase(archive)
    entries = json.loads((archive.top / PHASE).read_text())
    person = entries["2"]["person0"]
    entries["2"][key] = person if value == {} else value
    archive.json(PHASE, entries)
    assert outcome("phase", archive.top, single_person="uniform_presentation")[1] == {"val/2": why}
    # a gap in the numbers and a person without anything are no persons
    entries["2"].pop(key)
    archive.json(PHASE, entries | {"2": {**entries["2"], "person7": None}})
    assert outcome("phase", archive.top)[1] == {}


def test_numbers_that_went_through_another_program_are_still_numbers(archive, outcome):
    facet(archive)
    table = archive.top / "annotations/annotations.csv"
    header, *lines = table.read_text().splitlines()
    as_floats = [line.replace(",0,1,2", ",0.0,1.0,2.0").replace(line[:2], f"{line[0]}.0,", 1) for line in lines]
    table.write_text("\n".join([header, *as_floats]))
    selection = outcome("facet", archive.top)[0]
    assert [example.persons[0].id for example in selection.examples] == [1, 2]
    assert selection.examples[0].extra["skin_tone_votes"] == [0, 0, 2, 0, 0, 0, 0, 0, 0, 0]


def test_what_stands_twice_and_differs_is_not_guessed(archive, outcome):
    celeba(archive)
    with (archive.top / LEVELS).open("a") as file:
        file.write("2.jpg 0 0 5 4 1\n")
    assert outcome("celeba-dialog", archive.top)[1] == {
        "2.jpg": "no levels of the five attributes, or two rows of them"
    }
    celeba(archive)
    archive.text("identity/identity_CelebA-HQ.txt", "1.jpg 7\n1.jpg 7\n2.jpg 8\n2.jpg 9\n")
    assert outcome("celeba-dialog", archive.top)[1] == {"2.jpg": "no identity, or two"}
    celeba(archive)
    archive.text(MALE, "2\nMale\n1.jpg -1\n1.jpg -1\n2.jpg -1\n2.jpg 1\n")
    reasons = outcome("celeba-dialog", archive.top, labels="attributes")[1]
    assert reasons == {"2.jpg": "not in the table of attributes, or twice"}
    celeba(archive)
    entry = '"2.jpg": {"overall_caption": "This man smiles."}'
    archive.text("text/captions_hq.json", f'{{{entry}, "1.jpg": {{"overall_caption": "This lady."}}, {entry}}}')
    selection, reasons, _ = outcome("celeba-dialog", archive.top)
    assert len(selection.examples) == 2
    assert reasons == {"2.jpg": "image stands twice in captions_hq.json: the later caption left out"}


def test_half_a_character_in_a_caption_can_be_written_down(archive, outcome):
    phase(archive)
    text = (archive.top / PHASE).read_text()
    archive.text(PHASE, text.replace("a person", "a person \\ud83d", 1))
    selection = outcome("phase", archive.top)[0]
    rows = built("phase", selection, archive.top / "built")
    assert [row["caption"] for row in rows] == ["a person ?", "a person"]


def test_half_a_character_in_a_portraits_caption_and_a_name_in_latin_1_can_be_written_down(archive, outcome):
    celeba(archive)
    archive.json("text/captions_hq.json", {"1.jpg": {"overall_caption": "This lady \ud83d"}})
    with open(os.fsencode(archive.top) + b"/image/\xe9.jpg", "wb"):  # noqa: PTH123  # no text could name it
        pass
    selection, reasons, _ = outcome("celeba-dialog", archive.top, masks=False)
    assert reasons == {"\\udce9.jpg": NOT_PLAIN, "2.jpg": "no caption"}
    [row] = built("celeba-dialog", selection, archive.top / "built")
    assert row["caption"] == "This lady ?"


def test_half_a_character_in_cocos_names_and_addresses_can_be_written_down(coco, tmp_path):
    coco.categories[1]["name"] = " bot\ud83dtle\n"
    coco.licenses = [{"id": 4, "name": "\ud83d", "url": "http://example.org/"}]
    coco.photo(1, "A man.", flickr_url="http://example.org/\ud83d", coco_url="http://example.org/1.jpg")
    top = coco.write()
    from examples import encoded

    (top / "val2017/000000000001.jpg").write_bytes(encoded(1, (6, 8)))
    [row] = built("coco-gender", sources.read("coco-gender", top), tmp_path / "built")
    assert [each["label"] for each in row["objects"]] == ["bottle"]
    assert (row["license"], row["attribution"]) == ("unknown", "http://example.org/1.jpg")

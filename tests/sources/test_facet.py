from __future__ import annotations

import json
import pickle

import pytest

from truegap import sources
from truegap.errors import UserError
from truegap.regions import masks
from truegap.schema import FilterStep

BOX = {"x": 10.0, "y": 5.0, "width": 20.0, "height": 30.0}


def person(number, image, fem=1, masc=0, box=BOX, **changes):
    cells = {
        "person_id": number,
        "filename": image,
        "class1": "guitarist",
        "class2": "None",
        "bounding_box": box if isinstance(box, str) else json.dumps(box),
        "gender_presentation_masc": masc,
        "gender_presentation_fem": fem,
        "gender_presentation_non_binary": 0,
        "gender_presentation_na": 0,
        "skin_tone_3": 2,
        "age_presentation_middle": 1,
        "hairtype_curly": 1,
        "has_eyeware": 0,
    }
    return cells | changes


def write(archive, *people, folder="imgs_2"):
    archive.table("annotations/annotations.csv", list(people))
    for image in {row["filename"] for row in people if "/" not in row["filename"]}:
        archive.photo(f"{folder}/{image}")
    return archive.top


def test_a_person_becomes_an_example(archive, outcome):
    folder = write(archive, person(7, "sa_1.jpg", class2="singer"))
    selection, _, _ = outcome("facet", folder)
    [example] = selection.examples
    assert (example.image_id, example.gender, example.size) == ("sa_1.jpg", "woman", (40, 60))
    assert example.source == "imgs_2/sa_1.jpg"
    assert example.license == "FACET dataset agreement"
    [region] = example.persons
    assert (region.id, region.box, region.mask) == (7, (10, 5, 20, 30), None)
    assert example.extra == {
        "occupation": "guitarist",
        "second_occupation": "singer",
        "age": "middle",
        "skin_tone_votes": [0, 0, 2, 0, 0, 0, 0, 0, 0, 0],
    }
    assert pickle.loads(pickle.dumps(example)) == example  # noqa: S301


@pytest.mark.parametrize(
    ("rule", "women", "men"),
    [
        ("annotated", ["a.jpg"], []),
        ("uniform_presentation", ["a.jpg", "b.jpg"], []),
        ("largest_box", ["a.jpg"], ["m.jpg"]),
    ],
)
def test_each_rule_gives_the_labels_that_it_names(archive, outcome, rule, women, men):
    small = BOX | {"width": 5.0}
    people = [
        person(1, "a.jpg"),
        person(2, "b.jpg", box=small),
        person(3, "b.jpg", fem=0, gender_presentation_non_binary=1),
        person(4, "m.jpg", box=small),
        person(5, "m.jpg", fem=0, masc=1),
    ]
    selection, reasons, _ = outcome("facet", write(archive, *people), single_person=rule)
    assert [e.image_id for e in selection.examples if e.gender == "woman"] == women
    assert [e.image_id for e in selection.examples if e.gender == "man"] == men
    if rule == "annotated":
        assert reasons == {"b.jpg": "several annotated persons: 2", "m.jpg": "several annotated persons: 2"}
    if rule == "uniform_presentation":
        assert reasons == {"m.jpg": "annotated persons of both presentations"}
    if rule == "largest_box":
        assert reasons == {"b.jpg": "largest box is not labelled woman or man: non-binary"}


def test_the_labelled_person_comes_first_then_the_largest(archive, outcome):
    people = [
        person(1, "a.jpg", fem=0, box=BOX | {"width": 40.0}),
        person(2, "a.jpg", box=BOX | {"width": 5.0}),
        person(3, "a.jpg", box=BOX | {"width": 8.0}),
    ]
    [example] = outcome("facet", write(archive, *people))[0].examples
    assert [region.id for region in example.persons] == [3, 1, 2]


def test_every_label_that_is_none_has_its_reason_and_every_step_its_count(archive, outcome):
    people = [
        person(1, "a.jpg"),
        person(2, "b.jpg", fem=0, masc=1),
        person(3, "c.jpg", fem=1, masc=1),
        person(4, "d.jpg", fem=0, gender_presentation_non_binary=1),
        person(5, "e.jpg", fem=0, gender_presentation_na=1),
        person(6, "f.jpg"),
    ]
    folder = write(archive, *people)
    (folder / "imgs_2/f.jpg").unlink()
    selection, reasons, _ = outcome("facet", folder)
    assert reasons == {
        "c.jpg": "nobody labelled woman or man: feminine and masculine",
        "d.jpg": "nobody labelled woman or man: non-binary",
        "e.jpg": "nobody labelled woman or man: presentation not known",
        "f.jpg": "image file is absent",
    }
    assert selection.steps == [
        FilterStep("archive", 2, 1, 3),
        FilterStep("label", 2, 1, 0),
        FilterStep("uniform_presentation", 2, 1, 0),
        FilterStep("image_file", 1, 1, 0),
        FilterStep("image_header", 1, 1, 0),
        FilterStep("person_box", 1, 1, 0),
    ]


def with_masks(archive, *annotations, categories=("person", "clothing", "hair")):
    table = [{"id": number, "name": name} for number, name in enumerate(categories, start=1)]
    archive.json("annotations/coco_masks.json", {"images": [], "annotations": annotations, "categories": table})


def rle(*runs, size=(40, 60)):
    return {"size": list(size), "counts": list(runs)}


@pytest.mark.parametrize("name", ["person_id", "facet_person_id"])
def test_masks_of_whole_persons_are_found_by_either_name(archive, outcome, name):
    folder = write(archive, person(1, "a.jpg"), person(2, "b.jpg"))
    with_masks(
        archive,
        {"id": 1, name: 1, "category_id": 1, "segmentation": rle(400, 100, 1900)},
        {"id": 2, name: 2, "category_id": 3, "segmentation": rle(400, 100, 1900)},
    )
    first, second = outcome("facet", folder)[0].examples
    assert masks.area(first.persons[0].mask, (40, 60)) == 100
    assert second.persons[0].mask is None
    assert outcome("facet", folder, masks=False)[0].examples[0].persons[0].mask is None


@pytest.mark.parametrize(
    ("segmentation", "why"),
    [
        (rle(400, 100), "run lengths do not add up to height x width"),
        (rle(400, 100, 1900, size=(60, 40)), "mask has another size than the image"),
        (rle(400, -100, 2100), "negative run length"),
        (None, "no segmentation"),
        ("x", "no segmentation"),
        ({"size": [40, 60], "counts": "~~~"}, "counts hold a character that no mask has"),
        ({"size": [40, 60], "counts": [10**30]}, "run lengths are not a list of integers"),
    ],
)
def test_a_wrong_mask_leaves_the_box_and_is_counted(archive, outcome, segmentation, why):
    folder = write(archive, person(1, "a.jpg"))
    with_masks(archive, {"id": 1, "person_id": 1, "category_id": 1, "segmentation": segmentation})
    selection, _, _ = outcome("facet", folder)
    assert selection.examples[0].persons[0].mask is None
    # `null` is as good as no entry at all
    assert selection.repairs == ({f"person kept with the box alone: {why}": 1} if segmentation is not None else {})


def test_two_masks_of_one_person_are_none_and_masks_of_nobody_are_counted(archive, outcome):
    folder = write(archive, person(1, "a.jpg"))
    entry = {"id": 1, "person_id": 1, "category_id": 1, "segmentation": rle(400, 100, 1900)}
    with_masks(archive, entry, entry, {"id": 3, "person_id": "x"}, "nonsense")
    selection, _, _ = outcome("facet", folder)
    assert selection.repairs == {
        "person kept with the box alone: several masks": 1,
        "mask without a person id left out": 2,
    }
    with_masks(archive, categories=("hair",))
    with pytest.raises(UserError, match=r"coco_masks\.json: no category is named 'person'"):
        sources.read("facet", folder)


@pytest.mark.parametrize(
    ("box", "why"),
    [
        ("{", "bounding_box is not JSON (annotations.csv line 3)"),
        ("nan", "bounding_box is not JSON (annotations.csv line 3)"),
        ("NaN", "bounding_box is not JSON with x, y, width and height (annotations.csv line 3)"),
        ("[1, 2, 3, 4]", "bounding_box is not JSON with x, y, width and height (annotations.csv line 3)"),
        ("[" * 10_000, "bounding_box is not JSON (annotations.csv line 3)"),
        ({"x": 1, "y": 1}, "box is not four finite numbers (annotations.csv line 3)"),
        (BOX | {"x": "1"}, "box is not four finite numbers (annotations.csv line 3)"),
        (BOX | {"width": float("nan")}, "box is not four finite numbers (annotations.csv line 3)"),
        (BOX | {"width": 1e300}, "box is not four finite numbers (annotations.csv line 3)"),
        (BOX | {"width": -5.0}, "box has no area"),
        (BOX | {"x": 100.0}, "box is outside of the image"),
    ],
)
def test_a_person_whose_box_is_wrong_drops_the_image(archive, outcome, box, why):
    folder = write(archive, person(1, "a.jpg"), person(2, "b.jpg", box=box))
    assert outcome("facet", folder)[1] == {"b.jpg": f"a person cannot be used: 2: {why}"}


def test_boxes_as_python_prints_them_and_unknown_keys_are_read(archive, outcome):
    folder = write(archive, person(1, "a.jpg", box=str(BOX | {"dict": "y"})))
    assert outcome("facet", folder)[0].examples[0].persons[0].box == (10, 5, 20, 30)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"person_id": "x"}, "a person cannot be used: 0: person id is not a whole number (annotations.csv line 3)"),
        ({"person_id": 2**70}, "a person cannot be used: 0: person id is not a whole number (annotations.csv line 3)"),
        ({"person_id": 1}, "a person cannot be used: 1: person id stands twice (annotations.csv line 3)"),
    ],
)
def test_ids_that_are_none_or_stand_twice_drop_the_image(archive, outcome, changes, why):
    folder = write(archive, person(1, "a.jpg"), person(2, "b.jpg") | changes)
    assert outcome("facet", folder)[1] == {"b.jpg": why}


@pytest.mark.parametrize("name", ["../a.jpg", "/etc/passwd", "a/../../b.jpg", "", "x\ty.jpg"])
def test_a_file_name_that_leads_elsewhere_is_counted_by_its_line(archive, outcome, name):
    folder = write(archive, person(1, "a.jpg"), person(2, "b.jpg"))
    archive.table("annotations/annotations.csv", [person(1, "a.jpg"), person(2, name)])
    reasons = outcome("facet", folder)[1]
    assert reasons == {"annotations.csv line 3": "file name is not that of a file in the folder of images"}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "not a JPEG, PNG or WebP image"),
        (b"<html>", "not a JPEG, PNG or WebP image"),
        (b"GIF89a" * 9, "not a JPEG"),
    ],
)
def test_a_file_that_is_no_photograph_is_counted(archive, outcome, content, why):
    folder = write(archive, person(1, "a.jpg"), person(2, "b.jpg"))
    (folder / "imgs_2/b.jpg").write_bytes(content)
    assert outcome("facet", folder)[1] == {"b.jpg": "not a JPEG, PNG or WebP image"}


def test_the_size_is_that_of_the_upright_photograph(archive, outcome):
    from PIL import Image

    exif = Image.Exif()
    exif[0x0112] = 6
    folder = write(archive, person(1, "a.jpg"))
    archive.photo("imgs_2/a.jpg", (60, 40), exif=exif)
    assert outcome("facet", folder)[0].examples[0].size == (40, 60)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "lacks the column person_id"),
        ("person_id,filename,bounding_box\n", "lacks the column gender_presentation_masc, gender_presentation_fem"),
        ("id,id\n", "lacks the column"),
    ],
)
def test_a_table_of_another_kind_is_one_line(archive, content, message):
    archive.text("annotations/annotations.csv", content)
    with pytest.raises(UserError, match=message) as caught:
        sources.read("facet", archive.top)
    assert "annotations.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_absent_table_an_empty_one_and_latin_1_are_one_line(archive):
    with pytest.raises(UserError, match=r"facet: .* holds no table of people; expected annotations/annotations\.csv"):
        sources.read("facet", archive.top)
    header = ",".join(person(1, "a.jpg"))
    archive.text("annotations.csv", header)
    with pytest.raises(UserError, match="lists nobody"):
        sources.read("facet", archive.top)
    archive.text("annotations.csv", f"{header}\n1,é.jpg", "latin-1")
    with pytest.raises(UserError, match=r"annotations\.csv: not a table: the text is not UTF-8"):
        sources.read("facet", archive.top)


def test_nothing_left_says_what_most_were_dropped_for(archive):
    folder = write(archive, person(1, "a.jpg", fem=0, gender_presentation_na=1))
    with pytest.raises(UserError, match=r"no image is left .*archive 0\+0\+1, label 0\+0\+0.*presentation not known"):
        sources.read("facet", folder)


def test_the_invented_samples_of_the_format_are_read(shared, archive, outcome):
    # given the samples' tables and grey photographs of the size that they name
    import shutil

    shutil.copytree(shared / "formats/fixtures/facet", archive.top, dirs_exist_ok=True)
    for number in (1001, 1002, 1003, 1004):
        archive.photo(f"imgs_1/sa_{number}.jpg", (100, 200))
    selection, _, counts = outcome("facet", archive.top)
    assert counts["archive"] == (1, 2, 1)
    assert counts["person_box"] == (1, 2, 0)
    assert masks.area(selection.examples[0].persons[0].mask, (100, 200)) == 4000

from __future__ import annotations

import json

import pytest

from truegap import sources
from truegap.errors import UserError


def read(coco, **options):
    return sources.read("coco-gender", coco.write(), **options)


def dropped(coco, **options):
    """Reasons by image id; image 1, which is sound, must stay."""
    coco.photo(1, "A man.")
    selection = read(coco, **options)
    assert [example.image_id for example in selection.examples] == ["1"]
    # then every image of the archive is an example or has a reason
    first = selection.steps[0]
    assert first.woman + first.man + first.other == len(selection.examples) + len(selection.dropped)
    return {drop.image_id: drop.reason for drop in selection.dropped}


@pytest.mark.parametrize(
    "name",
    [
        "../val2017/000000000002.jpg",
        "/etc/passwd",
        "..\\2.jpg",
        "C:2.jpg",
        "..",
        ".",
        "",
        "a\n.jpg",
        "a\x00.jpg",
        None,
        5,
        ["x"],
        "x" * 300,
    ],
)
def test_a_file_name_that_leads_elsewhere_drops_the_image(coco, name):
    coco.photo(2, "A man.", file_name=name)
    assert dropped(coco) == {"2": "file name is not that of a file in the folder of images"}


@pytest.mark.parametrize("size", [(0, 6), (-8, 6), (None, 6), ("eight", 6), (8.5, 6), (10**6, 10**6), (True, 6)])
def test_a_size_of_no_photograph_drops_the_image(coco, size):
    coco.photo(2, "A man.", width=size[0], height=size[1])
    assert dropped(coco) == {"2": "width and height are not those of a photograph"}


@pytest.mark.parametrize("number", ["abc", None, -3, 2.5, 2**64, True, [], "9" * 5000])
def test_an_image_without_a_usable_id_is_counted(coco, number):
    coco.photo(2, id=number, persons=0, objects=0)
    assert dropped(coco) == {"instances_val2017.json images[0]": "image id is not a whole number"}


def test_ids_may_be_strings_of_digits_and_whole_floats(coco):
    coco.photo(7, "A man.", id="7")
    for entry in coco.annotations:
        entry["image_id"] = "7"
    coco.annotations[1]["id"] = 9.001e11
    [example] = read(coco).examples
    assert example.image_id == "7"
    assert example.objects[0].id == 900_100_000_000


def test_entries_that_are_no_objects_are_counted(coco):
    coco.images += ["nonsense", None]
    coco.annotations += ["nonsense", None, {"image_id": "x"}]
    coco.categories += ["nonsense", {"id": 5}]
    coco.licenses += ["nonsense"]
    coco.photo(1, "A man.")
    selection = read(coco)
    assert len(selection.examples) == 1
    assert len(selection.dropped) == 2
    assert selection.repairs == {"annotation without an image id left out": 3}


def test_an_image_id_that_stands_twice_is_counted_once(coco):
    coco.photo(1, "A man.", objects=0, persons=0)
    reasons = dropped(coco)
    assert reasons == {"1": "image id stands twice: instances_val2017.json images[1] left out"}


def test_annotations_and_labels_without_an_image_entry_are_counted(coco):
    coco.annotate(55, 1, [1, 1, 3, 4])
    coco.captions.append({"image_id": 66, "id": 1, "caption": "A woman."})
    assert dropped(coco) == {
        "55": "no image entry in the instances file",
        "66": "no image entry in the instances file",
    }


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"bbox": [1, 1, 0, 4]}, "box has no area"),
        ({"bbox": [1, 1, 3, -4]}, "box has no area"),
        ({"bbox": [20, 1, 3, 4]}, "box is outside of the image"),
        ({"bbox": [1, 1, 3]}, "box is not four finite numbers"),
        ({"bbox": [1, 1, 3, float("nan")]}, "box is not four finite numbers"),
        ({"bbox": [1, 1, 3, float("inf")]}, "box is not four finite numbers"),
        ({"bbox": [1, 1, 3, 10**400]}, "box is not four finite numbers"),
        ({"bbox": [1, 1, "3", 4]}, "box is not four finite numbers"),
        ({"bbox": None}, "box is not four finite numbers"),
        ({"segmentation": []}, "no segmentation"),
        ({"segmentation": None}, "no segmentation"),
        ({"segmentation": "x"}, "no segmentation"),
        ({"segmentation": [[1, 1, 2]]}, "polygon is not a list of x, y"),
        ({"segmentation": [5]}, "polygon is not a list of x, y"),
        ({"segmentation": [["a"] * 6]}, "polygon holds something that is not a number"),
        ({"segmentation": [[1, 1, 1e9, 1, 4, 5]]}, "polygon far outside of the image"),
        ({"segmentation": {"counts": [1, 2], "size": [6, 8]}}, "run lengths do not add up to height x width"),
        ({"segmentation": {"counts": [1, -2, 49], "size": [6, 8]}}, "negative run length"),
        ({"segmentation": {"counts": [48], "size": [6, 8]}}, "mask is empty"),
        ({"segmentation": {"counts": [48], "size": [8, 6]}}, "mask has another size than the image"),
        ({"segmentation": {"counts": "o", "size": [6, 8]}}, "counts end early"),
        ({"segmentation": {"counts": None, "size": [6, 8]}}, "run lengths are not a list of integers"),
        ({"segmentation": {"counts": [2**80], "size": [6, 8]}}, "run lengths are not a list of integers"),
        ({"segmentation": {}}, "mask has another size than the image"),
    ],
)
def test_a_person_that_cannot_be_used_drops_the_image_and_an_object_does_not(coco, changes, why):
    coco.photo(2, "A man.", persons=0, objects=0)
    broken = coco.annotate(2, 1, [1, 1, 3, 4], **changes)
    assert dropped(coco) == {"2": f"a person cannot be used: annotation {broken['id']}: {why}"}
    # the same on an object
    broken["category_id"] = 44
    coco.annotate(2, 1, [1, 1, 3, 4])
    selection = read(coco)
    example = next(example for example in selection.examples if example.image_id == "2")
    if "bbox" in changes:
        assert example.objects == ()
        assert selection.repairs == {f"object left out: {why}": 1}
    else:
        assert [thing.mask for thing in example.objects] == [None]
        assert selection.repairs == {f"object kept with its box alone: {why}": 1}


def test_a_person_with_a_bad_id_or_the_id_of_another_drops_the_image(coco):
    coco.photo(2, "A man.", persons=0).annotate(2, 1, [1, 1, 3, 4], id="x")
    coco.photo(3, "A man.", persons=0).annotate(3, 1, [1, 1, 3, 4], id=coco.annotations[-1]["id"])
    assert dropped(coco) == {
        "2": "a person cannot be used: annotation without a whole-number id: annotation id is not a whole number",
        "3": f"a person cannot be used: annotation {coco.annotations[2]['id']}: annotation id stands twice",
    }


def test_objects_of_no_category_or_with_the_id_of_another_are_left_out(coco):
    coco.photo(1, "A man.")
    coco.annotate(1, 999, [5, 1, 1, 2])
    coco.annotate(1, None, [5, 1, 1, 2])
    coco.annotate(1, 44, [5, 1, 1, 2], id=2)
    selection = read(coco)
    assert [thing.id for thing in selection.examples[0].objects] == [2]
    assert selection.repairs == {
        "object left out: annotation id stands twice": 1,
        "object left out: category is not in the table of categories": 2,
    }


def test_boxes_are_cut_at_the_border_and_clear_cuts_are_counted(coco):
    coco.photo(1, "A man.", objects=0)
    coco.annotate(1, 44, [-2, 1, 5, 2])
    coco.annotate(1, 44, [6, 4, 2.01, 2])
    coco.annotate(1, 44, [1.1, 0.2, 2.3, 1.7])
    selection = read(coco)
    assert [thing.box for thing in selection.examples[0].objects] == [(0, 1, 3, 2), (6, 4, 2, 2), (1.1, 0.2, 2.3, 1.7)]
    assert selection.repairs == {"box cut at the border of the image": 1}


@pytest.mark.parametrize(
    ("entry", "short"),
    [
        ({"url": "https://creativecommons.org/licenses/by-nd/2.0/"}, "CC BY-ND 2.0"),
        ({"url": "http://flickr.com/commons/usage/"}, "No known copyright restrictions"),
        ({"url": "http:\\/\\/www.usa.gov\\/copyright.shtml"}, "United States Government Work"),
        ({"url": "http://example.org", "name": "House licence"}, "House licence"),
        ({"url": None, "name": "a\nb"}, "unknown"),
        ({"id": 5}, "unknown"),
    ],
)
def test_licences_have_short_names(coco, entry, short):
    coco.licenses = [{"id": 4} | entry]
    coco.photo(1, "A man.")
    assert read(coco).examples[0].license == short


@pytest.mark.parametrize("address", ["javascript:alert(1)", 'http://x/"><script>', None, 5])
def test_only_addresses_are_attribution(coco, address):
    coco.photo(1, "A man.", flickr_url=address, coco_url=address)
    assert read(coco).examples[0].attribution == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tables: tables.pop("images"), "has no 'images'"),
        (lambda tables: tables.pop("annotations"), "has no 'annotations'"),
        (lambda tables: tables.update(images={}), "'images' is not a list"),
        (
            lambda tables: tables.update(categories=[{"id": 1, "name": "cat"}]),
            "no category is named 'person' .found: cat",
        ),
        (lambda tables: tables.update(categories=[]), "no category is named 'person'.*: none"),
    ],
)
def test_an_instances_file_of_another_kind_is_one_line(coco, change, message):
    path = coco.photo(1, "A man.").write() / "annotations/instances_val2017.json"
    tables = json.loads(path.read_text())
    change(tables)
    path.write_text(json.dumps(tables))
    with pytest.raises(UserError, match=message) as caught:
        sources.read("coco-gender", coco.top)
    assert "instances_val2017.json" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["instances", "captions"])
@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"{}", b"\xff\xfe", b"null"])
def test_broken_json_is_one_line_with_the_file(coco, name, content):
    path = coco.photo(1, "A man.").write() / f"annotations/{name}_val2017.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match=path.name) as caught:
        sources.read("coco-gender", coco.top)
    assert "\n" not in str(caught.value)


def test_absent_captions_are_one_line(coco):
    folder = coco.photo(1, "A man.").write()
    (folder / "annotations/captions_val2017.json").unlink()
    with pytest.raises(UserError, match=r"captions_val2017\.json: cannot be read"):
        sources.read("coco-gender", folder)


def test_splits_that_disagree_about_categories_are_one_line(coco_of):
    coco_of("val2014").photo(1, "A man.").write()
    other = coco_of("val2017").photo(2, "A man.")
    other.categories[1]["name"] = "fork"
    with pytest.raises(UserError, match="category 44 is 'bottle' in one split and 'fork' in another"):
        sources.read("coco-gender", other.write())


def test_nothing_left_is_one_line_with_the_counts(coco):
    coco.photo(1, "A man.", persons=2).photo(2, "A dog.")
    with pytest.raises(UserError, match=r"no image is left .*archive 0\+1\+1, .*coco_person 0\+0\+0"):
        read(coco)

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
from PIL import Image

from truegap import sources
from truegap.errors import UserError
from truegap.regions import masks
from truegap.schema import FilterStep

COLUMNS = ("ImageID", "LabelName", "Confidence", "XMin", "XMax", "YMin", "YMax")
NAMES = "/m/03bt1vf,Woman\n/m/0342h,Guitar\n/m/09j2d,Clothing\n/m/0dzct,Human face\n"


def person(image, presentation="Predominantly Feminine", corners=(0.1, 0.5, 0.2, 0.9), **changes):
    flags = {"IsOccluded": 0, "IsTruncated": 0, "IsGroupOf": 0, "IsDepictionOf": 0, "IsInsideOf": 0}
    values = dict(zip(COLUMNS, (image, "/m/01g317", 1, *corners), strict=True))
    return values | flags | {"GenderPresentation": presentation, "AgePresentation": "Middle"} | changes


def thing(image, label="/m/0342h", corners=(0.3, 0.6, 0.4, 0.8), **changes):
    return dict(zip(COLUMNS, (image, label, 1, *corners), strict=True)) | changes


def mask(image, label, corners, name="a_m_1.png", **changes):
    box = dict(zip(("BoxXMin", "BoxXMax", "BoxYMin", "BoxYMax"), corners, strict=True))
    return {"MaskPath": name, "ImageID": image, "LabelName": label, "BoxID": "1", **box, "Clicks": ""} | changes


def picture(size=(40, 60), mode="1"):
    inside = np.zeros(size, np.uint8)
    inside[8:20, 6:30] = 255
    stream = io.BytesIO()
    Image.fromarray(inside).convert(mode).save(stream, "PNG")
    return stream.getvalue()


def write(archive, *people, split="val", photos=True):
    archive.table(f"open_images_extended_miap_boxes_{split}.csv", list(people))
    if photos:
        folder = "validation" if split == "val" else split
        for image in {row["ImageID"] for row in people if "/" not in row["ImageID"]}:
            archive.photo(f"{folder}/{image}.jpg")
    return archive.top


def test_a_person_becomes_an_example_in_pixels(archive, outcome):
    [example] = outcome("miap", write(archive, person("a")))[0].examples
    assert (example.image_id, example.gender, example.size) == ("a", "woman", (40, 60))
    assert example.source == "validation/a.jpg"
    assert example.extra == {"age": "middle"}
    [region] = example.persons
    assert region.box == pytest.approx((6, 8, 24, 28))
    # without the table of images nobody knows the licence
    assert (example.license, example.attribution) == ("unknown", "")


def test_who_is_no_single_labelled_person_has_a_reason(archive, outcome):
    people = [
        person("a"),
        person("b", "Predominantly Masculine"),
        person("c", "Unknown"),
        person("d", IsGroupOf=1),
        person("e", IsDepictionOf=1),
        person("f"),
        person("f", "Unknown", corners=(0.6, 0.9, 0.1, 0.9)),
        person("g", ""),
    ]
    archive.text("open_images_extended_miap_images_val.lst", "validation/a\nvalidation/h\n")
    selection, reasons, _ = outcome("miap", write(archive, *people))
    assert reasons == {
        "c": "nobody labelled woman or man: presentation Unknown",
        "d": "nobody labelled woman or man: box of a group",
        "e": "nobody labelled woman or man: depiction",
        "f": "several annotated persons: 2",
        "g": "nobody labelled woman or man: presentation empty",
        "h": "nobody labelled woman or man: nobody annotated",
    }
    assert selection.steps[0] == FilterStep("archive", 2, 1, 5)
    assert selection.steps[-1] == FilterStep("person_box", 1, 1, 0)
    uniform = outcome("miap", archive.top, single_person="uniform_presentation")[0]
    assert [example.image_id for example in uniform.examples] == ["a", "b", "f"]


def test_a_depiction_by_its_other_name_is_one_too(archive, outcome):
    other = person("b", IsDepiction=1)
    del other["IsDepictionOf"]
    archive.table("open_images_extended_miap_boxes_test.csv", [other])
    write(archive, person("a"))
    assert outcome("miap", archive.top)[1] == {"b": "nobody labelled woman or man: depiction"}


def test_splits_are_chosen_by_name(archive, outcome):
    write(archive, person("a"), split="val")
    write(archive, person("b"), split="test")
    assert [e.image_id for e in outcome("miap", archive.top)[0].examples] == ["a", "b"]
    selection = outcome("miap", archive.top, split="test")[0]
    assert [e.source for e in selection.examples] == ["test/b.jpg"]
    assert selection.options["split"] == ["test"]
    with pytest.raises(UserError, match="holds no open_images_extended_miap_boxes_train"):
        sources.read("miap", archive.top, split="train")
    with pytest.raises(UserError, match=r"split\.0: Input should be 'auto', 'train', 'val' or 'test'"):
        sources.read("miap", archive.top, split="dev")


def test_objects_are_boxes_of_open_images_without_people_and_what_they_wear(archive, outcome):
    folder = write(archive, person("a"))
    labels = ("/m/03bt1vf", "/m/0342h", "/m/09j2d", "/m/0dzct")
    archive.table("validation-annotations-bbox.csv", [thing("a", label) for label in labels] + [thing("z")])
    with pytest.raises(UserError, match=r"no class-descriptions-boxable\.csv"):
        sources.read("miap", folder)
    archive.text("class-descriptions-boxable.csv", NAMES)
    [guitar] = outcome("miap", folder)[0].examples[0].objects
    assert (guitar.label, guitar.mask) == ("Guitar", None)
    assert guitar.box == pytest.approx((18, 16, 18, 16))
    both = outcome("miap", folder, no_objects=())[0].examples[0].objects
    assert [each.label for each in both] == ["Guitar", "Clothing"]
    assert outcome("miap", folder, objects=False)[0].examples[0].objects == ()


@pytest.mark.parametrize("place", ["masks/a_m_1.png", "validation-masks/a_m_1.png", "zip"])
@pytest.mark.parametrize("size", [(40, 60), (80, 120)])
def test_masks_are_found_in_folders_and_zips_and_brought_to_the_images_size(archive, outcome, place, size):
    folder = write(archive, person("a"))
    archive.text("class-descriptions-boxable.csv", NAMES)
    archive.table("validation-annotations-object-segmentation.csv", [mask("a", "/m/03bt1vf", (0.1, 0.5, 0.2, 0.8))])
    if place == "zip":
        with zipfile.ZipFile(folder / "validation-masks-a.zip", "w") as file:
            file.writestr("deep/../folder/a_m_1.png", picture(size))
    else:
        archive.text(place, "").write_bytes(picture(size))
    [region] = outcome("miap", folder)[0].examples[0].persons
    # 12 x 24 pixels of 40 x 60; half of that in each direction if the picture is twice as large
    assert masks.area(region.mask, (40, 60)) == (288 if size == (40, 60) else 72)
    assert not list(folder.glob("**/folder"))


def test_masks_of_objects_are_those_of_their_class_and_box(archive, outcome):
    folder = write(archive, person("a"))
    archive.text("class-descriptions-boxable.csv", NAMES)
    box = (0.1, 0.5, 0.2, 0.5)
    archive.table("validation-annotations-bbox.csv", [thing("a", corners=box), thing("a")])
    archive.table("validation-annotations-object-segmentation.csv", [mask("a", "/m/0342h", box)])
    archive.text("masks/a_m_1.png", "").write_bytes(picture())
    example = outcome("miap", folder)[0].examples[0]
    assert [each.mask is None for each in example.objects] == [False, True]
    assert example.persons[0].mask is None


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "mask picture is absent"),
        (b"", "mask picture cannot be read"),
        (b"<html>", "mask picture cannot be read"),
        (picture()[:60], "mask picture cannot be read"),
        (picture(mode="RGB"), "mask picture has colours instead of labels"),
    ],
)
def test_a_wrong_mask_leaves_the_box_and_is_counted(archive, outcome, content, why):
    folder = write(archive, person("a"))
    archive.table("validation-annotations-object-segmentation.csv", [mask("a", "/m/03bt1vf", (0.1, 0.5, 0.2, 0.9))])
    if content is not None:
        archive.text("masks/a_m_1.png", "").write_bytes(content)
    selection = outcome("miap", folder)[0]
    assert selection.examples[0].persons[0].mask is None
    assert selection.repairs == {f"person kept with the box alone: {why}": 1}


@pytest.mark.parametrize("name", ["../a.png", "/etc/a.png", "x/../../a.png"])
def test_a_mask_whose_path_leads_elsewhere_is_left_out(archive, outcome, name):
    folder = write(archive, person("a"))
    rows = [mask("a", "/m/03bt1vf", (0.1, 0.5, 0.2, 0.9), name=name), mask("a", "/m/03bt1vf", ("x", 0.5, 0.2, 0.9))]
    archive.table("validation-annotations-object-segmentation.csv", rows)
    assert outcome("miap", folder)[0].repairs == {
        "mask left out: its path leads elsewhere": 1,
        "mask left out: box is not four finite numbers": 1,
    }


def test_a_damaged_zip_is_one_line(archive):
    folder = write(archive, person("a"))
    archive.table("validation-annotations-object-segmentation.csv", [mask("a", "/m/03bt1vf", (0.1, 0.5, 0.2, 0.9))])
    archive.text("validation-masks-a.zip", "no zip")
    with pytest.raises(UserError, match=r"validation-masks-a\.zip: not a zip file of masks"):
        sources.read("miap", folder)


def test_every_image_has_its_own_licence_and_author(archive, outcome):
    folder = write(archive, person("a"), person("b"))
    row = {
        "ImageID": "a",
        "OriginalLandingURL": "https://www.flickr.com/photos/x/1",
        "License": "https://creativecommons.org/licenses/by/2.0/",
        "Author": "A. <Photographer>",
        "Rotation": "90.0",
    }
    archive.table("image_ids_and_rotation.csv", [row, row | {"ImageID": "z", "License": "?"}])
    selection = outcome("miap", folder)[0]
    first, second = selection.examples
    assert first.license == "CC BY 2.0"
    assert first.attribution == "A. <Photographer>, https://www.flickr.com/photos/x/1"
    assert second.license == "unknown"
    assert selection.repairs == {"image is stored turned, and kept so": 1}
    spec = sources.load_benchmark("miap")
    assert spec.publishable(first.license, perturbed=True)
    assert not spec.publishable(second.license, perturbed=False)


def test_a_photograph_that_is_to_be_turned_is_left_out(archive, outcome):
    folder = write(archive, person("a"), person("b"))
    exif = Image.Exif()
    exif[0x0112] = 6
    archive.photo("validation/b.jpg", exif=exif)
    assert outcome("miap", folder)[1] == {
        "b": "image is to be turned (EXIF), and its boxes do not say whether they know"
    }


@pytest.mark.parametrize(
    ("corners", "why"),
    [
        (("x", 0.5, 0.2, 0.9), "box is not four finite numbers (open_images_extended_miap_boxes_val.csv line 3)"),
        (("nan", 0.5, 0.2, 0.9), "box is not four finite numbers (open_images_extended_miap_boxes_val.csv line 3)"),
        (("", "", "", ""), "box is not four finite numbers (open_images_extended_miap_boxes_val.csv line 3)"),
        ((0.5, 0.1, 0.2, 0.9), "box has no area"),
        ((1.5, 1.9, 0.2, 0.9), "box is outside of the image"),
    ],
)
def test_a_person_whose_box_is_wrong_drops_the_image(archive, outcome, corners, why):
    folder = write(archive, person("a"), person("b", corners=corners))
    assert outcome("miap", folder)[1] == {"b": f"a person cannot be used: 1: {why}"}


def test_boxes_beyond_the_border_are_cut_and_doubles_count_once(archive, outcome):
    folder = write(archive, person("a", corners=(-0.1, 0.5, 0.2, 1.4)), person("a", corners=(-0.1, 0.5, 0.2, 1.4)))
    selection = outcome("miap", folder)[0]
    assert selection.examples[0].persons[0].box == pytest.approx((0, 8, 30, 32))
    assert selection.repairs == {
        "box cut at the border of the image": 1,
        "box that stands twice counted once": 1,
    }


def test_an_id_that_leads_elsewhere_is_counted_by_its_line(archive, outcome):
    folder = write(archive, person("a"), person("../validation/a"))
    where = "open_images_extended_miap_boxes_val.csv line 3"
    assert outcome("miap", folder)[1] == {where: "image id is not that of a file in the folder of images"}


def test_an_absent_or_foreign_table_is_one_line(archive):
    with pytest.raises(UserError, match=r"holds no open_images_extended_miap_boxes_<split>\.csv"):
        sources.read("miap", archive.top)
    archive.text("open_images_extended_miap_boxes_val.csv", "ImageID,XMin\n")
    with pytest.raises(UserError, match="lacks the column IsGroupOf, GenderPresentation"):
        sources.read("miap", archive.top)
    archive.text("open_images_extended_miap_boxes_val.csv", ",".join(person("a")))
    with pytest.raises(UserError, match="lists nobody"):
        sources.read("miap", archive.top)


def test_the_invented_samples_of_the_format_are_read(shared, archive, outcome):
    import shutil

    shutil.copytree(shared / "formats/fixtures/miap", archive.top, dirs_exist_ok=True)
    archive.text("class-descriptions-boxable.csv", NAMES)
    for number in (1, 2, 3):
        archive.photo(f"validation/000000000000aaa{number}.jpg")
    archive.text("masks/000000000000aaa1_m03bt1vf_9a041d52.png", "").write_bytes(picture())
    selection, _, counts = outcome("miap", archive.top)
    assert counts["archive"] == (1, 1, 1)
    [example] = selection.examples
    assert example.persons[0].mask is not None
    assert [each.label for each in example.objects] == ["Guitar"]

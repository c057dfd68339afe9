from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from truegap import sources
from truegap.errors import UserError
from truegap.regions import masks
from truegap.schema import FilterStep
from truegap.sources.celeba_dialog import gender_of, is_stereotypical, split_of

HEADER = "\tBangs\tEyeglasses\tNo_Beard\tSmiling\tYoung\n"
WOMAN, MAN = "This lady smiles.", "This man in his forties has a beard."


def write(archive, captions, levels=None, identities=True, photos=True):
    entries = {
        name: {"attribute_wise_captions": {"Bangs": None}, "overall_caption": text} for name, text in captions.items()
    }
    archive.json("text/captions_hq.json", entries)
    levels = levels if levels is not None else dict.fromkeys(captions, "1\t2\t3\t0\t2")
    rows = "".join(f"{name}\t{row}\n" for name, row in levels.items())
    archive.text("classification_label/combined_annotation_hq.txt", HEADER + rows)
    if identities:
        lines = "".join(f"{name} {number % 7}\n" for number, name in enumerate(captions))
        archive.text("identity/identity_CelebA-HQ.txt", lines)
    if photos:
        for name in captions:
            if "/" not in name:
                archive.photo(f"image/{name}")
    return archive.top


def test_a_portrait_becomes_an_example(archive, outcome):
    folder = write(archive, {"0.jpg": WOMAN}, {"0.jpg": "2\t1\t0\t3\t2"})
    selection = outcome("celeba-dialog", folder)[0]
    [example] = selection.examples
    assert (example.image_id, example.gender, example.size, example.persons) == ("0.jpg", "woman", (40, 60), ())
    assert example.split == split_of("0", 0)
    assert example.extra == {
        "caption": WOMAN,
        "identity": "0",
        "stereotypical": True,
        "bangs": 2,
        "eyeglasses": 1,
        "no_beard": 0,
        "smiling": 3,
        "young": 2,
    }
    assert selection.options["split_by"] == "identity"


@pytest.mark.parametrize(
    ("caption", "gender"),
    [
        ("This lady has no bangs.", "woman"),
        ("He smiles", "man"),
        ("The man smiles at her.", "woman"),
        ("(Female), smiling", "woman"),
        ("A gentleman's smile", "man"),
        ("There is a person.", None),
        ("The sheriff's shell", None),
        ("", None),
    ],
)
def test_words_for_a_woman_are_looked_for_first_and_marks_do_not_count(caption, gender):
    assert gender_of(caption) == gender


@pytest.mark.parametrize(
    ("gender", "typical"), [("woman", (2, 1, 0, 3, 2)), ("man", (1, 2, 1, 2, 3))], ids=["woman", "man"]
)
def test_a_portrait_is_stereotypical_only_if_all_five_hold(gender, typical):
    assert is_stereotypical(gender, typical)
    assert not is_stereotypical("man" if gender == "woman" else "woman", typical)
    # one step beyond each bound breaks it
    steps = (-1, 1, 1, -1, 1) if gender == "woman" else (1, -1, -1, 1, -1)
    for place, step in enumerate(steps):
        changed = list(typical)
        changed[place] += step
        assert not is_stereotypical(gender, tuple(changed))


def test_the_stereotypical_or_the_others_are_kept_on_request(archive, outcome):
    levels = {"0.jpg": "2\t1\t0\t3\t2", "1.jpg": "0\t1\t0\t3\t2"}
    folder = write(archive, {"0.jpg": WOMAN, "1.jpg": WOMAN}, levels)
    assert outcome("celeba-dialog", folder, stereotypical="true")[1] == {"1.jpg": "stereotypical is false"}
    assert outcome("celeba-dialog", folder, stereotypical="false")[1] == {"0.jpg": "stereotypical is true"}


@settings(deadline=None)
@given(st.text(), st.integers(0, 5))
def test_a_group_is_in_the_same_split_whatever_else_there_is(group, seed):
    assert split_of(group, seed) == split_of(group, seed)


def test_splits_have_their_shares_and_keep_a_person_together(archive, outcome):
    counts = Counter(split_of(str(number), 3) for number in range(10_000))
    assert counts["train"] == pytest.approx(8000, abs=150)
    assert counts["validation"] == pytest.approx(1000, abs=100)
    folder = write(archive, {f"{n}.jpg": MAN for n in range(40)})
    examples = outcome("celeba-dialog", folder)[0].examples
    by_person = {}
    for example in examples:
        by_person.setdefault(example.extra["identity"], set()).add(example.split)
    assert len(by_person) == 7
    assert all(len(splits) == 1 for splits in by_person.values())
    by_image = outcome("celeba-dialog", folder, split_by="image")[0]
    assert {e.split for e in by_image.examples} == {"train", "validation", "test"}
    assert by_image.options["split_by"] == "image"


def test_without_identities_the_split_is_by_image_and_says_so(archive, outcome):
    folder = write(archive, {"0.jpg": WOMAN}, identities=False)
    selection = outcome("celeba-dialog", folder)[0]
    assert selection.options["split_by"] == "image"
    assert selection.examples[0].extra["identity"] is None
    with pytest.raises(UserError, match=r"holds no identity_CelebA-HQ\.txt, which split_by='identity' needs"):
        sources.read("celeba-dialog", folder, split_by="identity")


def test_every_step_is_counted(archive, outcome):
    captions = {f"{n}.jpg": text for n, text in enumerate((WOMAN, MAN, "A face.", None, MAN, "", MAN, WOMAN, MAN))}
    levels = dict.fromkeys(captions, "1\t2\t3\t0\t2") | {
        "4.jpg": "1\t2\t9\t0\t2",
        "6.jpg": "1\t2",
        "20.jpg": "1\t2\t3\t0\t2",
    }
    folder = write(archive, captions, levels)
    (folder / "image/8.jpg").unlink()
    archive.text("identity/identity_CelebA-HQ.txt", "0.jpg 1\n1.jpg 2\n8.jpg 3\nx\n")
    selection, reasons, _ = outcome("celeba-dialog", folder)
    assert reasons == {
        "2.jpg": "caption names neither a woman nor a man",
        "3.jpg": "no caption",
        "20.jpg": "no caption",
        "4.jpg": "no levels of the five attributes, or two rows of them",
        "5.jpg": "no caption",
        "6.jpg": "no levels of the five attributes, or two rows of them",
        "7.jpg": "no identity, or two",
        "8.jpg": "image file is absent",
    }
    assert selection.steps[0] == FilterStep("archive", 2, 4, 4)
    assert selection.steps[-1] == FilterStep("image_header", 1, 1, 0)


def test_the_attribute_male_labels_on_request(archive, outcome):
    folder = write(archive, {"0.jpg": WOMAN, "1.jpg": WOMAN, "2.jpg": WOMAN})
    archive.text("classification_label/CelebAMask-HQ-attribute-anno.txt", "2\nBangs Male\n0.jpg  1 -1\n1.jpg  1  1\n")
    selection, reasons, _ = outcome("celeba-dialog", folder, labels="attributes")
    assert [e.gender for e in selection.examples] == ["woman", "man"]
    assert reasons == {"2.jpg": "not in the table of attributes, or twice"}
    archive.text("classification_label/CelebAMask-HQ-attribute-anno.txt", "2\nBangs Young\n")
    with pytest.raises(UserError, match=r"attribute-anno\.txt: the second line names no column Male"):
        sources.read("celeba-dialog", folder, labels="attributes")


def palette(size=(20, 30)):
    labels = np.zeros(size, np.uint8)
    labels[5:15, 10:20] = 1
    labels[2:5, 10:20] = 13
    image = Image.fromarray(labels, "P")
    image.putpalette([0, 0, 0, 9, 9, 9] * 10)
    return image


def test_palette_masks_are_the_person_on_request(archive, outcome):
    folder = write(archive, {"0.jpg": WOMAN, "1.jpg": MAN})
    with pytest.raises(UserError, match="holds no palette pictures"):
        sources.read("celeba-dialog", folder, masks=True)
    (folder / "mask/deep").mkdir(parents=True)
    palette().save(folder / "mask/deep/0.png")
    selection = outcome("celeba-dialog", folder, masks=True)[0]
    first, second = selection.examples
    [person] = first.persons
    # 13 x 10 pixels of 20 x 30, brought to 40 x 60
    assert masks.area(person.mask, (40, 60)) == 520
    assert person.box == (20, 4, 20, 26)
    assert second.persons == ()
    assert selection.repairs == {"portrait without a person region: mask picture is absent": 1}


def test_a_name_that_leads_elsewhere_is_counted(archive, outcome):
    folder = write(archive, {"0.jpg": WOMAN, "../image/0.jpg": WOMAN})
    assert outcome("celeba-dialog", folder)[1] == {
        "../image/0.jpg": "file name is not that of a file in the folder of images"
    }


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("text/captions_hq.json", "[]", "holds no JSON object"),
        ("text/captions_hq.json", "{}", "holds no overall caption"),
        ("text/captions_hq.json", '{"0.jpg": nan}', "not valid JSON near 0.jpg"),
        ("classification_label/combined_annotation_hq.txt", "\tYoung\tBangs\n", "the first line does not name Bangs"),
        ("classification_label/combined_annotation_hq.txt", "é", "not a table: the text is not UTF-8"),
    ],
)
def test_a_file_of_another_kind_is_one_line(archive, name, content, message):
    folder = write(archive, {"0.jpg": WOMAN})
    archive.text(name, content, "latin-1")
    with pytest.raises(UserError, match=message) as caught:
        sources.read("celeba-dialog", folder)
    assert "\n" not in str(caught.value)


def test_absent_files_are_one_line(archive):
    with pytest.raises(UserError, match=r"holds no captions; expected captions_hq\.json"):
        sources.read("celeba-dialog", archive.top)


def test_the_invented_samples_of_the_format_are_read(shared, archive, outcome):
    import shutil

    shutil.copytree(shared / "formats/fixtures/celeba_dialog", archive.top, dirs_exist_ok=True)
    for name in ("0.jpg", "1.jpg"):
        archive.photo(f"image/{name}")
    selection = outcome("celeba-dialog", archive.top)[0]
    assert [(e.gender, e.extra["young"], e.extra["no_beard"]) for e in selection.examples] == [
        ("woman", 5, 5),
        ("man", 2, 3),
    ]
    assert outcome("celeba-dialog", archive.top, labels="attributes")[2]["label"] == (1, 1, 0)

from __future__ import annotations

import pickle
import zipfile
import zlib
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from truegap import sources
from truegap.errors import UserError
from truegap.regions.boxes import Unusable
from truegap.regions.masks import MaskError
from truegap.sources import _mask_pictures, _photos
from truegap.sources._labels import from_pickles
from truegap.sources._mask_pictures import mask_pictures
from truegap.sources._people import Person, choose
from truegap.sources._photos import upright_size


def people(*each):
    return [Person(n, gender, "" if gender else "unsure", (0, 0, area, 1)) for n, (gender, area) in enumerate(each)]


@pytest.mark.parametrize(
    ("rule", "who", "gender", "reason"),
    [
        ("annotated", [("woman", 1)], "woman", None),
        ("annotated", [("woman", 1), (None, 1)], "woman", "several annotated persons: 2"),
        ("annotated", [("woman", 1), ("man", 2)], None, "several annotated persons: 2"),
        ("uniform_presentation", [("woman", 1), (None, 9), ("woman", 2)], "woman", None),
        ("uniform_presentation", [("woman", 1), ("man", 1)], None, "annotated persons of both presentations"),
        ("largest_box", [("woman", 1), ("man", 2)], "man", None),
        ("largest_box", [("woman", 1), (None, 2)], "woman", "largest box is not labelled woman or man: unsure"),
        ("largest_box", [("woman", 2), ("man", 2)], "woman", None),
    ],
)
def test_rules_choose_who_is_labelled(rule, who, gender, reason):
    choice = choose(rule, people(*who))
    assert (choice.gender, choice.ruled_out) == (gender, reason)


@pytest.mark.parametrize(("orientation", "size"), [(1, (40, 60)), (3, (40, 60)), (6, (60, 40)), (99, (60, 40))])
def test_orientations_from_five_on_swap_the_sides(archive, orientation, size):
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = archive.photo("a.jpg", exif=exif)
    if orientation < 9:
        assert upright_size(path) == size
        from truegap.build.images import decode

        assert decode(path.read_bytes()).shape[:2] == size


def test_images_that_claim_to_be_huge_are_refused_unread(archive, monkeypatch):
    path = archive.photo("a.png", fmt="PNG")
    monkeypatch.setattr(_photos, "MAX_PIXELS", 2399)
    with pytest.raises(Unusable, match="image is too large"):
        upright_size(path)
    # a header of 60,000 x 60,000 pixels without any
    chunks = (b"IHDR" + (60_000).to_bytes(4, "big") * 2 + b"\x08\x02\x00\x00\x00", b"IDAT")
    parts = ((len(c) - 4).to_bytes(4, "big") + c + zlib.crc32(c).to_bytes(4, "big") for c in chunks)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))
    with pytest.raises(Unusable, match="image is too large"):
        upright_size(path)


def test_a_mask_picture_is_no_larger_than_the_limit_however_it_is_packed(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "m.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a.png", b"\0" * 1_000_000)
    monkeypatch.setattr(_mask_pictures, "_MAX_BYTES", 1000)
    with pytest.raises(MaskError, match="mask picture is too large"):
        mask_pictures([], [tmp_path / "m.zip"]).read("a.png", (4, 4))


def test_an_encrypted_or_damaged_member_is_a_reason(tmp_path):
    path = tmp_path / "m.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a.png", b"0123456789")
    path.write_bytes(path.read_bytes().replace(b"0123456789", b"0123456780"))
    with pytest.raises(MaskError, match="mask picture cannot be read"):
        mask_pictures([], [path]).read("a.png", (4, 4))


def test_an_empty_mask_picture_is_a_reason(tmp_path):
    Image.new("L", (4, 4)).save(tmp_path / "a.png")
    found = mask_pictures([tmp_path], [])
    assert "a.png" in found
    with pytest.raises(MaskError, match="mask is empty"):
        found.read("a.png", (4, 4))


def labels(tmp_path, value, name="val.data"):
    path = tmp_path / name
    path.write_bytes(value if isinstance(value, bytes) else pickle.dumps(value, protocol=0))
    return path


def entry(image, gender):
    return {"file_name": f"COCO_val2014_{image:012d}.jpg", "image_id": image, "objects": [0, 1], "gender": gender}


def test_label_files_of_plain_values_are_read_without_running_them(tmp_path):
    value = [
        entry(1, [1, 0]),
        entry(2, [0, 1]),
        entry(3, [1, 1]),
        entry(4, [1, 0]),
        entry(4, [0, 1]),
        {"image_id": "x"},
        5,
    ]
    found = from_pickles(labels(tmp_path, value))
    assert [found.of(n).gender for n in (1, 2, 3, 4, 5)] == ["man", "woman", None, None, None]
    assert found.of(3).reason == "label files: gender is not [1, 0] or [0, 1]"
    assert found.of(4).reason == "label files: two labels for one image"
    assert found.of(5).reason == "not in the label files"
    assert found.repairs == {"entry of the label files without an image id left out": 2}


def test_text_of_python_2_is_read(tmp_path):
    # as Python 2 wrote it: byte strings beside unicode
    data = (
        b"(lp0\n(dp1\nS'file_name'\np2\nVCOCO.jpg\np3\nsS'image_id'\np4\nI391895\nsS'gender'\np5\n(lp6\nI0\naI1\nasa."
    )
    assert from_pickles(labels(tmp_path, data)).of(391895).gender == "woman"


class Evil:
    def __reduce__(self):
        return (open, ("never", "w"))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([Evil()], "a pickle of more than lists, text and numbers .GLOBAL"),
        (pickle.dumps([Evil()], protocol=4), r"\(PROTO\)"),
        (b"cos\nsystem\n(S'true'\ntR.", r"\(GLOBAL\)"),
        (b"(S'true'\nios\nsystem\n.", r"\(INST\)"),
        (b"P1\n.", r"\(PERSID\)"),
        (b"(lp999999999999\n.", "a damaged pickle"),
        (b"(lp0\n", "not a pickle of labels"),
        (b"", "not a pickle of labels"),
        (b"g0\n.", "not a pickle of labels"),
        (b"I1\na.", "not a pickle of labels"),
        (b"<html>", "not a pickle of labels"),
        ({"a": 1}, "holds a dict where a list of labels belongs"),
    ],
)
def test_pickles_that_do_more_or_are_damaged_are_refused(tmp_path, value, message):
    with pytest.raises(UserError, match=message) as caught:
        from_pickles(labels(tmp_path, value))
    assert "val.data" in str(caught.value)
    assert "\n" not in str(caught.value)


ENTRIES = st.lists(
    st.fixed_dictionaries(
        {"image_id": st.integers(0, 2**62), "gender": st.sampled_from([[1, 0], [0, 1], [1, 1]])},
        optional={"file_name": st.text(max_size=8), "objects": st.lists(st.integers(0, 1), max_size=3)},
    ),
    max_size=4,
)
PARTS = st.sampled_from(
    [b"(", b"l", b"d", b"a", b"s", b".", b"p0\n", b"g0\n", b"I1\n", b"L1L\n", b"S'a'\n", b"Va\n", b"N"]
)
WAYS_TO_RUN = (b"cos\nmkdir\n(V%s\ntR", b"(V%s\nios\nmkdir\n", b"(cos\nmkdir\nV%s\no")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("labels")


@settings(deadline=None)
@given(ENTRIES)
def test_labels_come_back_as_they_were_pickled(place, entries):
    found = from_pickles(labels(place, entries))
    first = {}
    for each in entries:
        first.setdefault(each["image_id"], []).append(each["gender"])
    meant = {(1, 0): "man", (0, 1): "woman", (1, 1): None}
    for image, genders in first.items():
        one = {tuple(each) for each in genders}
        assert found.of(image).gender == (meant[one.pop()] if len(one) == 1 else None)
    assert found.by_image.keys() == first.keys()


@settings(deadline=None)
@given(ENTRIES, st.data())
def test_any_damage_leaves_labels_or_one_line_with_the_file(place, entries, data):
    # given label files in which a piece was replaced by other bytes or instructions
    sound = pickle.dumps(entries, protocol=0)
    start = data.draw(st.integers(0, len(sound)))
    end = data.draw(st.integers(start, len(sound)))
    piece = data.draw(st.one_of(st.binary(max_size=20), st.lists(PARTS, max_size=8).map(b"".join)))
    path = labels(place, sound[:start] + piece + sound[end:])
    # when it is read
    message, found = f"{path}: ", None
    try:
        found = from_pickles(path)
    except UserError as problem:
        message = str(problem)
    # then what is wrong is one line that names the file
    assert message.startswith(f"{path}: ")
    assert message.isprintable()
    assert len(message) < len(str(path)) + 200
    # or everything that is found is a label, or has a reason
    for image, label in found.by_image.items() if found else ():
        assert type(image) is int
        assert label.gender in {"woman", "man", None}
        assert (label.gender is None) == bool(label.reason)


@settings(deadline=None)
@given(ENTRIES, st.data(), st.sampled_from(WAYS_TO_RUN))
def test_nothing_in_a_label_file_is_ever_run(place, entries, data, way):
    sound = pickle.dumps(entries, protocol=0)
    start = data.draw(st.integers(0, len(sound)))
    path = labels(place, sound[:start] + way % str(place / "ran").encode() + b"0" + sound[start:])
    with suppress(UserError):  # in the middle of a text the instructions are text, and the file is sound
        from_pickles(path)
    assert [each.name for each in place.iterdir()] == ["val.data"]


def test_those_ways_do_run_when_a_pickle_is_simply_loaded(tmp_path):
    for number, way in enumerate(WAYS_TO_RUN):
        pickle.loads(way % str(tmp_path / str(number)).encode() + b".")  # noqa: S301
        assert (tmp_path / str(number)).is_dir()


def test_coco_takes_label_files(coco_of, tmp_path):
    coco = coco_of("val2014").photo(1).photo(2).photo(3)
    folder = tmp_path / "labels"
    folder.mkdir()
    with pytest.raises(UserError, match=r"holds none of train\.data, val\.data, test\.data"):
        sources.read("coco-gender", coco.write(), labels="balanced", labels_file=folder)
    labels(folder, [entry(1, [1, 0]), entry(2, [0, 1])])
    selection = sources.read("coco-gender", coco.write(), labels="balanced", labels_file=folder)
    assert [example.gender for example in selection.examples] == ["man", "woman"]
    assert selection.options["labels_file"] == "val.data"
    with pytest.raises(UserError, match="needs labels_file, the folder with"):
        sources.read("coco-gender", coco.top, labels="balanced")

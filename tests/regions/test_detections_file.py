from __future__ import annotations

import json

import numpy as np
import pytest

from examples import SIZE, example
from truegap.errors import UserError
from truegap.regions import masks
from truegap.regions.detections import MOST, detections_file
from truegap.regions.vocabulary import read_vocabulary

ROW = {"image_id": 0, "label": "cup", "bbox": [1, 2, 10, 20], "score": 0.9}


def read(tmp_path, content, examples=None, **options):
    path = tmp_path / "detic.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return detections_file(path, **options).read([example(0), example(1)] if examples is None else examples)


def test_boxes_masks_scores_and_labels_come_back(tmp_path):
    # Given three ways of writing a mask
    drawn = np.zeros(SIZE, bool)
    drawn[10:20, 5:25] = True
    size = list(SIZE)
    counts = masks.encode(drawn)
    polygon = [[5, 10, 25, 10, 25, 20, 5, 20]]
    runs = [int(run) for run in np.diff(np.flatnonzero(np.diff(np.r_[2, drawn.T.ravel(), 2])))]
    rows = [
        {**ROW, "segmentation": {"size": size, "counts": counts}},
        {**ROW, "segmentation": {"size": size, "counts": runs}},
        {**ROW, "segmentation": polygon},
        {**ROW, "image_id": "1", "label": "wine_glass"},
    ]
    found, left_out = read(tmp_path, rows)
    # Then they are the same mask
    for each in found["0"]:
        assert (each.label, each.score, each.box) == ("cup", 0.9, (1.0, 2.0, 10.0, 20.0))
        np.testing.assert_array_equal(masks.decode(each.mask, SIZE), drawn)
    assert [each.mask for each in found["1"]] == [None]
    assert not left_out


def test_the_origin_names_file_content_and_threshold(tmp_path):
    path = tmp_path / "detic.json"
    path.write_text(json.dumps([ROW]))
    file = detections_file(path, 0.25)
    assert file.origin == f"detic.json@{file.sha256[:12]} (score>=0.25)"
    assert file.record() == {"file": "detic.json", "sha256": file.sha256, "threshold": 0.25, "vocabulary": None}


@pytest.mark.parametrize("image_id", [7, "7", "COCO_7.jpg", "COCO_7"])
def test_an_image_is_known_by_id_or_file_name(tmp_path, image_id):
    one = example(7, source="val2014/COCO_7.jpg")
    found, _ = read(tmp_path, [{**ROW, "image_id": image_id}], [one, example(8)])
    assert list(found) == ["7"]


def test_a_file_name_of_two_images_is_nobodys(tmp_path):
    two = [example(1, source="train/a.jpg"), example(2, source="val/a.jpg")]
    rows = [{**ROW, "image_id": "a.jpg"}, {**ROW, "image_id": 2}]
    found, left_out = read(tmp_path, rows, two)
    assert list(found) == ["2"]
    assert left_out == {"detection left out: of another image": 1}


def test_the_threshold_is_the_least_score_that_stays(tmp_path):
    rows = [{**ROW, "score": score} for score in (0.29, 0.3, 0.31)]
    found, _ = read(tmp_path, rows, threshold=0.3)
    assert [each.score for each in found["0"]] == [0.31, 0.3]
    assert [each.score for each in read(tmp_path, [{**ROW, "score": 0.5}, {**ROW, "score": 0.49}])[0]["0"]] == [0.5]


def test_numbers_get_names_from_the_file_or_from_a_vocabulary(tmp_path):
    row = {"image_id": 0, "category_id": 62, "bbox": [1, 2, 3, 4], "score": 0.9}
    own = {"annotations": [row], "categories": [{"id": 62, "name": "sofa_bed"}]}
    assert read(tmp_path, own)[0]["0"][0].label == "sofa bed"
    assert read(tmp_path, [row], vocabulary=read_vocabulary("coco"))[0]["0"][0].label == "chair"
    both = json.dumps({"annotations": [row], "categories": own["categories"]})
    assert read(tmp_path, both, vocabulary=read_vocabulary("coco"))[0]["0"][0].label == "sofa bed"


def test_a_box_over_the_border_is_cut_and_counted(tmp_path):
    found, left_out = read(tmp_path, [{**ROW, "bbox": [50, 30, 40, 40]}])
    assert found["0"][0].box == (50.0, 30.0, 10.0, 10.0)
    assert left_out == {"box cut at the border of the image": 1}


def test_a_bad_mask_leaves_the_box(tmp_path):
    found, left_out = read(tmp_path, [{**ROW, "segmentation": {"size": [3, 3], "counts": [9]}}])
    assert found["0"][0].mask is None
    assert left_out == {"detection kept with its box alone: mask has another size than the image": 1}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (3, "entry is not an object"),
        ({**ROW, "score": None}, "score is not a number from 0 to 1"),
        ({key: ROW[key] for key in ("image_id", "label", "bbox")}, "score is not a number from 0 to 1"),
        ({**ROW, "score": "0.9"}, "score is not a number from 0 to 1"),
        ({**ROW, "score": 91}, "score is not a number from 0 to 1"),
        ({**ROW, "score": float("nan")}, "score is not a number from 0 to 1"),
        ({**ROW, "score": True}, "score is not a number from 0 to 1"),
        ({**ROW, "bbox": [1, 2, 3]}, "box is not four finite numbers"),
        ({**ROW, "bbox": [1, 2, 3, float("nan")]}, "box is not four finite numbers"),
        ({**ROW, "bbox": "1,2,3,4"}, "box is not four finite numbers"),
        ({**ROW, "bbox": [1, 2, 0, 4]}, "box has no area"),
        ({**ROW, "bbox": [1, 2, -3, 4]}, "box has no area"),
        ({**ROW, "bbox": [100, 100, 3, 4]}, "box is outside of the image"),
        ({"image_id": 0, "bbox": [1, 2, 3, 4], "score": 0.9}, "neither label nor category_id"),
        ({**ROW, "label": " ", "category_id": 1.5}, "category_id is not a whole number"),
        (
            {"image_id": 0, "category_id": 62, "bbox": [1, 2, 3, 4], "score": 0.9},
            r"category_id without a name \(write label or categories into the file, or give a vocabulary\)",
        ),
        ({"label": "cup", "bbox": [1, 2, 3, 4], "score": 0.9}, "image_id is missing"),
        ({**ROW, "image_id": 5}, "of another image"),
        ({**ROW, "image_id": [0]}, "of another image"),
    ],
)
def test_a_bad_row_is_left_out_and_counted(tmp_path, row, reason):
    found, left_out = read(tmp_path, [row, ROW])
    assert len(found["0"]) == 1
    assert left_out.total() == 1
    (why,) = left_out
    assert why == f"detection left out: {reason}".replace("\\", "")


def test_an_image_has_at_most_a_thousand(tmp_path):
    found, left_out = read(tmp_path, [ROW] * (MOST + 2))
    assert len(found["0"]) == MOST
    assert left_out == {"detection left out: more than 1000 in one image": 2}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("[1", "not valid JSON"),
        ("3", "holds no JSON list at its top level"),
        ("{}", "has no 'annotations'; is it the right file?"),
        ('{"annotations": 3}', "'annotations' is not a list"),
        ('{"annotations": [], "categories": [{"id": "1"}]}', "an entry of 'categories' lacks a whole-number 'id'"),
        ("[]", "no detection is of an image of this benchmark"),
        ('[{"image_id": 77}]', r"no detection is of an image of this benchmark \(1 of others\).* such as '0'"),
    ],
)
def test_a_file_that_is_no_list_of_detections_is_refused(tmp_path, content, message):
    with pytest.raises(UserError, match=message) as refused:
        read(tmp_path, content)
    assert "\n" not in str(refused.value)
    assert "detic.json" in str(refused.value)


def test_a_pickle_is_never_opened(tmp_path):
    path = tmp_path / "d.json"
    path.write_bytes(b"\x80\x04}.")
    with pytest.raises(UserError, match="a Python pickle, which is never opened"):
        detections_file(path).read([example(0)])


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"no\.json: cannot be read: No such file"):
        detections_file(tmp_path / "no.json")

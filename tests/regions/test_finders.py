from __future__ import annotations

import json

import pytest

from truegap.errors import UserError
from truegap.regions.finders import choose


@pytest.fixture
def detections(tmp_path):
    path = tmp_path / "found.json"
    path.write_text("[]")
    return path


def test_nothing_asked_for_leaves_the_annotations(detections):
    assert choose().is_plain
    assert choose("annotations").is_plain
    assert not choose("box").is_plain
    assert not choose("grabcut").is_plain
    assert not choose(detections=detections).is_plain


@pytest.mark.parametrize(
    ("regions", "annotated"), [("", True), ("grabcut", True), ("detr", False), ("annotations,detr", True)]
)
def test_annotated_objects_stay_unless_something_else_is_named_alone(saved, regions, annotated):
    finders = choose(regions.replace("detr", str(saved("detr"))))
    assert finders.annotated_objects == annotated
    assert finders.record()["annotated_objects"] == annotated


def test_detectors_keep_their_order_and_the_mask_maker_is_found(saved):
    finders = choose(f"{saved('yolos')}, {saved('sam')} ,{saved('detr')},{saved('yolos')}")
    assert [model.kind for model in finders.detectors] == ["yolos", "detr"]
    assert finders.masks.kind == "sam"
    record = finders.record()
    assert [each["model"] for each in record["detectors"]] == ["tiny-yolos", "tiny-detr"]
    assert record["masks"]["model"] == "tiny-sam"
    assert set(record["versions"]) == {"torch", "torchvision", "transformers"}
    json.dumps(record)


def test_vocabulary_is_everyday_unless_given(saved, tmp_path):
    assert choose(str(saved("owlv2"))).record()["vocabulary"]["name"] == "everyday"
    (tmp_path / "mine.txt").write_text("cup\nperson\n")
    own = choose(str(saved("owlv2")), vocabulary=tmp_path / "mine.txt")
    assert own.names == ("person", "cup")
    assert choose(str(saved("detr"))).record()["vocabulary"] is None


def test_everything_that_is_used_is_in_the_record(saved, detections):
    records = [
        choose("grabcut"),
        choose("box"),
        choose("grabcut", object_masks=True),
        choose(str(saved("detr"))),
        choose(str(saved("detr")), threshold=0.3),
        choose(f"annotations,{saved('detr')}"),
        choose(f"{saved('detr')},{saved('sam')}"),
        choose(f"{saved('detr')},{saved('sam2')}"),
        choose(detections=detections),
        choose(detections=detections, threshold=0.3),
        choose(detections=detections, vocabulary="coco"),
    ]
    assert len({json.dumps(each.record(), sort_keys=True) for each in records}) == len(records)


@pytest.mark.parametrize(
    ("regions", "options", "message"),
    [
        ("grabcutt", {}, r"--regions: model grabcutt: no such folder, .* \(or write annotations, box or grabcut\)"),
        ("nobody/nothing", {}, "--regions: model nobody/nothing: "),
        ("box,grabcut", {}, "box and grabcut both make masks; name one of them"),
        ("grabcut,SAM", {}, "grabcut and tiny-sam both make masks"),
        ("grabcut", {"threshold": 0.5}, "--score-threshold is for detections"),
        ("DETR", {"threshold": 1.0}, "--score-threshold 1: give a number between 0 and 1"),
        ("DETR", {"threshold": float("nan")}, "--score-threshold nan: give a number between 0 and 1"),
        ("DETR", {"vocabulary": "coco"}, "--vocabulary is for open-vocabulary detectors"),
        ("OWL", {"vocabulary": "nowhere.txt"}, "vocabulary nowhere.txt: no such file"),
        ("", {"detections": "nowhere.json"}, "detections nowhere.json: cannot be read"),
    ],
)
def test_what_does_not_go_together_is_one_line(saved, regions, options, message):
    for word, family in (("SAM", "sam"), ("DETR", "detr"), ("OWL", "owlv2")):
        regions = regions.replace(word, str(saved(family)))
    with pytest.raises(UserError, match=message) as refused:
        choose(regions, **options)
    assert "\n" not in str(refused.value)

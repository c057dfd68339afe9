"""Detectors and segmenters of transformers: the library's own documented calls are the reference."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from truegap.errors import UserError
from truegap.regions import masks
from truegap.regions._transformers import detect, segment
from truegap.regions.models import resolve

NAMES = ("person", "cup", "dog", "cat", "wine glass")

BOXES = {
    "detr": ("DetrForObjectDetection", 0.1),
    "conditional_detr": ("ConditionalDetrForObjectDetection", 0.3),
    "deformable_detr": ("DeformableDetrForObjectDetection", 0.005),
    "yolos": ("YolosForObjectDetection", 0.1),
    "rt_detr": ("RTDetrForObjectDetection", 0.1),
    "rt_detr_v2": ("RTDetrV2ForObjectDetection", 0.1),
    "d_fine": ("DFineForObjectDetection", 0.1),
    "rf_detr": ("RfDetrForObjectDetection", 0.005),
}
INSTANCES = {
    "detr_segmentation": ("DetrForSegmentation", 0.05),
    "mask2former": ("Mask2FormerForUniversalSegmentation", 0.05),
    "maskformer": ("MaskFormerForInstanceSegmentation", 0.05),
    "eomt": ("EomtForUniversalSegmentation", 0.05),
    "rf_detr_segmentation": ("RfDetrForInstanceSegmentation", 0.005),
}
GROUNDED = {
    "owlv2": "Owlv2ForObjectDetection",
    "grounding_dino": "GroundingDinoForObjectDetection",
    "mm_grounding_dino": "MMGroundingDinoForObjectDetection",
    "omdet": "OmDetTurboForObjectDetection",
}
MASKS = {"sam": "SamModel", "sam_hq": "SamHQModel", "sam2": "Sam2Model"}


def find(folder, pixels, threshold=None, names=NAMES):
    return detect(resolve(str(folder), threshold), pixels, names, Counter(), "cpu")


def reference(folder, model_class, pixels, **told):
    """Model, processor, inputs and outputs of plain library calls."""
    model = getattr(transformers, model_class).from_pretrained(folder).eval()
    kind = transformers.AutoProcessor if told else transformers.AutoImageProcessor
    processor = kind.from_pretrained(folder)
    inputs = processor(images=Image.fromarray(pixels), return_tensors="pt", **told)
    with torch.no_grad():
        return model, processor, inputs, model(**inputs)


def clip(box, size):
    """`x, y, width, height` inside of the image."""
    left, top, right, bottom = (
        max(0.0, min(float(side), float(end))) for side, end in zip(box, (size[1], size[0]) * 2, strict=True)
    )
    return left, top, right - left, bottom - top


def same(found, expected):
    """Detections against labels, scores and boxes in any order."""
    key = lambda each: (-each[1], each[0], [round(side, 3) for side in each[2]])  # noqa: E731
    mine = sorted(((each.label, each.score, each.box) for each in found), key=key)
    theirs = sorted(expected, key=key)
    assert [each[0] for each in mine] == [each[0] for each in theirs]
    np.testing.assert_allclose([each[1] for each in mine], [each[1] for each in theirs], atol=1e-6)
    np.testing.assert_allclose([each[2] for each in mine], [each[2] for each in theirs], atol=1e-3)


@pytest.mark.parametrize("family", BOXES)
def test_boxes_are_those_of_plain_library_calls(saved, pixels, family):
    model_class, threshold = BOXES[family]
    model, processor, _, outputs = reference(saved(family), model_class, pixels)
    theirs = processor.post_process_object_detection(outputs, threshold=threshold, target_sizes=[pixels.shape[:2]])[0]
    expected = [
        (model.config.id2label[label], score, clip(box, pixels.shape))
        for label, score, box in zip(*(theirs[name].tolist() for name in ("labels", "scores", "boxes")), strict=True)
    ]
    found = find(saved(family), pixels, threshold)
    assert resolve(str(saved(family))).family == "boxes"
    assert len(found) > 2
    same(found, expected)
    # And a threshold between two scores parts them
    middle = sorted({round(each.score, 5) for each in found})
    if len(middle) > 1:
        above = find(saved(family), pixels, (middle[-1] + middle[-2]) / 2)
        assert 0 < len(above) < len(found)
        same(above, [each for each in expected if each[1] > (middle[-1] + middle[-2]) / 2])


@pytest.mark.parametrize("family", ["detr", "yolos"])
def test_a_box_that_is_known_lands_where_it_belongs(saved, pixels, family, tmp_path):
    # Given a real model whose last layers say: a cup, at the centre, a fifth as wide and two fifths as high
    kind = getattr(transformers, BOXES[family][0])
    model = kind.from_pretrained(saved(family))
    boxes, classes = model.get_submodule("bbox_predictor"), model.get_submodule("class_labels_classifier")
    with torch.no_grad():
        boxes.layers[-1].weight.zero_()
        boxes.layers[-1].bias.copy_(torch.logit(torch.tensor([0.5, 0.5, 0.2, 0.4])))
        last = classes.layers[-1] if hasattr(classes, "layers") else classes
        last.weight.zero_()
        last.bias.copy_(torch.log(torch.tensor([0.1, 0.7, 0.1, 0.1])))
    model.save_pretrained(tmp_path)
    transformers.AutoImageProcessor.from_pretrained(saved(family)).save_pretrained(tmp_path)
    # When it looks at a picture of 150 x 90, then the box is in that picture's pixels
    found = find(tmp_path, pixels, 0.6)
    assert len(found) == 6
    for each in found:
        assert each.label == "cup"
        assert each.score == pytest.approx(0.7, abs=1e-5)
        np.testing.assert_allclose(each.box, (60, 27, 30, 36), atol=1e-3)
    assert find(tmp_path, pixels, 0.71) == []


@pytest.mark.parametrize("family", INSTANCES)
def test_masks_are_those_of_plain_library_calls(saved, pixels, family):
    model_class, threshold = INSTANCES[family]
    model, processor, _, outputs = reference(saved(family), model_class, pixels)
    size = pixels.shape[:2]
    theirs = processor.post_process_instance_segmentation(outputs, threshold=threshold, target_sizes=[size])[0]
    found = find(saved(family), pixels, threshold)
    assert resolve(str(saved(family))).family == "instances"
    assert found
    drawn = np.zeros(size, bool)
    for each in found:
        mask = masks.decode(each.mask, size)
        drawn |= mask
        # The box is that of the mask
        rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
        left, top, width, height = each.box
        assert (left, top) == (columns[0], rows[0])
        assert (left + width, top + height) == (columns[-1] + 1, rows[-1] + 1)
        assert each.label in model.config.id2label.values()
        assert each.score >= threshold - 1e-6
    # And together they are the library's map, in which one paints over the other
    np.testing.assert_array_equal(drawn, theirs["segmentation"].numpy() >= (family == "rf_detr_segmentation"))
    # Of those that nobody painted over, every one is there
    scores = {round(each["score"], 5) for each in theirs["segments_info"]}
    assert scores <= {round(each.score, 5) for each in found} | (scores if family == "eomt" else set())


@pytest.mark.parametrize("family", GROUNDED)
def test_open_vocabulary_boxes_are_those_of_plain_library_calls(saved, pixels, family):
    names = list(NAMES[:3])
    size = pixels.shape[:2]
    text = {"owlv2": [[f"a photo of a {name}" for name in names]], "omdet": [names]}.get(family, "person. cup. dog.")
    _, processor, inputs, outputs = reference(saved(family), GROUNDED[family], pixels, text=text)
    more = {"owlv2": {"text_labels": [names]}, "omdet": {"text_labels": [names], "nms_threshold": 0.5}}
    own = more.get(family, {"input_ids": inputs.get("input_ids"), "text_threshold": 0.25})
    theirs = processor.post_process_grounded_object_detection(outputs, threshold=0.01, target_sizes=[size], **own)[0]
    expected = [
        (label, score, clip(box, size))
        for label, score, box in zip(
            theirs["text_labels"], theirs["scores"].tolist(), theirs["boxes"].tolist(), strict=True
        )
    ]
    model = resolve(str(saved(family)), 0.01)
    assert model.family == "grounded"
    left_out = Counter()
    found = detect(model, pixels, names, left_out, "cpu")
    assert found
    assert {each.label for each in found} <= set(names)
    positive = [each for each in expected if each[2][2] > 0 and each[2][3] > 0]
    if "dino" in family:
        # Labels are names where the library returns words
        assert len(found) + left_out.total() == len([each for each in expected if each[0]])
        positive = [
            (mine.label, *each[1:]) for mine, each in zip(found, sorted(positive, key=lambda e: -e[1]), strict=True)
        ]
    same(found, positive)


@pytest.mark.parametrize("family", ["grounding_dino", "mm_grounding_dino"])
def test_a_long_vocabulary_is_asked_for_in_parts(saved, pixels, family):
    # Given a model that reads 16 tokens, and names that need more
    names = ("person", "cup", "dog", "cat", "wine glass", "sports ball", "ball", "glass", "wine")
    parts = [names[:6], ("person", *names[6:])]
    whole = find(saved(family), pixels, 0.1, names)
    assert {each.label for each in whole} & set(names)
    apart = [each for part in parts for each in find(saved(family), pixels, 0.1, part)]
    same(whole, [(each.label, each.score, each.box) for each in apart])


@pytest.mark.parametrize("family", MASKS)
def test_masks_of_boxes_are_those_of_plain_library_calls(saved, pixels, family):
    boxes = [(10.0, 5.0, 60.0, 70.0), (80.0, 10.0, 30.0, 40.0), (0.0, 0.0, 150.0, 90.0)]
    corners = [[x, y, x + width, y + height] for x, y, width, height in boxes]
    model = resolve(str(saved(family)))
    assert (model.family, model.threshold) == ("masks", None)
    found = segment(model, pixels, boxes, "cpu")
    network = getattr(transformers, MASKS[family]).from_pretrained(saved(family)).eval()
    processor = transformers.AutoProcessor.from_pretrained(saved(family))
    inputs = processor(images=Image.fromarray(pixels), input_boxes=[corners], return_tensors="pt")
    inputs["input_boxes"] = inputs["input_boxes"].float()
    with torch.no_grad():
        outputs = network(**inputs, multimask_output=False)
    sizes = [inputs["original_sizes"]] + ([] if family == "sam2" else [inputs["reshaped_input_sizes"]])
    expected = processor.post_process_masks(outputs.pred_masks, *sizes)[0][:, 0].numpy()
    assert len(found) == 3
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.shape == pixels.shape[:2]
        assert mine.dtype == np.bool_
        np.testing.assert_array_equal(mine, theirs)
    # And each box has a mask of its own
    assert any((one != found[0]).any() for one in found[1:])


@pytest.mark.parametrize("family", ["sam", "sam2"])
def test_a_mask_does_not_depend_on_the_other_boxes(saved, pixels, family):
    boxes = [(float(x), float(y), 30.0, 30.0) for x in range(0, 110, 20) for y in range(0, 60, 8)]
    model = resolve(str(saved(family)))
    together = segment(model, pixels, boxes, "cpu")
    assert len(together) == len(boxes) > 32
    for place in (0, 31, 32, len(boxes) - 1):
        alone = segment(model, pixels, [boxes[place]], "cpu")[0]
        assert (alone != together[place]).mean() < 0.001


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_neither_move_a_box_nor_stay_changed(saved, pixels, threads):
    expected = find(saved("rt_detr"), pixels, 0.1)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert find(saved("rt_detr"), pixels, 0.1) == expected
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


def test_unused_numbers_of_a_label_list_are_nothing(saved, pixels, tmp_path):
    folder = shutil.copytree(saved("rt_detr"), tmp_path / "copy")
    everything = find(saved("rt_detr"), pixels, 0.01)
    config = json.loads((folder / "config.json").read_text())
    config["id2label"]["2"] = "N/A"
    (folder / "config.json").write_text(json.dumps(config))
    found = find(folder, pixels, 0.01)
    assert {each.label for each in everything} >= {"dog"}
    assert [each.box for each in found] == [each.box for each in everything if each.label != "dog"]


def test_boxes_outside_of_the_image_are_counted(saved, pixels):
    left_out = Counter()
    detect(resolve(str(saved("owlv2")), 0.01), pixels, NAMES, left_out, "cpu")
    assert set(left_out) <= {"detection left out: box has no area", "detection left out: box is outside of the image"}


def test_the_record_says_which_model_without_a_path(saved):
    model = resolve(str(saved("detr")))
    record = model.record()
    assert record["model"] == "tiny-detr"
    assert record["threshold"] == 0.5
    assert str(saved("detr").parent) not in json.dumps(record)
    assert model.origin == f"tiny-detr@{model.content[:12]} (score>=0.5)"
    assert replace(model, revision="0123456789abcdef").origin.startswith("tiny-detr@0123456789ab ")


def test_other_weights_are_another_model(saved, tmp_path):
    folder = shutil.copytree(saved("yolos"), tmp_path / "tiny-yolos")
    assert resolve(str(folder)).content == resolve(str(saved("yolos"))).content
    model = transformers.YolosForObjectDetection.from_pretrained(folder)
    with torch.no_grad():
        next(model.parameters()).add_(1)
    model.save_pretrained(folder)
    assert resolve(str(folder)).content != resolve(str(saved("yolos"))).content


@pytest.mark.parametrize(("family", "threshold"), [("detr", 0.5), ("eomt", 0.8), ("owlv2", 0.1), ("omdet", 0.3)])
def test_thresholds_are_those_of_the_library_unless_one_is_given(saved, family, threshold):
    assert resolve(str(saved(family))).threshold == threshold
    assert resolve(str(saved(family)), 0.42).threshold == 0.42


def test_pickled_weights_are_refused(saved, tmp_path):
    folder = shutil.copytree(saved("detr"), tmp_path / "pickled")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(UserError, match=r"pytorch_model\.bin is pickled, and pickle can run code"):
        resolve(str(folder))


def test_weights_of_another_kind_are_refused(saved, pixels, tmp_path):
    # Given a detector saved without its heads
    transformers.DetrModel.from_pretrained(saved("detr")).save_pretrained(tmp_path)
    transformers.AutoImageProcessor.from_pretrained(saved("detr")).save_pretrained(tmp_path)
    with pytest.raises(UserError, match=r"its weights lack \d+ tensors \("):
        find(tmp_path, pixels)


def test_remote_code_is_never_run(saved, pixels, tmp_path):
    folder = shutil.copytree(saved("detr"), tmp_path / "remote")
    config = json.loads((folder / "config.json").read_text())
    config["auto_map"] = {"AutoConfig": "evil.Config", "AutoModelForObjectDetection": "evil.Model"}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    find(folder, pixels)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (None, "no config.json"),
        ("{", "cannot be read as JSON"),
        ("[]", "names no model_type"),
        ('{"model_type": "clip"}', "clip neither detects nor segments here; use one of conditional_detr, "),
        ('{"model_type": "oneformer"}', "oneformer neither detects nor segments here"),
    ],
)
def test_a_folder_that_is_no_detector_is_refused(tmp_path, config, message):
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    with pytest.raises(UserError, match=message) as refused:
        resolve(str(tmp_path))
    assert "\n" not in str(refused.value)


def test_damaged_weights_are_one_line(saved, pixels, tmp_path):
    folder = shutil.copytree(saved("detr"), tmp_path / "damaged")
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(UserError, match="model damaged: cannot be loaded: ") as refused:
        find(folder, pixels)
    assert "\n" not in str(refused.value)


def test_resolving_a_model_loads_no_torch(saved):
    import subprocess
    import sys

    code = (
        f"import sys; from truegap.regions.models import resolve; resolve({str(saved('detr'))!r}); "
        "print({'torch', 'transformers'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"

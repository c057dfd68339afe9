"""Detectors and segmenters of transformers, each run the way its own documentation does.

One image at a time and, on a CPU, with one thread: what else is in a batch, and on how many workers a build runs, must
never move a box. PyTorch is imported where a model first runs.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from truegap.errors import UserError
from truegap.regions import masks
from truegap.regions._phrases import chunks, name_of, prompt
from truegap.regions.boxes import around, clipped, from_corners
from truegap.regions.combine import Detection
from truegap.regions.masks import MaskError
from truegap.regions.models import NMS, TEXT_THRESHOLD, WEIGHTS, Model
from truegap.schema import Box

_UNUSED = frozenset({"n/a", "no object", "background", "unlabeled"})
"""Names that label lists give to numbers without a class."""

_CLASSES = 80
"""Names that OmDet-Turbo is told at once."""
_BOXES = 32
"""Boxes that a segmenter is told at once."""

_AUTOMATIC = {
    "boxes": "AutoModelForObjectDetection",
    "grounded": "AutoModelForZeroShotObjectDetection",
    "masks": "AutoModelForMaskGeneration",
}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model that can run."""

    model: Model
    network: Any
    processor: Any
    device: Any


def detect(
    model: Model, pixels: NDArray[np.uint8], names: Sequence[str], left_out: Counter[str], device: str = "auto"
) -> list[Detection]:
    """What a detector finds in an image, best first.

    Args:
        model: Of any family but `masks`.
        pixels: RGB, (H, W, 3).
        names: What an open-vocabulary detector looks for; others have a list of their own.
        left_out: Counts what cannot be used, by reason.
        device: As for `truegap.models`.

    Raises:
        UserError: The model cannot be loaded.
    """
    loaded = _load(model, device)
    run = {"boxes": _boxes, "instances": _instances, "grounded": _grounded}[model.family]
    with _quiet():
        found = run(loaded, Image.fromarray(pixels), names)
    detections = []
    for label, score, corners, mask in found:
        if label.lower() in _UNUSED:
            continue
        try:
            detections.append(_detection(model, label, score, corners, mask, pixels.shape[:2]))
        except MaskError as problem:
            left_out[f"detection left out: {problem}"] += 1
    return sorted(detections, key=lambda each: (-each.score, each.label, each.box))


def segment(
    model: Model, pixels: NDArray[np.uint8], boxes: Sequence[Box], device: str = "auto"
) -> list[NDArray[np.bool_]]:
    """The mask of what each box shows.

    Args:
        model: Of the family `masks`.
        pixels: RGB, (H, W, 3).
        boxes: `(x, y, width, height)` in pixels.
        device: As for `truegap.models`.

    Returns:
        One mask of shape (H, W) per box; it may be empty.

    Raises:
        UserError: The model cannot be loaded.
    """
    loaded = _load(model, device)
    image = Image.fromarray(pixels)
    found: list[NDArray[np.bool_]] = []
    with _quiet():
        for start in range(0, len(boxes), _BOXES):
            some = [[x, y, x + width, y + height] for x, y, width, height in boxes[start : start + _BOXES]]
            inputs = _inputs(loaded, images=image, input_boxes=[some])
            outputs = loaded.network(**inputs, multimask_output=False)
            # SAM and SAM-HQ pad their input, the later ones do not.
            sizes = [inputs[name] for name in ("original_sizes", "reshaped_input_sizes") if name in inputs]
            drawn = loaded.processor.post_process_masks(outputs.pred_masks.cpu(), *(size.cpu() for size in sizes))
            found.extend(np.asarray(drawn[0][:, 0].numpy(), np.bool_))
    return found


Found = tuple[str, float, Sequence[float] | None, NDArray[np.bool_] | None]
"""Label, score, `[x1, y1, x2, y2]` and mask; one of the last two is there."""


def _detection(
    model: Model,
    label: str,
    score: float,
    corners: Sequence[float] | None,
    mask: NDArray[np.bool_] | None,
    size: tuple[int, ...],
) -> Detection:
    height, width = size
    if mask is not None:
        if not mask.any():
            raise MaskError("mask is empty")
        counts = masks.encode(mask)
        return Detection(label, score, around(counts, (height, width)), counts, model.origin)
    box, _ = clipped(from_corners(corners), (height, width))
    return Detection(label, score, box, None, model.origin)


def _boxes(loaded: Loaded, image: Image.Image, _names: Sequence[str]) -> Iterator[Found]:
    outputs = loaded.network(**_inputs(loaded, images=image))
    found = loaded.processor.post_process_object_detection(
        outputs, threshold=loaded.model.threshold, target_sizes=[image.size[::-1]]
    )[0]
    labels = loaded.network.config.id2label
    for score, label, box in zip(
        found["scores"].tolist(), found["labels"].tolist(), found["boxes"].tolist(), strict=True
    ):
        yield labels[label], score, box, None


def _instances(loaded: Loaded, image: Image.Image, _names: Sequence[str]) -> Iterator[Found]:
    outputs = loaded.network(**_inputs(loaded, images=image))
    post_process: Callable[..., Any] = loaded.processor.post_process_instance_segmentation
    # Where there are no binary maps, a later segment is painted over an earlier one.
    binary = {"return_binary_maps": True} if "return_binary_maps" in inspect.signature(post_process).parameters else {}
    found = post_process(outputs, threshold=loaded.model.threshold, target_sizes=[image.size[::-1]], **binary)[0]
    labels = loaded.network.config.id2label
    drawn = found["segmentation"].cpu().numpy()
    for place, segment_ in enumerate(found["segments_info"]):
        mask = drawn[place] > 0 if drawn.ndim == 3 else drawn == segment_["id"]  # noqa: PLR2004
        yield labels[segment_["label_id"]], float(segment_["score"]), None, mask


def _grounded(loaded: Loaded, image: Image.Image, names: Sequence[str]) -> Iterator[Found]:
    run = {"owlvit": _owl, "owlv2": _owl, "omdet-turbo": _omdet}.get(loaded.model.kind, _grounding_dino)
    found: dict[str, Any]
    for found in run(loaded, image, names):
        for label, score, box in zip(
            found["text_labels"], found["scores"].tolist(), found["boxes"].tolist(), strict=True
        ):
            yield label, score, box, None


def _owl(loaded: Loaded, image: Image.Image, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    # The model's authors ask for "a photo of a {name}".
    text = [f"a photo of a {prompt(name)}" for name in names]
    outputs = loaded.network(**_inputs(loaded, images=image, text=[text], truncation=True))
    yield loaded.processor.post_process_grounded_object_detection(
        outputs, threshold=loaded.model.threshold, target_sizes=[image.size[::-1]], text_labels=[list(names)]
    )[0]


def _omdet(loaded: Loaded, image: Image.Image, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    for some in chunks(names, lambda part: len(part) <= _CLASSES):
        outputs = loaded.network(**_inputs(loaded, images=image, text=[[prompt(name) for name in some]]))
        yield loaded.processor.post_process_grounded_object_detection(
            outputs,
            text_labels=[some],
            threshold=loaded.model.threshold,
            nms_threshold=NMS,
            target_sizes=[image.size[::-1]],
        )[0]


def _grounding_dino(loaded: Loaded, image: Image.Image, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    limit = loaded.network.config.max_text_len

    def text(part: Sequence[str]) -> str:
        return "".join(f"{prompt(name)}. " for name in part).strip()

    for some in chunks(names, lambda part: len(loaded.processor.tokenizer(text(part))["input_ids"]) <= limit):
        inputs = _inputs(loaded, images=image, text=text(some))
        found = loaded.processor.post_process_grounded_object_detection(
            loaded.network(**inputs),
            inputs["input_ids"],
            threshold=loaded.model.threshold,
            text_threshold=TEXT_THRESHOLD,
            target_sizes=[image.size[::-1]],
        )[0]
        labelled = [name_of(phrase, some) for phrase in found["text_labels"]]
        kept = [place for place, label in enumerate(labelled) if label]
        yield {
            "text_labels": [labelled[place] for place in kept],
            "scores": found["scores"][kept],
            "boxes": found["boxes"][kept],
        }


def _inputs(loaded: Loaded, **what: Any) -> dict[str, Any]:
    import torch

    inputs = loaded.processor(**what, return_tensors="pt")
    tensors = {name: value for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    return {
        name: tensor.to(loaded.device, torch.float32 if tensor.is_floating_point() else None)
        for name, tensor in tensors.items()
    }


@contextmanager
def _quiet() -> Iterator[None]:
    """No gradients, and one thread on the CPU: the sums come out the same on any number of workers."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            yield
    finally:
        torch.set_num_threads(threads)


@lru_cache(maxsize=4)
def _load(model: Model, device: str) -> Loaded:
    """The model in memory; every process loads one once.

    Raises:
        UserError: Its files are incomplete, damaged or of another kind.
    """
    import transformers

    from truegap.models.devices import loading, resolve_device
    from truegap.models.files import locate
    from truegap.models.quiet import quiet_transformers

    place = resolve_device(device)
    folder = locate(model.place, model.revision, WEIGHTS).folder
    safe = {"trust_remote_code": False, "local_files_only": True}
    with loading(model.name), quiet_transformers():
        name = _AUTOMATIC.get(model.family) or _instance_class(model)
        network, info = getattr(transformers, name).from_pretrained(
            folder, use_safetensors=True, weights_only=True, output_loading_info=True, **_offline(folder), **safe
        )
        if absent := sorted(info["missing_keys"]):  # transformers would fill them with random numbers
            raise UserError(
                f"model {model.name}: its weights lack {len(absent)} tensors ({absent[0]} ...); "
                "it was saved as another kind of model"
            )
        automatic: Any = (
            transformers.AutoProcessor if model.family in {"grounded", "masks"} else transformers.AutoImageProcessor
        )
        processor = automatic.from_pretrained(folder, **safe)
    return Loaded(model, network.to(place).eval(), processor, place)


def _instance_class(model: Model) -> str:
    return "AutoModelForInstanceSegmentation" if model.kind == "rf_detr" else "AutoModelForUniversalSegmentation"


def _offline(folder: Path) -> dict[str, Any]:
    """A configuration may ask for a backbone's weights from elsewhere; the model's own weights hold them already."""
    import json

    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return {"use_pretrained_backbone": False} if config.get("use_pretrained_backbone") else {}

"""Which model is meant, known without loading it: family, revision, content and threshold.

Only files are looked at here; PyTorch is loaded where a model first runs (`_transformers`).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from truegap.errors import UserError

Family = Literal["boxes", "instances", "grounded", "masks"]
"""What a model gives: boxes of a fixed list of classes; boxes with masks of such a list; boxes of a vocabulary that it
is told; masks of boxes that it is told."""

WEIGHTS = ("model*.safetensors",)

_BOXES = {"conditional_detr", "d_fine", "dab-detr", "deformable_detr", "deimv2", "detr", "lw_detr", "rf_detr"}
_BOXES |= {"rt_detr", "rt_detr_v2", "yolos"}
_INSTANCES = {"detr", "eomt", "eomt_dinov3", "mask2former", "maskformer", "rf_detr"}
_GROUNDED = {"grounding-dino", "mm-grounding-dino", "omdet-turbo", "owlv2", "owlvit"}
_MASKS = {"edgetam", "sam", "sam2", "sam2_video", "sam3_tracker", "sam3_video", "sam_hq"}

_THRESHOLDS = {"eomt": 0.8, "eomt_dinov3": 0.8, "omdet-turbo": 0.3, "owlv2": 0.1, "owlvit": 0.1}
_THRESHOLDS |= {"grounding-dino": 0.25, "mm-grounding-dino": 0.25}
_USUAL = 0.5
"""Thresholds are those that transformers has as its defaults, and so are the next two."""

TEXT_THRESHOLD = 0.25
"""Grounding DINO: least score of a word that becomes part of the label."""
NMS = 0.5
"""OmDet-Turbo: intersection over union above which the weaker of two boxes of one class goes."""


@dataclass(frozen=True, slots=True)
class Model:
    """A detector or segmenter.

    Attributes:
        place: Folder, or `org/name` on the Hub.
        name: The same without the folders above it.
        revision: The commit, if it came from the Hub.
        content: SHA-256 over weights, configuration and vocabulary.
        kind: transformers' `model_type`.
        family: What it gives.
        threshold: Detections with a lower score are left out; None for `masks`.
    """

    place: str
    name: str
    revision: str | None
    content: str
    kind: str
    family: Family
    threshold: float | None

    @property
    def origin(self) -> str:
        """What a row says of a region from this model."""
        label = f"{self.name}@{(self.revision or self.content)[:12]}"
        return label if self.threshold is None else f"{label} (score>={self.threshold:g})"

    def record(self) -> dict[str, Any]:
        """What a manifest keeps; it holds no path."""
        return {
            "model": self.name,
            "revision": self.revision,
            "content": self.content,
            "kind": self.kind,
            "family": self.family,
            "threshold": self.threshold,
            **({"text_threshold": TEXT_THRESHOLD, "nms": NMS} if self.family == "grounded" else {}),
        }


def resolve(identifier: str, threshold: float | None = None) -> Model:
    """The model in a folder or on the Hub.

    Args:
        identifier: A folder that `save_pretrained` wrote, or `org/name[@revision]`.
        threshold: Score; None for the family's usual one.

    Raises:
        UserError: There is no such model, its weights are missing or pickled, or it is of no family known here.
    """
    from truegap.models.files import find_weights, locate, split_revision

    place, revision = split_revision(identifier, None)
    files = locate(place, revision, WEIGHTS)
    kind, architecture = _configuration(identifier, files.folder)
    family = _family(identifier, kind, architecture)
    find_weights(identifier, files.folder, (*WEIGHTS, "pytorch_model*.bin"), unsafe=False)
    chosen = None if family == "masks" else _THRESHOLDS.get(kind, _USUAL) if threshold is None else threshold
    is_folder = files.commit is None
    return Model(
        place=str(files.folder.resolve()) if is_folder else place,
        name=files.folder.resolve().name if is_folder else place,
        revision=files.commit,
        content=_content(files.folder),
        kind=kind,
        family=family,
        threshold=chosen,
    )


def _configuration(identifier: str, folder: Path) -> tuple[str, str]:
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"model {identifier}: no config.json in {folder}; save it with save_pretrained") from None
    except (OSError, ValueError, RecursionError):
        raise UserError(f"model {identifier}: {path} cannot be read as JSON") from None
    kind = config.get("model_type") if isinstance(config, dict) else None
    if not isinstance(kind, str):
        raise UserError(f"model {identifier}: config.json names no model_type; is it a transformers model?")
    architectures = config.get("architectures")
    first = architectures[0] if isinstance(architectures, list) and architectures else ""
    return kind, first if isinstance(first, str) else ""


def _family(identifier: str, kind: str, architecture: str) -> Family:
    if kind in _MASKS:
        return "masks"
    if kind in _GROUNDED:
        return "grounded"
    # DETR and RF-DETR exist as both.
    if kind in _INSTANCES and (kind not in _BOXES or "Segmentation" in architecture):
        return "instances"
    if kind in _BOXES:
        return "boxes"
    shown = "".join(filter(str.isprintable, kind))[:60]
    raise UserError(
        f"model {identifier}: {shown} neither detects nor segments here; use one of "
        f"{', '.join(sorted({*_BOXES, *_INSTANCES, *_GROUNDED, *_MASKS}))}"
    )


def _content(folder: Path) -> str:
    from truegap.models.files import SIDE_FILES

    digest = hashlib.sha256()
    for path in sorted({path for pattern in (*SIDE_FILES, *WEIGHTS) for path in folder.glob(pattern)}):
        if path.is_file():
            with path.open("rb") as file:
                digest.update(f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()

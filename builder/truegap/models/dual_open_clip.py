"""Dual encoders of open_clip: built-in architectures with a pretrained tag or a checkpoint, and saved folders."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import open_clip
import torch
import transformers
from open_clip.transform import PreprocessCfg, image_transform_v2
from PIL import Image

from truegap.errors import UserError
from truegap.hub.snapshots import Files
from truegap.models._claims import check_amount, check_depth, check_sides
from truegap.models._torch import (
    Tensors,
    TorchDualEncoder,
    content_hash,
    count_parameters,
    describe_tokenizer,
    loading,
    reading,
    resolve_device,
    resolve_dtype,
)
from truegap.models.files import (
    PICKLED,
    SAFE,
    find_weights,
    locate,
    require_safe,
    short_name,
    split_revision,
)
from truegap.results.records import ModelRecord

ADAPTER = "open_clip"
HUB, FOLDER = "hf-hub:", "local-dir:"
CONFIG = "open_clip_config.json"
WEIGHTS = ("open_clip_model", "open_clip_pytorch_model", "model", "pytorch_model", "*")
PRECISIONS = {torch.float32: "fp32", torch.bfloat16: "pure_bf16", torch.float16: "pure_fp16"}


class OpenClipDualEncoder(TorchDualEncoder):
    """An open_clip model, its evaluation transform and its tokenizer."""

    def __init__(
        self, model: Any, transform: Any, tokenizer: Any, record: ModelRecord, device: torch.device, dtype: torch.dtype
    ) -> None:
        """Take a loaded model with what stands before it."""
        super().__init__(model, record, device, dtype)
        self._transform = transform
        self._tokenizer = tokenizer

    def preprocess(self, image: Image.Image) -> Tensors:
        """open_clip's evaluation transform of one image."""
        with reading(self._record.name, "an image"):
            return {"image": self._transform(image).unsqueeze(0)}

    def _tokenize(self, texts: list[str]) -> Tensors:
        return {"text": self._tokenizer(texts)}

    def _forward_images(self, batch: Tensors) -> torch.Tensor:
        features: torch.Tensor = self._model.encode_image(batch["image"])
        return features

    def _forward_texts(self, batch: Tensors) -> torch.Tensor:
        features: torch.Tensor = self._model.encode_text(batch["text"])
        return features


@dataclass(frozen=True, slots=True)
class _Source:
    """What open_clip is told, and where the weights are."""

    name: str
    """Architecture, or `local-dir:` and the folder."""
    short: str
    weights: Path
    commit: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


def load(
    identifier: str, *, spec: str, revision: str | None, device: str, dtype: str, unsafe_weights: bool
) -> OpenClipDualEncoder:
    """Load a dual encoder through open_clip.

    Args:
        identifier: `ARCHITECTURE/TAG` (`ViT-B-32/laion2b_s34b_b79k`), `ARCHITECTURE/FILE` (a relative path after one
            slash, an absolute one after two: `ViT-B-32//data/w.safetensors`), `hf-hub:org/name[@revision]`, or
            `local-dir:FOLDER` in the format that open_clip saves for the Hub.
        spec: What the user typed, for the record and for messages.
        revision: Branch, tag or commit on the Hub.
        device: `auto` or a torch device.
        dtype: `float32`, `bfloat16` or `float16`.
        unsafe_weights: Allow pickled weights (read with torch's `weights_only` even so).

    Raises:
        UserError: There is no such model, or its files are incomplete, damaged or unsafe.
    """
    place, kind = resolve_device(device), resolve_dtype(dtype)
    saved = identifier.startswith((HUB, FOLDER))
    find = _saved if saved else _architecture
    source = find(identifier, spec, revision, unsafe=unsafe_weights)
    with loading(spec), _quiet():
        _check_config(spec, open_clip.get_model_config(source.name))
        options = {"load_weights": False, "pretrained_text": False, **source.options}
        # A tower that reads its own numbers while it is made cannot be made without memory.
        with suppress(RuntimeError), torch.device("meta"):
            skeleton = open_clip.create_model(source.name, device="meta", **options)
            check_amount(spec, skeleton, [source.weights] if source.weights.suffix in SAFE else [])
        model = open_clip.create_model(source.name, precision=PRECISIONS[kind], **options)
        check_sides(spec, model.visual.preprocess_cfg)
        open_clip.load_checkpoint(model, str(source.weights), strict=True, weights_only=True)
        preprocessing = PreprocessCfg(**model.visual.preprocess_cfg)
        transform = image_transform_v2(preprocessing, is_train=False)
        tokenizer = open_clip.get_tokenizer(source.name)
        description = {
            "adapter": ADAPTER,
            "config": open_clip.get_model_config(source.name),
            "options": source.options,
            "preprocessing": asdict(preprocessing),
            "tokenizer": _describe(tokenizer),
        }
        record = ModelRecord(
            spec=spec,
            name=source.short,
            adapter=ADAPTER,
            kind="dual-encoder",
            revision=source.commit,
            content=content_hash(model, description),
            parameters=count_parameters(model),
        )
    return OpenClipDualEncoder(model, transform, tokenizer, record, place, kind)


def _architecture(identifier: str, spec: str, revision: str | None, *, unsafe: bool) -> _Source:
    """`ARCHITECTURE/TAG` or `ARCHITECTURE/FILE`."""
    name, _, rest = identifier.partition("/")
    if name not in open_clip.list_models():
        raise UserError(f"model {spec}: open_clip has no architecture {name!r}; see open_clip.list_models()")
    tag = open_clip.get_pretrained_cfg(name, rest)
    if tag:
        files, weights = _tagged(tag, revision, spec, unsafe=unsafe)
        # The weights know which activation they were trained with; open_clip only warns where the name disagrees.
        options = {"force_preprocess_cfg": tag, "quick_gelu": bool(tag.get("quick_gelu", False))}
        return _Source(name, f"{name}/{rest}", weights, files.commit, options)
    path = Path(rest).expanduser()
    if not rest or not path.is_file():
        tags = ", ".join(open_clip.list_pretrained_tags_by_model(name)) or "none"
        raise UserError(f"model {spec}: {rest!r} is neither a pretrained tag of {name} (it has: {tags}) nor a file")
    if revision is not None:
        raise UserError(f"model {spec}: a file has no revision {revision}; leave it out")
    require_safe(spec, path, unsafe=unsafe)
    return _Source(name, f"{name}/{path.stem}", path)


def _tagged(tag: dict[str, Any], revision: str | None, spec: str, *, unsafe: bool) -> tuple[Files, Path]:
    """The weights of a pretrained tag, from the Hub repository that open_clip names for it."""
    repository, _, filename = tag.get("hf_hub", "").rpartition("/")
    if not repository:
        raise UserError(f"model {spec}: open_clip names no Hub repository for this tag; use a local checkpoint")
    stems = [Path(filename).stem] if filename else ["open_clip_model", "open_clip_pytorch_model"]
    safe, pickled = _patterns(stems)
    files = locate(repository, revision, safe + (pickled if unsafe else []))
    return files, find_weights(spec, files.folder, safe + pickled, unsafe=unsafe)


def _saved(identifier: str, spec: str, revision: str | None, *, unsafe: bool) -> _Source:
    """`hf-hub:org/name` or `local-dir:FOLDER`."""
    name = identifier.removeprefix(HUB).removeprefix(FOLDER)
    if identifier.startswith(HUB):
        name, revision = split_revision(name, revision)
    elif not Path(name).expanduser().is_dir():
        raise UserError(f"model {spec}: no such folder {name}")
    safe, pickled = _patterns(WEIGHTS[:-1])
    files = locate(name, revision, safe + (pickled if unsafe else []))
    if not (files.folder / CONFIG).is_file():
        hint = "; for a transformers model give org/name or the folder without prefix"
        raise UserError(f"model {spec}: no {CONFIG} in {files.folder}{hint}")
    safe, pickled = _patterns(WEIGHTS)
    weights = find_weights(spec, files.folder, safe + pickled, unsafe=unsafe)
    return _Source(f"{FOLDER}{files.folder}", short_name(name), weights, files.commit)


def _patterns(stems: tuple[str, ...] | list[str]) -> tuple[list[str], list[str]]:
    return [f"{stem}{end}" for stem in stems for end in SAFE], [f"{stem}{end}" for stem in stems for end in PICKLED]


def _check_config(spec: str, config: Any) -> None:
    """Refuse a configuration that asks for code, before open_clip passes it on or transformers asks at the terminal."""
    if not isinstance(config, dict) or not isinstance(config.get("text_cfg"), dict):
        raise UserError(f"model {spec}: {CONFIG} has no text_cfg; save the model with open_clip's own tools")
    if "trust_remote_code" in json.dumps(config):
        raise UserError(f"model {spec}: {CONFIG} asks for remote code (trust_remote_code), which is never run")
    check_depth(spec, config)
    check_sides(spec, config)
    text_model = config["text_cfg"].get("hf_model_name")
    if text_model:
        transformers.AutoConfig.from_pretrained(text_model, trust_remote_code=False)


def _describe(tokenizer: Any) -> dict[str, Any]:
    inner = getattr(tokenizer, "tokenizer", None)
    ids = describe_tokenizer(inner) if inner is not None else {"vocabulary": tokenizer.encoder}
    return {"class": type(tokenizer).__name__, "context_length": tokenizer.context_length, **ids}


@contextmanager
def _quiet() -> Iterator[None]:
    """Drop open_clip's warning of random weights, which are loaded a line later."""

    def keep(record: logging.LogRecord) -> bool:
        return "No pretrained weights loaded" not in record.getMessage()

    root = logging.getLogger()
    root.addFilter(keep)
    try:
        yield
    finally:
        root.removeFilter(keep)

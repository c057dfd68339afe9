"""Dual encoders of the transformers library: any model that has image and text features."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from PIL import Image

from truegap.errors import UserError
from truegap.hub.snapshots import Files
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
from truegap.models._transformers import (
    DUAL_ENCODERS,
    PICKLED_WEIGHTS,
    SAFE_WEIGHTS,
    describe_config,
    dual_class,
    load_processor,
    load_weights,
    read_config,
)
from truegap.models.files import find_weights, locate, short_name, split_revision
from truegap.models.quiet import quiet_transformers
from truegap.results.records import ModelRecord

ADAPTER = "transformers"
FIXED_LENGTH = 128
"""Text contexts up to this many tokens are always padded to their full length."""
NO_LIMIT = 10**6
"""A tokenizer without a limit says a number far above this."""


class TransformersDualEncoder(TorchDualEncoder):
    """A transformers model with `get_image_features` and `get_text_features`, and its processor."""

    def __init__(
        self,
        model: transformers.PreTrainedModel,
        processor: Any,
        record: ModelRecord,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        """Take a loaded model and its processor."""
        super().__init__(model, record, device, dtype)
        self._processor = processor
        self._text_options = text_options(model.config, processor)

    def preprocess(self, image: Image.Image) -> Tensors:
        """The image processor's tensors of one image."""
        with reading(self._record.name, "an image"):
            return {**self._processor.image_processor(images=image, return_tensors="pt")}

    def _tokenize(self, texts: list[str]) -> Tensors:
        return {**self._processor(text=texts, return_tensors="pt", **self._text_options)}

    def _forward_images(self, batch: Tensors) -> torch.Tensor:
        return self._pooled(self._model.get_image_features(**batch))

    def _forward_texts(self, batch: Tensors) -> torch.Tensor:
        return self._pooled(self._model.get_text_features(**batch))

    def _pooled(self, output: Any) -> torch.Tensor:
        """One vector per input: transformers returns an output object since version 5, a tensor before."""
        features = output if isinstance(output, torch.Tensor) else output.pooler_output
        if features is not None and features.ndim == 3 and self._model.config.model_type == "flava":  # noqa: PLR2004
            features = features[:, 0]  # FLAVA projects every token; its contrastive loss takes the class token
        if features is None or features.ndim != 2:  # noqa: PLR2004
            raise UserError(f"model {self._record.name}: gives no single vector per input; it is not a dual encoder")
        return features


def load(
    identifier: str, *, spec: str, revision: str | None, device: str, dtype: str, unsafe_weights: bool
) -> TransformersDualEncoder:
    """Load a dual encoder from a folder or the Hub.

    Args:
        identifier: Folder that `save_pretrained` wrote (model and processor), or `org/name[@revision]`.
        spec: What the user typed, for the record and for messages.
        revision: Branch, tag or commit on the Hub.
        device: `auto` or a torch device.
        dtype: `float32`, `bfloat16` or `float16`.
        unsafe_weights: Allow pickled weights (read with torch's `weights_only` even so).

    Raises:
        UserError: There is no such model, it is not a dual encoder, or its files are incomplete, damaged or unsafe.
    """
    place, kind = resolve_device(device), resolve_dtype(dtype)
    name, revision = split_revision(identifier, revision)
    patterns = SAFE_WEIGHTS + (PICKLED_WEIGHTS if unsafe_weights else ())
    files = locate(name, revision, patterns)
    with loading(spec), quiet_transformers():
        config = read_config(spec, files.folder)
        model_class = dual_class(config)
        if model_class is None:
            raise UserError(
                f"model {spec}: {config.model_type} is not a dual encoder (it lacks image or text features); "
                f"dual encoders are {DUAL_ENCODERS} and their like"
            )
        if getattr(config, "quantization_config", None) is not None:
            raise UserError(f"model {spec}: its weights are quantized, and dual encoders are read whole; take those")
        find_weights(spec, files.folder, SAFE_WEIGHTS + PICKLED_WEIGHTS, unsafe=unsafe_weights)
        model = load_weights(spec, model_class, files.folder, kind, unsafe=unsafe_weights)
        processor = load_processor(spec, files.folder)
        record = _record(spec, files, short_name(name), model, processor)
    return TransformersDualEncoder(model, processor, record, place, kind)


def text_options(config: Any, processor: Any) -> dict[str, Any]:
    """How texts are cut and padded.

    Short contexts (CLIP 77, SigLIP 64) are padded to their full length, which SigLIP, trained without attention mask,
    needs and which makes features independent of the batch's longest text; long ones (BERT 512) only to the longest,
    where the attention mask does that.
    """
    own = getattr(processor, "text_kwargs", None)
    written = own.get("max_length") if isinstance(own, dict) else None
    text = getattr(config, "text_config", config)
    limits = (processor.tokenizer.model_max_length, getattr(text, "max_position_embeddings", None), written)
    limit = min((limit for limit in limits if limit and limit < NO_LIMIT), default=None)
    if limit is None:
        return {"padding": "longest"}
    return {"padding": "max_length" if limit <= FIXED_LENGTH else "longest", "truncation": True, "max_length": limit}


def _record(spec: str, files: Files, name: str, model: Any, processor: Any) -> ModelRecord:
    description = {
        "adapter": ADAPTER,
        "class": type(model).__name__,
        "config": describe_config(model),
        "image_processor": [type(processor.image_processor).__name__, processor.image_processor.to_dict()],
        "tokenizer": describe_tokenizer(processor.tokenizer),
        "text_options": text_options(model.config, processor),
    }
    return ModelRecord(
        spec=spec,
        name=name,
        adapter=ADAPTER,
        kind="dual-encoder",
        revision=files.commit,
        content=content_hash(model, description),
        parameters=count_parameters(model),
    )
